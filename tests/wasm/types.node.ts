// What only Node has, by the name that every way to resolve knows. Nothing here runs.
import { createServer } from "node:http";

import { type McpServer, nodeListener } from "mrtr/server/node";
import { nodeListener as same } from "mrtr/node";

declare const server: McpServer;
createServer(nodeListener(server, { principal: "ada", waitUntil: undefined }));
createServer(same(server, async (request) => ({ principal: String(request.headers["x-user"]) })));
