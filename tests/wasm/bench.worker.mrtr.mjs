import { McpServer, anonymous } from "mrtr/server";

const server = new McpServer({ name: "bench", version: "1", keys: (env) => [env.MRTR_KEYS] });
const form = {
  message: "What is your name?",
  schema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
};
const inputSchema = { type: "object", properties: { greeting: { type: "string" } }, required: ["greeting"] };
server.tool("greet", { description: "Greets", inputSchema }, async (ctx, { greeting }) => {
  const answer = await ctx.elicit("name", form);
  return answer.action === "accept" ? `${greeting}, ${answer.content.name}!` : "Hm.";
});
export default { fetch: (request, env) => server.fetch(request, { principal: anonymous, env }) };
