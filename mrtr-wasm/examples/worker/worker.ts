// An MCP server as a worker: a tool that asks, keys from a binding, a ledger in a Durable Object.
import { type Key, McpServer, anonymous } from "mrtr/server";

import { type LedgerNamespace, durableLedger } from "./ledger.js";

export { Ledger } from "./ledger.js";

interface Env {
  /** `mrtr keygen`; while keys are replaced, two of them with a space between, the one that seals first. */
  MRTR_KEYS: string;
  LEDGER: LedgerNamespace;
}

let ledger: LedgerNamespace | undefined;

const server = new McpServer({
  name: "inn",
  version: "1.0.0",
  keys: (env: Env): Key[] => env.MRTR_KEYS.split(" "),
  // Days instead of minutes: for clients that store an exchange until a person has time.
  stateTtlMs: 7 * 24 * 3_600_000,
  limits: { exchangeMs: 14 * 24 * 3_600_000 },
  ledger: { store: durableLedger(() => ledger) },
});

server.tool(
  "book",
  {
    description: "Books a table",
    inputSchema: {
      type: "object",
      properties: { people: { type: "integer", minimum: 1 } },
      required: ["people"],
    },
  },
  async (ctx, { people }) => {
    const answer = await ctx.elicit("when", {
      message: `A table for ${people}: when?`,
      schema: {
        type: "object",
        properties: {
          day: { type: "string", format: "date", title: "Day" },
          seating: { type: "string", enum: ["early", "late"], title: "Seating" },
          quiet: { type: "boolean", title: "A quiet corner, please", default: false },
        },
        required: ["day", "seating"],
      },
    });
    if (answer.action !== "accept") return "Nothing was booked.";
    const { day, seating, quiet = false } = answer.content;
    if (!(await ctx.confirm("sure", `Book the ${seating} seating on ${day}?`))) return "Nothing was booked.";
    ctx.onCommit(() => console.log(`booked: ${day}, ${seating}, ${people}`));
    return `Booked for ${people} on ${day}, ${seating} seating${quiet ? ", in a quiet corner" : ""}.`;
  },
);

export default {
  async fetch(request: Request, env: Env, ctx: { waitUntil(work: Promise<unknown>): void }): Promise<Response> {
    if (new URL(request.url).pathname !== "/mcp") return new Response("not here\n", { status: 404 });
    ledger = env.LEDGER;
    // Where people sign in, verify the token here and give `principal: issuer + "|" + subject`.
    return server.fetch(request, { principal: anonymous, env, waitUntil: (work) => ctx.waitUntil(work) });
  },
};
