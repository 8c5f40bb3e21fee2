// The same asking tool on this package and on the TypeScript SDK: `bench.server.mjs mrtr | sdk | canned`. Prints its url.
import { createServer } from "node:http";

import { line } from "./lib.mjs";

const port = (http) => http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));

if (process.argv[2] === "mrtr") {
  const { McpServer, anonymous, nodeListener } = await import("mrtr/server");
  const server = new McpServer({ name: "bench", version: "1", keys: [crypto.getRandomValues(new Uint8Array(32))], loopback: true });
  const form = line("What is your name?", "name");
  server.tool("greet", { description: "Greets", inputSchema: { type: "object", properties: { greeting: { type: "string" } }, required: ["greeting"] } }, async (ctx, { greeting }) => {
    const answer = await ctx.elicit("name", form);
    return answer.action === "accept" ? `${greeting}, ${answer.content.name}!` : "Hm.";
  });
  port(createServer(nodeListener(server, { principal: anonymous })));
} else if (process.argv[2] === "canned") {
  const { canned } = await import("./bench.worker.canned.mjs");
  port(
    createServer((request, response) => {
      const chunks = [];
      request.on("data", (chunk) => chunks.push(chunk));
      request.on("end", () => {
        const text = Buffer.from(canned(Buffer.concat(chunks).toString()));
        response.writeHead(200, ["Content-Type", "application/json", "Content-Length", String(text.length)]).end(text);
      });
    }),
  );
} else {
  const { toNodeHandler } = await import("@modelcontextprotocol/node");
  const { McpServer, acceptedContent, createMcpHandler, createRequestStateCodec, inputRequired } = await import("@modelcontextprotocol/server");
  const z = await import("zod/v4");
  const codec = createRequestStateCodec({ key: crypto.getRandomValues(new Uint8Array(32)) });
  const { message, schema: requestedSchema } = line("What is your name?", "name");
  const build = () => {
    const server = new McpServer({ name: "bench", version: "1" }, { capabilities: { tools: {} }, requestState: { verify: codec.verify } });
    server.registerTool("greet", { description: "Greets", inputSchema: z.object({ greeting: z.string() }) }, async ({ greeting }, ctx) => {
      const state = ctx.mcpReq.requestState();
      const answer = acceptedContent(ctx.mcpReq.inputResponses, "name");
      if (state === undefined || answer === undefined) {
        return inputRequired({
          inputRequests: { name: inputRequired.elicit({ message, requestedSchema }) },
          requestState: await codec.mint({ asked: true }),
        });
      }
      return { content: [{ type: "text", text: `${greeting}, ${answer.name}!` }] };
    });
    return server;
  };
  port(createServer(toNodeHandler(createMcpHandler(build))));
}
