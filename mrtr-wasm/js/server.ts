import { Attempt } from "./attempt.js";
import { read } from "./body.js";
import type { Context } from "./context.js";
import { ConfigError } from "./errors.js";
import type { Exchange, Required } from "./exchange.js";
import type { Call, Engine } from "./glue.js";
import {
  anonymous,
  type Awaitable,
  type Key,
  type PromptOptions,
  type PromptResult,
  type RequestOptions,
  type ResourceOptions,
  type ResourceResult,
  type ServerOptions,
  type ToolOptions,
  type ToolResult,
  type Principal,
} from "./options.js";
import { named, nobody, pack } from "./principal.js";
import { type Handler, type Sink, type Surroundings, checked, heads } from "./reply.js";
import { type Glue, glue, isLoaded, trapped } from "./runtime.js";
import type { FromSchema, JsonSchema } from "./schema.js";
import { json, quietly, sensible } from "./values.js";

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
  /** What is read of a request's headers, as the engine said when it was last offered something. */
  #read: Names | undefined;
  #keys: Uint8Array | undefined;
  #keysAt = 0;
  /** How often the keys were asked for, and which answer is in use. */
  #keysAsked = 0;
  #keysUsed = 0;

  /** @throws ConfigError if an option is not what it should be. */
  constructor(options: ServerOptions) {
    sensible(options);
    const { keys, keysRefreshMs: _, observe, report, ledger, ...rest } = options;
    const { store, ...policy } = ledger ?? { store: undefined };
    if (ledger !== undefined && !(typeof store?.get === "function" && typeof store.compareAndSet === "function")) {
      throw new ConfigError("ledger.store: a store with `get` and `compareAndSet` is needed");
    }
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
      report: (message, error) => {
        const said = [`mrtr: ${message}`, error].slice(0, error === undefined ? 1 : 2);
        // What was thrown may throw again when it is looked at.
        quietly(
          () => (report === undefined ? console.error(...said) : report(message, error)),
          () => console.error(said[0]),
        );
      },
      ended: (attempt) => {
        this.#live.delete(attempt);
        this.#tell();
      },
    };
    // What is wrong with the settings is said now where that is possible: with keys that are known, in a loaded engine.
    if (this.#keys !== undefined && isLoaded()) this.#start();
  }

  /**
   * Offers a tool. The handler runs again from its start in every round; see {@link Context} for what that means.
   *
   * @throws ConfigError if the name is taken or a schema is not fit to be sent; where the keys come with the first
   * request, that request is refused with it.
   */
  tool<const S extends JsonSchema, A = FromSchema<S>>(
    name: string,
    options: ToolOptions<S, A>,
    handler: (ctx: Context, args: A) => Awaitable<ToolResult>,
  ): this {
    return this.#offer("t", { name, ...options }, { run: handler as Handler["run"], ...checked(options) }, handler);
  }

  /** Offers a tool whose handler returns what it wants to ask, instead of awaiting it. */
  returningTool<const S extends JsonSchema, A = FromSchema<S>>(
    name: string,
    options: ToolOptions<S, A>,
    handler: (exchange: Exchange, args: A) => Awaitable<ToolResult | Required>,
  ): this {
    return this.#offer("t", { name, returning: true, ...options }, { exchange: handler as Handler["exchange"], ...checked(options) }, handler);
  }

  /** Offers a prompt. */
  prompt(
    name: string,
    options: PromptOptions,
    handler: (ctx: Context, args: Record<string, string>) => Awaitable<PromptResult>,
  ): this {
    return this.#offer("p", { name, ...options }, { run: handler as Handler["run"], member: "messages" }, handler);
  }

  /** Offers a resource. */
  resource(uri: string, options: ResourceOptions, handler: (ctx: Context) => Awaitable<ResourceResult>): this {
    return this.#offer("r", { uri, ...options }, { run: handler, member: "contents" }, handler);
  }

  /** Offers a family of resources: a template of text and `{name}` parts, each of which matches up to the next `/`. */
  resourceTemplate(
    uriTemplate: string,
    options: ResourceOptions,
    handler: (ctx: Context) => Awaitable<ResourceResult>,
  ): this {
    return this.#offer("T", { uriTemplate, ...options }, { run: handler, member: "contents" }, handler);
  }

  /**
   * Answers a request of the Fetch API: HTTP rules, routing, states and refusals are the engine's.
   *
   * The request's body is read here. If its `signal` aborts, or the body of the response is cancelled, the request is
   * cancelled, but for a commit that has begun (A12). Who aborts before the reply has begun gets a response with the
   * status 499, which nobody reads; a handler that needs nothing but promises is done before anybody looks.
   */
  async fetch(request: Request, options: RequestOptions): Promise<Response> {
    const { headers } = request;
    let said = false;
    // Those that are read, by name: where the host is not JavaScript each header that is handed over crosses into it, and
    // there are thirty behind a proxy.
    const lines = ([names, more]: Names) => {
      let [text, page] = ["", false];
      const read = (name: string) => {
        const value = headers.get(name) ?? (name === "Host" ? new URL(request.url).host : null);
        if (value === null) return;
        if (name === "Content-Length") said = true;
        if (name === "Origin") page = true;
        text += `${name}: ${value}\n`;
      };
      names.forEach(read);
      if (page) more.forEach(read);
      return text;
    };
    const authorized = () => headers.has("authorization");
    const { promise, resolve } = settled<Response>();
    let pieces: ReadableStreamDefaultController<Uint8Array> | undefined;
    const gone = () => {
      attempt?.gone();
      resolve(new Response(null, { status: 499 }));
      // Nothing happens to one that has ended.
      pieces?.error(request.signal.reason);
    };
    const sink: Sink = {
      // Not looked at before: a host makes a signal of its own for it, and most requests are answered at once.
      lingers: () => {
        const { signal } = request;
        if (signal?.aborted) gone();
        else signal?.addEventListener("abort", gone, { once: true });
      },
      begin: (status, headers, bytes, last) => {
        const init = { status, headers: native(headers) };
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
    if (request.bodyUsed) throw new ConfigError("the request's body was read already: hand over the request before, or a clone");
    // What is said to be long was refused already, and no host hands over more than was said.
    const attempt: Attempt | undefined = await this.#serve(request.method, lines, authorized, options, sink, async (limit) =>
      said ? new Uint8Array(await request.arrayBuffer()) : read(request.body, limit),
    );
    if (attempt !== undefined && !attempt.isOver) {
      // It runs already: what is wrong here is no reason to lose its reply.
      quietly(
        () => options.waitUntil?.(attempt.over()),
        (error) => this.#around.report("waitUntil threw; is it bound?", error),
      );
    }
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
    const authorized = () => headers.some((line) => line.toLowerCase().startsWith("authorization:"));
    return this.#serve(method, () => headers.join("\n"), authorized, options, sink, body);
  }

  async #serve(
    method: string,
    lines: (names: Names) => string,
    authorized: () => boolean,
    options: RequestOptions,
    sink: Sink,
    body: (limit: number) => Promise<Uint8Array | undefined> | Uint8Array | undefined,
    again = false,
  ): Promise<Attempt | undefined> {
    const refuse = (problem: string, error?: unknown): undefined => {
      this.#around.report(problem, error);
      const text = new TextEncoder().encode("the server's configuration does not allow this request\n");
      sink.begin(500, [["content-type", "text/plain; charset=utf-8"]], text, true);
    };
    const principal = options?.principal;
    const name = named(principal);
    if (name === nobody) {
      return refuse(
        "a request without a principal: give a text or bytes that are not empty as `principal`, and `anonymous` where everybody is nobody",
      );
    }
    if (principal === anonymous && authorized()) {
      return refuse(
        "a request carries `Authorization`, but is taken for anonymous: verify it and name the principal, or say `anonymousIgnoringAuthorization`",
      );
    }
    const known = typeof principal === "symbol" ? undefined : principal;
    let started: { glue: Glue; engine: Engine };
    try {
      if (typeof this.#options.keys === "function") await this.#refresh(options.env);
      started = this.#start();
    } catch (error) {
      return refuse("the server cannot be started", error);
    }
    const { glue: living, engine } = started;
    let call: Call;
    try {
      call = engine.open(method, lines((this.#read ??= names(engine))));
    } catch (error) {
      // Nothing has happened yet: another instance serves it.
      if (again || !this.#trap(error, living)) throw error;
      return this.#serve(method, lines, authorized, options, sink, body, true);
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
    const name = named(principal);
    if (name === nobody) return undefined;
    const text = this.#start().engine.open_ticket(token, name, Date.now());
    return text === undefined ? undefined : JSON.parse(text);
  }

  /**
   * Tells open subscriptions of this instance that something has changed.
   *
   * @throws TypeError if it is none of these.
   */
  notify(change: "tools" | "prompts" | "resources" | { resource: string }): void {
    const uri = (change as { resource?: unknown } | undefined)?.resource;
    const list = ["tools", "prompts", "resources"].find((name) => name === change);
    if (list === undefined && typeof uri !== "string") throw new TypeError("notify: `tools`, `prompts`, `resources` or `{ resource }` is needed");
    for (const attempt of this.#live) attempt.change(list?.[0] ?? "u", (uri as string | undefined) ?? "");
  }

  /** Closes open subscriptions in order. */
  close(): void {
    for (const attempt of [...this.#live]) attempt.change("x", "");
  }

  #offer(kind: string, declared: object, handler: Partial<Handler>, given: unknown): this {
    const { name = "", stateTtlMs } = declared as { name?: string; stateTtlMs?: number };
    if (typeof given !== "function") throw new ConfigError(`${JSON.stringify(name)}: a handler is needed`);
    sensible({ stateTtlMs }, `${name}: `);
    const text = json({ ...declared, parse: undefined }) ?? "";
    const entry: Handler = { name, run: () => undefined, args: (text) => ({ args: JSON.parse(text) }), member: "content", ...handler };
    let running: { glue: Glue; engine: Engine } | undefined;
    try {
      // The one that lives now: the instance of an earlier one may have trapped in somebody else's hands.
      if (this.#engine !== undefined) running = this.#start();
      // Both count on: what the engine does not take gets no number here either.
      running?.engine.offer(kind, text);
      this.#read = running && names(running.engine);
    } catch (error) {
      if (running !== undefined) this.#trap(error, running.glue);
      throw new ConfigError(error instanceof Error ? error.message : String(error), { cause: error });
    }
    this.#offers.push([kind, text]);
    this.#handlers.push(entry);
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
      this.#read = names(engine);
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

  /**
   * Every request asks for itself as long as nothing is known, and waits for nobody else's: a worker's runtime may give up
   * the request that began it. After that one asks at a time, and goes on with what is known if that takes too long.
   */
  async #refresh(env: unknown): Promise<void> {
    const source = this.#options.keys as (env: unknown) => readonly Key[] | Promise<readonly Key[]>;
    const before = this.#keys;
    if (before !== undefined && Date.now() - this.#keysAt < (this.#options.keysRefreshMs ?? 60_000)) return;
    this.#keysAt = Date.now();
    const turn = ++this.#keysAsked;
    const read = async () => {
      const packed = pack(await source(env));
      // What was asked for later is newer.
      if (turn < this.#keysUsed) return;
      if (this.#keys === undefined || packed.join() !== this.#keys.join()) {
        this.#engine?.engine.set_keys(packed);
        this.#keys = packed;
      }
      this.#keysUsed = turn;
    };
    if (before === undefined) return read();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer in ${KEYS_MS} ms`)), KEYS_MS);
    });
    try {
      await Promise.race([read(), late]);
    } catch (error) {
      this.#around.report("the keys could not be read anew; the old ones stay", error);
    } finally {
      clearTimeout(timer);
    }
  }

  #tell(): void {
    const { observe } = this.#options;
    const lines = observe === undefined ? undefined : this.#engine?.engine.audited();
    if (observe === undefined || lines === undefined) return;
    const failed = (error: unknown) => this.#around.report("observe threw", error);
    for (const line of lines.split("\n")) if (line !== "") quietly(() => observe(line), failed);
  }
}

const natives = new WeakMap<object, Headers>();

/** The same as the host's own object. There are few different lists, and each name in one crosses into the host. */
function native(headers: readonly (readonly [string, string])[]): Headers {
  let made = natives.get(headers);
  if (made === undefined) natives.set(headers, (made = new Headers(headers as [string, string][])));
  return made;
}

/** Names of headers: of any request, and of one with an `Origin`. */
type Names = readonly [readonly string[], readonly string[]];

function names(engine: Engine): Names {
  const [always = "", more = ""] = engine.headers().split("\n\n");
  return [always.split("\n"), more.split("\n")];
}

/** What a function of the keys may take once some are known. */
const KEYS_MS = 5_000;

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
