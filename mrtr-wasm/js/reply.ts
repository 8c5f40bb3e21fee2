/** What goes between a request and its handler: where the reply goes, what a handler is, what it comes to. */
import type { Attempt } from "./attempt.js";
import type { Context } from "./context.js";
import { ConfigError, McpError } from "./errors.js";
import type { Exchange } from "./exchange.js";
import { type JsonSchema, misfit, sound } from "./schema.js";
import type { LedgerStore } from "./store.js";
import { json } from "./values.js";

/** Where the reply goes. */
export interface Sink {
  /** The head and the first piece; it is the whole reply if `last`. */
  begin(status: number, headers: readonly (readonly [string, string])[], bytes: Uint8Array, last: boolean): void;
  /** A further piece. */
  piece(bytes: Uint8Array, last: boolean): void;
  /** The reply takes longer than a turn. */
  lingers?(): void;
  /** The instance has trapped: there is no reply, or no more of it if it has begun. */
  broken(error: unknown, begun: boolean): void;
}

/** A handler as it was registered. */
export interface Handler {
  name: string;
  run(context: Context, args: unknown): unknown;
  exchange?(exchange: Exchange, args: unknown): unknown;
  args(text: string): Given | Promise<Given>;
  /** The list that a result which is no text must have. */
  member: "content" | "messages" | "contents";
}
export type Given = { args: unknown } | { problem: string };

export interface Surroundings {
  handlers: readonly Handler[];
  store: LedgerStore | undefined;
  report(message: string, error?: unknown): void;
  ended(attempt: Attempt): void;
}

/** How arguments are made of their JSON text: checked by the schema, or by the author's own function. */
export function checked(options: { inputSchema?: JsonSchema; parse?: (args: unknown) => unknown }): Pick<Handler, "args"> {
  const { parse, inputSchema = {} } = options ?? {};
  if (inputSchema?.type !== undefined && inputSchema.type !== "object") {
    throw new ConfigError("inputSchema: arguments are an object");
  }
  if (!sound(inputSchema)) {
    throw new ConfigError("inputSchema: `type`, `properties`, `required`, `items` or `enum` is somewhere not what JSON Schema has there");
  }
  if (parse === undefined) {
    return {
      args: (text) => {
        const args: unknown = JSON.parse(text);
        const problem = misfit(inputSchema, args);
        return problem === undefined ? { args } : { problem };
      },
    };
  }
  const refused = (error: unknown) => ({
    problem: `arguments: ${error instanceof Error ? error.message : "not as they should be"}`,
  });
  return {
    args: (text) => {
      try {
        const args = parse(JSON.parse(text));
        if (typeof (args as { then?: unknown } | undefined | null)?.then !== "function") return { args };
        return Promise.resolve(args).then((args) => ({ args }), refused);
      } catch (error) {
        return refused(error);
      }
    },
  };
}

/** JSON text of a result. */
export function result(value: unknown, member: Handler["member"]): string {
  const text = json(value);
  if (text === undefined) throw new TypeError("the handler returned nothing");
  const list = (of: unknown) => Array.isArray((of as { [name: string]: unknown } | null)?.[member]);
  // Something with a `toJSON` may have become one.
  if (!list(value) && !list(JSON.parse(text))) {
    throw new TypeError(`neither a text nor an object with a list \`${member}\``);
  }
  return text;
}

/** An error that a handler chose: code, message and data as JSON text. */
export function answered(error: unknown): [number, string, string | undefined] | undefined {
  if (!(error instanceof McpError)) return undefined;
  const { rpcCode, message, data } = error;
  // JSON-RPC has whole numbers; a price or a status that is none must not become another code.
  if (!Number.isSafeInteger(rpcCode) || typeof message !== "string") {
    throw new TypeError("McpError: a whole number as code and a text as message are needed");
  }
  return [rpcCode, message, json(data)];
}

const known = new Map<string, { status: number; headers: [string, string][] }>();

/** Status and headers of a reply; there are few different ones. */
export function heads(text: string): { status: number; headers: [string, string][] } {
  let head = known.get(text);
  if (head === undefined) {
    const [status, ...lines] = text.split("\n");
    const headers = lines.filter((line) => line !== "").map((line): [string, string] => {
      const colon = line.indexOf(": ");
      return [line.slice(0, colon), line.slice(colon + 2)];
    });
    head = { status: Number(status), headers };
    if (known.size < 64) known.set(text, head);
  }
  return head;
}
