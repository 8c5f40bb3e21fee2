import { Attempt, heads, type Handler, type Sink, type Surroundings } from "./attempt.js";
import type { Context } from "./context.js";
import { ConfigError } from "./errors.js";
import { type Exchange, Required } from "./exchange.js";
import type { Call, Engine } from "./glue.js";
import { type Glue, glue, trapped } from "./runtime.js";
import { type FromSchema, type JsonSchema, misfit } from "./schema.js";
import type { LedgerStore } from "./store.js";

/** A secret of 32 bytes or more: the bytes, or base64url text without padding as `mrtr keygen` makes it. */
export type Key = string | Uint8Array;

/**
 * Where the keys come from. The first one seals, all of them open. Replacing OLD by NEW without refusing a call
 * that waits for its answer takes three steps, each on every replica before the next: `[OLD, NEW]`, `[NEW, OLD]`, and
 * after the longest TTL `[NEW]`.
 *
 * A function is asked again every `keysRefreshMs` and gets the `env` of the request, so that keys come from a binding and
 * are rotated without a redeploy. While it fails, the keys that were known stay.
 */
export type Keys = readonly Key[] | ((env: never) => readonly Key[] | Promise<readonly Key[]>);

/** Everybody is nobody in particular: states are open to whoever has them. A request that carries `Authorization` is
 * refused, for its sender thinks that it is somebody. */
export const anonymous: unique symbol = Symbol("mrtr.anonymous");
/** The same, with credentials not looked at. */
export const anonymousIgnoringAuthorization: unique symbol = Symbol("mrtr.anonymousIgnoringAuthorization");

/**
 * Who sends a request: bytes or text that name one principal and no other, for ever, such as issuer and subject of a
 * verified token. Never something that the message says of itself (G-10).
 */
export type Principal = string | Uint8Array | typeof anonymous | typeof anonymousIgnoringAuthorization;

/** Bounds; see `mrtr_core::Limits` for the defaults. */
export interface Limits {
  messageBytes?: number;
  depth?: number;
  nodes?: number;
  asksSent?: number;
  answerBytes?: number;
  stateMinted?: number;
  rounds?: number;
  stateOnlyRounds?: number;
  /** How long an exchange may take from its first request to its last retry. Default 3,600,000. */
  exchangeMs?: number;
}

export interface ServerOptions {
  /** Who the server says it is. */
  name: string;
  version: string;
  title?: string;
  /** Text that discovery gives to the model. */
  instructions?: string;
  keys: Keys;
  /** Default 60,000; 0 asks before every request. */
  keysRefreshMs?: number;
  /** What states are bound to besides; the same on all replicas. Default: the name. */
  audience?: string;
  /** `encrypted` (XChaCha20-Poly1305, the default) or `signed-readable` (HMAC-SHA256; the client can read it). */
  seal?: "encrypted" | "signed-readable";
  /** How long a state is good. Default 600,000. A client that waits for a person for days needs days here **and** in
   * `limits.exchangeMs`. */
  stateTtlMs?: number;
  skewMs?: number;
  /** Ask again instead of refusing when a state has expired and nothing else is wrong. */
  softExpiry?: boolean;
  /** Take no answer that comes without a state (A7). */
  requireState?: boolean;
  limits?: Limits;
  /** How handlers are run again (A3, A8, A10). */
  replay?: {
    divergence?: "ask-again" | "fail";
    afterEffects?: "refuse" | "keep" | "drop";
    patienceMs?: number;
    holdUrlsMs?: number;
    lookMs?: number;
    holdCheckpointsMs?: number;
  };
  /** Uses each state once and keeps replies for retries whose reply was lost (B1…B7). */
  ledger?: {
    store: LedgerStore;
    once?: "at-least-once" | "at-most-once";
    whenDown?: "closed" | "open";
    leaseMs?: number;
    waitMs?: number;
    waiters?: number;
    replyBytes?: number;
    skewMs?: number;
    retentionMs?: number;
  };
  /** Names in `Host` that are this server's. Without any, every host is; behind a proxy or on an edge network that is
   * fine, for it has chosen the worker by name already. */
  hosts?: readonly string[];
  /** Pages that may call, such as `https://app.example.com`. */
  origins?: readonly string[];
  /** The server listens on this machine only: `Host` and `Origin` must name it. */
  loopback?: boolean;
  /** How long clients may keep lists. */
  cache?: { ttlMs?: number; public?: boolean };
  /** Announces changes and serves subscriptions, for as long as this instance lives. */
  changes?: boolean;
  /** Is told what is asked, answered and refused, a line each (no content). */
  observe?: (line: string) => void;
  /** Is told what goes wrong. Default: `console.error`. */
  report?: (message: string, error?: unknown) => void;
}

/** What a request comes with besides itself. */
export interface RequestOptions {
  /** Required, so that nobody serves the anonymous by oversight. */
  principal: Principal;
  /** Given to a `keys` function. */
  env?: unknown;
  /** Keeps a worker alive for a commit that has begun when its client leaves: `ctx.waitUntil.bind(ctx)`. */
  waitUntil?: (work: Promise<unknown>) => void;
}

type Requirement = "form" | "url" | "sampling" | "sampling.tools" | "roots";
type Json = { readonly [name: string]: unknown };

interface Declared {
  description?: string;
  title?: string;
  /** Another lifetime for states of this one. */
  stateTtlMs?: number;
}
/** A tool. */
export interface ToolOptions<S extends JsonSchema = JsonSchema, A = FromSchema<S>> extends Declared {
  /** JSON Schema of the arguments. Of its keywords `type`, `properties`, `required`, `items`, `enum` and `const` are
   * checked before the handler is called; for more, give `parse`. */
  inputSchema?: S;
  /** Checks the arguments and makes what the handler gets, such as `schema.parse` of a validation library. What it throws
   * is told to the peer as invalid parameters. */
  parse?: (args: unknown) => A;
  outputSchema?: JsonSchema;
  annotations?: Json;
  /** What the client must have declared before a line of the handler runs. */
  requires?: readonly Requirement[];
}
export interface PromptOptions extends Declared {
  arguments?: readonly {
    name: string;
    description?: string;
    required?: boolean;
    completions?: readonly string[];
  }[];
}
export interface ResourceOptions extends Declared {
  name: string;
  mimeType?: string;
}

/** A text, or a result as the protocol has it. */
export type ToolResult =
  | string
  | { content: readonly Json[]; structuredContent?: unknown; isError?: boolean; _meta?: Json };
export type PromptResult = string | { messages: readonly Json[]; description?: string; _meta?: Json };
export type ResourceResult = string | { contents: readonly Json[]; ttlMs?: number; cacheScope?: string; _meta?: Json };
type Awaitable<T> = T | Promise<T>;

/**
 * A server: what it offers, and an answer to every request. Immutable settings, cheap to keep for the life of a worker.
 *
 * ```ts
 * const server = new McpServer({ name: "inn", version: "1.0.0", keys: (env: Env) => [env.MRTR_KEY] });
 * server.tool("book", { description: "Books a table" }, async (ctx) => {
 *   const sure = await ctx.confirm("sure", "Book a table for two?");
 *   return sure ? "Booked." : "Nothing was booked.";
 * });
 * export default { fetch: (request, env) => server.fetch(request, { principal: anonymous, env }) };
 * ```
 */
export class McpServer {
  readonly #options: ServerOptions;
  readonly #settings: string;
  readonly #offers: [kind: string, declared: string][] = [];
  readonly #handlers: Handler[] = [];
  readonly #live = new Set<Attempt>();
  readonly #around: Surroundings;
  #engine: { glue: Glue; engine: Engine } | undefined;
  #keys: Uint8Array | undefined;
  #keysAt = 0;
  #keysComing: Promise<void> | undefined;

  constructor(options: ServerOptions) {
    const { keys, keysRefreshMs: _, observe, report, ledger, ...rest } = options;
    const { store, ...policy } = ledger ?? { store: undefined };
    this.#options = options;
    this.#settings = JSON.stringify({
      ...rest,
      observed: observe !== undefined,
      ...(ledger === undefined ? {} : { ledger: policy }),
    });
    if (typeof keys !== "function") this.#keys = pack(keys);
    this.#around = {
      handlers: this.#handlers,
      store,
      report: report ?? ((message, error) => (error === undefined ? console.error(`mrtr: ${message}`) : console.error(`mrtr: ${message}`, error))),
      ended: (attempt) => {
        this.#live.delete(attempt);
        this.#tell();
      },
    };
  }

  /**
   * Offers a tool. The handler runs again from its start in every round; see {@link Context} for what that means.
   *
   * @throws ConfigError if the name is taken or a schema is not fit to be sent.
   */
  tool<const S extends JsonSchema, A = FromSchema<S>>(
    name: string,
    options: ToolOptions<S, A>,
    handler: (ctx: Context, args: A) => Awaitable<ToolResult>,
  ): this {
    return this.#offer("t", { name, ...options }, { run: handler as Handler["run"], ...checked(options) });
  }

  /** Offers a tool whose handler returns what it wants to ask, instead of awaiting it. */
  returningTool<const S extends JsonSchema, A = FromSchema<S>>(
    name: string,
    options: ToolOptions<S, A>,
    handler: (exchange: Exchange, args: A) => Awaitable<ToolResult | Required>,
  ): this {
    return this.#offer("t", { name, returning: true, ...options }, { exchange: handler as Handler["exchange"], ...checked(options) });
  }

  /** Offers a prompt. */
  prompt(
    name: string,
    options: PromptOptions,
    handler: (ctx: Context, args: Record<string, string>) => Awaitable<PromptResult>,
  ): this {
    return this.#offer("p", { name, ...options }, { run: handler as Handler["run"] });
  }

  /** Offers a resource. */
  resource(uri: string, options: ResourceOptions, handler: (ctx: Context) => Awaitable<ResourceResult>): this {
    return this.#offer("r", { uri, ...options }, { run: handler });
  }

  /** Offers a family of resources: a template of text and `{name}` parts, each of which matches up to the next `/`. */
  resourceTemplate(
    uriTemplate: string,
    options: ResourceOptions,
    handler: (ctx: Context) => Awaitable<ResourceResult>,
  ): this {
    return this.#offer("T", { uriTemplate, ...options }, { run: handler });
  }

  /**
   * Answers a request of the Fetch API: HTTP rules, routing, states and refusals are the engine's.
   *
   * The request's body is read here. If its `signal` aborts, or the body of the response is cancelled, the request is
   * cancelled, but for a commit that has begun (A12).
   */
  async fetch(request: Request, options: RequestOptions): Promise<Response> {
    let lines = "";
    // Noted on the way: where the host is not JavaScript, each question to `Headers` crosses into it.
    const known = new Set<string>();
    request.headers.forEach((value, name) => {
      known.add(name);
      lines += `${name}: ${value}\n`;
    });
    if (!known.has("host")) lines += `host: ${new URL(request.url).host}\n`;
    const { promise, resolve } = settled<Response>();
    let pieces: ReadableStreamDefaultController<Uint8Array> | undefined;
    const sink: Sink = {
      lingers: () => request.signal?.addEventListener("abort", () => attempt?.gone(), { once: true }),
      begin: (status, headers, bytes, last) => {
        const init = { status, headers: headers as [string, string][] };
        if (last) return resolve(new Response(bytes.length === 0 ? null : (bytes as BodyInit), init));
        const body = new ReadableStream<Uint8Array>({
          start: (controller) => {
            pieces = controller;
            controller.enqueue(bytes);
          },
          cancel: () => attempt?.gone(),
        });
        resolve(new Response(body, init));
      },
      piece: (bytes, last) => {
        try {
          pieces?.enqueue(bytes);
          if (last) pieces?.close();
        } catch {
          // Cancelled meanwhile: nobody reads it.
        }
      },
      broken: (error) => {
        if (pieces === undefined) resolve(new Response("the server failed\n", { status: 500 }));
        else pieces.error(error);
      },
    };
    // What is said to be long was refused already, and no host hands over more than was said.
    const said = known.has("content-length");
    const attempt: Attempt | undefined = await this.#serve(request.method, lines, known, options, sink, async (limit) =>
      said ? new Uint8Array(await request.arrayBuffer()) : read(request.body, limit),
    );
    if (attempt !== undefined && !attempt.isOver && options.waitUntil !== undefined) options.waitUntil(attempt.over());
    return promise;
  }

  /**
   * The same for hosts with another idea of a request; {@link fetch} and the Node listener are made of it.
   *
   * @internal
   */
  async handle(
    method: string,
    headers: readonly string[],
    options: RequestOptions,
    sink: Sink,
    body: (limit: number) => Promise<Uint8Array | undefined> | Uint8Array | undefined,
  ): Promise<Attempt | undefined> {
    const authorized = { has: (name: string) => headers.some((line) => line.toLowerCase().startsWith(`${name}:`)) };
    return this.#serve(method, headers.join("\n"), authorized, options, sink, body);
  }

  async #serve(
    method: string,
    lines: string,
    headers: { has(name: string): boolean },
    options: RequestOptions,
    sink: Sink,
    body: (limit: number) => Promise<Uint8Array | undefined> | Uint8Array | undefined,
    again = false,
  ): Promise<Attempt | undefined> {
    const refuse = (problem: string): undefined => {
      this.#around.report(problem);
      const text = new TextEncoder().encode("the server's configuration does not allow this request\n");
      sink.begin(500, [["content-type", "text/plain; charset=utf-8"]], text, true);
    };
    const { principal } = options;
    if (principal === undefined || principal === "") {
      return refuse("a request without a principal: give `principal`, and `anonymous` where everybody is nobody");
    }
    if (principal === anonymous && headers.has("authorization")) {
      return refuse(
        "a request carries `Authorization`, but is taken for anonymous: verify it and name the principal, or say `anonymousIgnoringAuthorization`",
      );
    }
    if (typeof this.#options.keys === "function") await this.#refresh(options.env);
    const known = typeof principal === "symbol" ? undefined : principal;
    const { glue: living, engine } = this.#start();
    let call: Call;
    try {
      call = engine.open(method, lines);
    } catch (error) {
      // Nothing has happened yet: another instance serves it.
      if (again || !this.#trap(error, living)) throw error;
      return this.#serve(method, lines, headers, options, sink, body, true);
    }
    if (call.is_answered()) return answer(call, sink);
    let bytes: Uint8Array | undefined;
    try {
      bytes = await body(call.limit());
    } catch (error) {
      call.free();
      throw error;
    }
    if (bytes === undefined) {
      call.too_large();
      return answer(call, sink);
    }
    // Should the instance trap, the reply names the request all the same; what may trap may not be asked again.
    const safe: Sink = {
      begin: sink.begin,
      piece: sink.piece,
      lingers: () => sink.lingers?.(),
      broken: (error, begun) => {
        this.#trap(error, living);
        if (begun) sink.broken(error, begun);
        else this.#lost(bytes, sink, error);
      },
    };
    const attempt = new Attempt(living, call, safe, this.#around, known);
    this.#live.add(attempt);
    try {
      const name = typeof known === "string" ? new TextEncoder().encode(known) : known;
      call.begin(bytes, name, entropy(), Date.now());
    } catch (error) {
      attempt.abandon(error);
    }
    attempt.poll();
    return attempt;
  }

  /** Replaces the keys, also for requests that are under way. */
  setKeys(keys: readonly Key[]): void {
    const packed = pack(keys);
    this.#engine?.engine.set_keys(packed);
    this.#keys = packed;
  }

  /** Opens a ticket that came with a request for the page behind a url, for its visitor; nothing if it is not good for
   * this principal now. */
  openTicket(
    token: string,
    principal: Principal,
  ): { exchange: string; key: string; expires: number } | undefined {
    const name = typeof principal === "string" ? new TextEncoder().encode(principal) : principal;
    const text = this.#start().engine.open_ticket(token, typeof name === "symbol" ? undefined : name, Date.now());
    return text === undefined ? undefined : JSON.parse(text);
  }

  /** Tells open subscriptions of this instance that something has changed. */
  notify(change: "tools" | "prompts" | "resources" | { resource: string }): void {
    const [kind, uri] = typeof change === "object" ? ["u", change.resource] : [change[0] as string, ""];
    for (const attempt of this.#live) attempt.change(kind, uri);
  }

  /** Closes open subscriptions in order. */
  close(): void {
    for (const attempt of [...this.#live]) attempt.change("x", "");
  }

  #offer(kind: string, declared: object, handler: Partial<Handler> & { name?: string }): this {
    const name = (declared as { name?: string; uri?: string }).name ?? "";
    const text = JSON.stringify({ ...declared, parse: undefined });
    const entry: Handler = { name, run: () => undefined, args: (text) => ({ args: JSON.parse(text) }), ...handler };
    this.#offers.push([kind, text]);
    this.#handlers.push(entry);
    if (this.#engine !== undefined) this.#engine.engine.offer(kind, text);
    return this;
  }

  /** The engine in the instance that lives now. */
  #start(): { glue: Glue; engine: Engine } {
    const living = glue();
    if (this.#engine?.glue === living) return this.#engine;
    if (this.#keys === undefined) throw new ConfigError("the keys are not known yet: they come with the first request");
    try {
      const engine = new living.Engine(this.#settings, this.#keys);
      for (const [kind, declared] of this.#offers) engine.offer(kind, declared);
      return (this.#engine = { glue: living, engine });
    } catch (error) {
      trapped(error, living);
      throw new ConfigError(error instanceof Error ? error.message : String(error), { cause: error });
    }
  }

  /** An instance has trapped: everything that runs in it is lost, and the next request gets another one. */
  #trap(error: unknown, dead: Glue): boolean {
    if (!trapped(error, dead)) return false;
    if (this.#engine?.glue === dead) this.#engine = undefined;
    for (const attempt of [...this.#live]) if (attempt.instance === dead) attempt.abandon(error);
    return true;
  }

  #lost(body: Uint8Array, sink: Sink, error: unknown): void {
    try {
      answer(this.#start().engine.lost(body), sink);
    } catch {
      sink.broken(error, false);
    }
  }

  async #refresh(env: unknown): Promise<void> {
    const source = this.#options.keys as (env: unknown) => readonly Key[] | Promise<readonly Key[]>;
    if (this.#keys !== undefined && Date.now() - this.#keysAt < (this.#options.keysRefreshMs ?? 60_000)) return;
    // Of requests that come together one asks; the others go on with what is known, if anything is.
    if (this.#keysComing !== undefined) return this.#keys === undefined ? this.#keysComing : undefined;
    this.#keysComing = (async () => {
      try {
        const packed = pack(await source(env));
        if (this.#keys === undefined || packed.join() !== this.#keys.join()) {
          this.#engine?.engine.set_keys(packed);
          this.#keys = packed;
        }
      } catch (error) {
        if (this.#keys === undefined) throw error;
        this.#around.report("the keys could not be read anew; the old ones stay", error);
      } finally {
        this.#keysAt = Date.now();
        this.#keysComing = undefined;
      }
    })();
    return this.#keysComing;
  }

  #tell(): void {
    const { observe } = this.#options;
    const lines = observe === undefined ? undefined : this.#engine?.engine.audited();
    if (lines === undefined) return;
    for (const line of lines.split("\n")) if (line !== "") observe?.(line);
  }
}

function checked(options: { inputSchema?: JsonSchema; parse?: (args: unknown) => unknown }): Pick<Handler, "args"> {
  const { parse, inputSchema = {} } = options;
  if (parse === undefined) {
    return {
      args: (text) => {
        const args: unknown = JSON.parse(text);
        const problem = misfit(inputSchema, args);
        return problem === undefined ? { args } : { problem };
      },
    };
  }
  return {
    args: (text) => {
      try {
        return { args: parse(JSON.parse(text)) };
      } catch (error) {
        return { problem: `arguments: ${error instanceof Error ? error.message : "not as they should be"}` };
      }
    },
  };
}

function settled<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((fulfil) => (resolve = fulfil));
  return { promise, resolve };
}

/** Sends what the engine answers without a handler. */
function answer(call: Call, sink: Sink): undefined {
  const { status, headers } = heads(call.head() ?? "500");
  sink.begin(status, headers, call.bytes(), true);
  call.free();
}

/** 32 bytes that were never given before. They are drawn for 32 requests at a time, and wiped when they are given. */
function entropy(): Uint8Array {
  if (drawn === pool.length) {
    crypto.getRandomValues(pool);
    drawn = 0;
  }
  const bytes = pool.slice(drawn, drawn + 32);
  pool.fill(0, drawn, drawn + 32);
  drawn += 32;
  return bytes;
}
const pool = new Uint8Array(1_024);
let drawn = pool.length;

/** At most `limit` bytes, whatever its length was said to be; nothing if there are more. */
async function read(body: ReadableStream<Uint8Array> | null, limit: number): Promise<Uint8Array | undefined> {
  if (body === null) return new Uint8Array();
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > limit) {
      await reader.cancel();
      return undefined;
    }
    chunks.push(value);
  }
  return join(chunks, length);
}

/** @internal */
export function join(chunks: readonly Uint8Array[], length: number): Uint8Array {
  if (chunks.length === 1) return chunks[0] as Uint8Array;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

function pack(keys: readonly Key[]): Uint8Array {
  const secrets = keys.map((key) => (typeof key === "string" ? decode(key) : key));
  for (const secret of secrets) {
    if (secret.length < 32 || secret.length > 255) throw new ConfigError("a key has 32 to 255 bytes");
  }
  return join(
    secrets.flatMap((secret) => [Uint8Array.of(secret.length), secret]),
    secrets.reduce((sum, secret) => sum + secret.length + 1, 0),
  );
}

function decode(text: string): Uint8Array {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) throw new ConfigError("not the text of a key: base64url without padding");
  const base64 = text.replaceAll("-", "+").replaceAll("_", "/");
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
