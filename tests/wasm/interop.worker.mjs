import { McpServer, anonymous } from "mrtr/server";

const server = new McpServer({ name: "mrtr-worker", version: "1.0.0", keys: (env) => [env.MRTR_KEYS], loopback: true });
const inputSchema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
server.tool("plan", { description: "Plans a trip, asking twice", inputSchema }, async (ctx, { city }) => {
  const days = await ctx.elicit("days", {
    message: `How many days in ${city}?`,
    schema: { type: "object", properties: { days: { type: "integer" } }, required: ["days"] },
  });
  if (days.action !== "accept") return "No plan.";
  const pace = await ctx.elicit("pace", {
    message: `At which pace do you want to spend ${days.content.days} days?`,
    schema: { type: "object", properties: { pace: { type: "string", enum: ["slow", "fast"] } }, required: ["pace"] },
  });
  return pace.action === "accept" ? `${city}, ${days.content.days} days, ${pace.content.pace}` : "No plan.";
});
export default { fetch: (request, env) => server.fetch(request, { principal: anonymous, env }) };
