// What the types promise, held by the compiler: `tsc --noEmit`. Nothing here runs.
import { AskInvalid, type Form, McpClient, McpError, type McpServer, MrtrError, type PendingExchange, TransportError, questions } from "mrtr";
import { McpServer as FromServer } from "mrtr/server";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function same<A, B>(proof: Same<A, B>): void;
declare const server: McpServer;

server.tool(
  "t",
  {
    inputSchema: {
      type: "object",
      properties: {
        people: { type: "integer" },
        note: { type: "string" },
        tags: { type: "array", items: { enum: ["a", "b"] } },
        deep: { type: "object", properties: { on: { type: "boolean" } }, required: ["on"] },
      },
      required: ["people"],
    },
  },
  async (ctx, args) => {
    same<typeof args, { people: number; note?: string; tags?: ("a" | "b")[]; deep?: { on: boolean } }>(true);
    const answer = await ctx.elicit("k", {
      message: "?",
      schema: {
        type: "object",
        properties: {
          day: { type: "string", format: "date" },
          count: { type: "integer", minimum: 1 },
          sure: { type: "boolean" },
          size: { type: "string", enum: ["s", "m"] },
          color: { type: "string", oneOf: [{ const: "r", title: "Red" }, { const: "g", title: "Green" }] },
          extras: { type: "array", items: { type: "string", enum: ["x", "y"] } },
        },
        required: ["day", "size"],
      },
    });
    if (answer.action !== "accept") {
      same<typeof answer, { action: "decline" } | { action: "cancel" }>(true);
      return "no";
    }
    same<
      typeof answer.content,
      { day: string; size: "s" | "m"; count?: number; sure?: boolean; color?: "r" | "g"; extras?: ("x" | "y")[] }
    >(true);
    const optional = await ctx.elicit("o", { message: "?", schema: { type: "object", properties: {} } }, { optional: true });
    same<(typeof optional)["action"], "accept" | "decline" | "cancel" | "unavailable">(true);
    const yes = await ctx.confirm("c", "sure?");
    same<typeof yes, boolean>(true);
    const perhaps = await ctx.sample("m", { messages: [], maxTokens: 1 }, { optional: true });
    // @ts-expect-error: it may not be there
    perhaps.model;
    const [a, b] = await Promise.all([ctx.confirm("a", "a"), ctx.roots("r")]);
    same<typeof a, boolean>(true);
    b[0]?.uri;
    const n = await ctx.once("n", async () => 3);
    same<typeof n, number>(true);
    const size = await ctx.sample("kept", { messages: [], maxTokens: 1 }).keep((said) => said.model.length);
    same<typeof size, number>(true);
    // @ts-expect-error: an object in a form is no field (R-113)
    ctx.elicit("bad", { message: "?", schema: { type: "object", properties: { deep: { type: "object" } } } });
    // @ts-expect-error: no such format
    ctx.elicit("bad", { message: "?", schema: { type: "object", properties: { s: { type: "string", format: "phone" } } } });
    return { content: [{ type: "text", text: "ok" }] };
  },
);

server.tool("parsed", { parse: (args: unknown) => args as { x: bigint } }, (_, args) => {
  same<typeof args, { x: bigint }>(true);
  return "ok";
});

server.tool("parsed later", { parse: async (args: unknown) => args as { x: bigint } }, (_, args) => {
  same<typeof args, { x: bigint }>(true);
  return "ok";
});

// Blocks of an interface, as other packages declare them.
interface Block { type: "text"; text: string }
declare const block: Block;
server.tool("blocks", {}, () => ({ content: [block], structuredContent: block, _meta: block }));
server.prompt("blocks", {}, () => ({ messages: [{ role: "user", content: block }] }));

// What may be absent may be `undefined` too.
declare const maybe: { [name in "observe" | "report"]?: (text: string) => void };
new FromServer({ name: "t", version: "1", keys: [], ledger: undefined, limits: { rounds: undefined }, observe: maybe.observe, hosts: undefined });
server.tool("loose", { description: undefined, inputSchema: undefined, parse: undefined }, (_, args) => JSON.stringify(args));
void new McpClient("http://x", { name: "c", version: "1", headers: undefined, policy: undefined }).callTool("t", {}, { elicit: undefined, onProgress: undefined });

// A schema of its own, and one that is only known when it runs.
const day = { type: "object", properties: { day: { type: "string" }, size: { enum: ["s", "m"], type: "string" } }, required: ["day"] } as const;
declare const known: Form;
server.tool("apart", { inputSchema: day }, async (ctx, args) => {
  same<typeof args, { day: string; size?: "s" | "m" }>(true);
  const [apart, later] = await Promise.all([ctx.elicit("a", { message: "?", schema: day }), ctx.elicit("b", known)]);
  if (apart.action === "accept") same<typeof apart.content, { day: string; size?: "s" | "m" }>(true);
  return later.action === "accept" ? String(later.content["any"]) : "no";
});

// @ts-expect-error: a tool gives a result
server.tool("nothing", {}, async () => 7);

const form = questions.form({ message: "?", schema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } });
server.returningTool("r", {}, (exchange) => {
  const given = exchange.answer("n", form);
  if (given.kind === "given") same<typeof given.value, { n: number }>(true);
  return given.kind === "given" ? "ok" : exchange.require({ n: form }, { tries: 1 });
});

// @ts-expect-error: the principal is required
void server.fetch(new Request("http://x"), {});
// @ts-expect-error: keys are required
new FromServer({ name: "t", version: "1" });
new FromServer({ name: "t", version: "1", keys: (env: { KEY: string }) => [env.KEY] });

const client = new McpClient("http://x", { name: "c", version: "1" });
declare const signal: AbortSignal | undefined;
// @ts-expect-error: no such level
void client.callTool("t", {}, { signal, logLevel: "loud" });
void client.callTool("t", {}, {
  elicit: (ask) => {
    if (ask.kind === "form") ask.params.requestedSchema.properties;
    else same<typeof ask.params.url, string>(true);
    return { action: "accept", content: {} };
  },
  // @ts-expect-error: a model's answer names its model
  sample: () => ({ role: "assistant", content: [] }),
});
client.startTool("t", {}, { elicitation: {} }).then((step) => {
  if ("done" in step) step.result.content;
  else {
    same<ReturnType<PendingExchange["save"]>, Uint8Array>(true);
    step.answer("k", { action: "decline" });
  }
});
declare const error: unknown;
if (error instanceof MrtrError) same<typeof error.code, string>(true);
if (error instanceof TransportError) same<typeof error.status, number | undefined>(true);
if (error instanceof McpError) same<typeof error.rpcCode, number>(true);
if (error instanceof AskInvalid) error.reason;
