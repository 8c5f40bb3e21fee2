// A worker whose tool tells of its progress until it is left, or is done after five seconds.
import { McpServer, anonymous } from "mrtr/server";

let left = 0;
const server = new McpServer({ name: "leave", version: "1.0.0", keys: (env) => [env.MRTR_KEYS] }).tool("slow", {}, async (ctx) => {
  ctx.onSuspend(() => left++);
  for (let turn = 0; turn < 200 && !ctx.signal.aborted; turn++) {
    ctx.progress(turn);
    await new Promise((done) => setTimeout(done, 25));
  }
  return "done";
});

export default {
  async fetch(request, env, ctx) {
    if (request.method === "GET") return new Response(String(left));
    return server.fetch(request, { principal: anonymous, env, waitUntil: ctx.waitUntil.bind(ctx) });
  },
};
