import { McpServer, acceptedContent, createMcpHandler, createRequestStateCodec, inputRequired } from "@modelcontextprotocol/server";
import * as z from "zod/v4";

const inputSchema = z.object({ greeting: z.string() });
const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
let codec;
const build = () => {
  const server = new McpServer({ name: "bench", version: "1" }, { capabilities: { tools: {} }, requestState: { verify: codec.verify } });
  server.registerTool("greet", { description: "Greets", inputSchema }, async ({ greeting }, ctx) => {
    const state = ctx.mcpReq.requestState();
    const answer = acceptedContent(ctx.mcpReq.inputResponses, "name");
    if (state === undefined || answer === undefined) {
      return inputRequired({
        inputRequests: { name: inputRequired.elicit({ message: "What is your name?", requestedSchema }) },
        requestState: await codec.mint({ asked: true }),
      });
    }
    return { content: [{ type: "text", text: `${greeting}, ${answer.name}!` }] };
  });
  return server;
};
let handler;
export default {
  fetch: (request, env) => {
    codec ??= createRequestStateCodec({ key: new TextEncoder().encode(env.MRTR_KEYS.slice(0, 32)) });
    handler ??= createMcpHandler(build);
    return handler.fetch ? handler.fetch(request) : handler(request);
  },
};
