// An MCP server on Node's own http: `node server.mjs [PORT]`. It prints its url.
import { createServer } from "node:http";

import { McpServer, anonymous, nodeListener } from "mrtr/server";

const keys = process.env.MRTR_KEYS?.split(" ");
if (keys === undefined) console.error("without MRTR_KEYS (see `mrtr keygen`) states die with this process");

const server = new McpServer({
  name: "files",
  version: "1.0.0",
  keys: keys ?? [crypto.getRandomValues(new Uint8Array(32))],
  loopback: true,
});

const inputSchema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
server.tool("delete", { description: "Deletes a file", inputSchema }, async (ctx, { path }) => {
  if (!(await ctx.confirm("sure", `Delete ${path}?`))) return "Nothing was deleted.";
  ctx.onCommit(() => console.error(`(here ${path} would be deleted)`));
  return `Deleted ${path}.`;
});

const http = createServer(nodeListener(server, { principal: anonymous }));
http.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${http.address().port}/mcp`);
});
