import { join } from "./body.js";
import { ConfigError, McpError } from "./errors.js";
import { NotSent, ResumeError, StateRefused, Stopped, TimedOut, TransportError, Violation } from "./failures.js";
import type { Dialer, Trip } from "./glue.js";
import {
  type Answerers,
  type CallOptions,
  type ClientOptions,
  PendingExchange,
  RESEND,
  type Step,
  type ToolOutcome,
  free,
  unless,
} from "./pending.js";
import { type Glue, glue, trapped } from "./runtime.js";
import { isBytes, json, sensible } from "./values.js";

/** What `Trip` gives; the constants of `client.rs`. */
const MORE = 0;
const ASKED = 1;
const DONE = 2;
const PEER = 3;
const STATE_REFUSED = 4;
const ASIDE = 5;
const VIOLATION = 7;
const STOPPED = 8;
const HTTP = 9;
const NOT_SENT = 10;

export interface ToolDeclaration {
  name: string;
  title?: string;
  description?: string;
  inputSchema: { [keyword: string]: unknown };
  [member: string]: unknown;
}

/**
 * Makes calls, and puts the server's questions to whoever answers:
 *
 * ```ts
 * const client = new McpClient("https://mcp.example/mcp", { name: "app", version: "1.0.0" });
 * const result = await client.callTool("book", { people: 2 }, { elicit: async (ask) => showForm(ask) });
 * ```
 */
export class McpClient {
  readonly url: string;
  readonly #options: ClientOptions;
  readonly #settings: string;
  #dialer: { glue: Glue; dialer: Dialer } | undefined;

  /** @throws ConfigError if an option is not what it should be. */
  constructor(url: string | URL, options: ClientOptions) {
    sensible(options);
    this.url = String(url);
    const { headers: _, fetch: __, ...rest } = options;
    this.#options = options;
    this.#settings = JSON.stringify({ ...rest, firstId: random() * 2 ** 8 });
  }

  /** Takes up an exchange that was {@link PendingExchange.save saved} for this server. */
  static resume(bytes: Uint8Array, url: string | URL, options: ClientOptions): PendingExchange {
    return new McpClient(url, options).resume(bytes);
  }

  /**
   * Calls a tool to its end: every round repeats the call under a new id, with the server's state as it came.
   *
   * @throws McpError if the server answers with an error; other {@link MrtrError}s if there is no answer. A tool that
   * failed has a result: look at its `isError`.
   */
  async callTool(name: string, args: object = {}, options: CallOptions = {}): Promise<ToolOutcome> {
    return (await this.#complete(() => this.#begin("t", name, args, options), options)) as ToolOutcome;
  }

  /** Gets a prompt, whose server may ask as a tool's may. */
  async getPrompt(name: string, args: Record<string, string> = {}, options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.#complete(() => this.#begin("p", name, args, options), options);
  }

  /** Reads a resource, whose server may ask as a tool's may. */
  async readResource(uri: string, options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.#complete(() => this.#begin("r", uri, undefined, options), options);
  }

  /** The tools of the server. Their header annotations are remembered; those whose annotations are invalid are
   * left out, for they must not be called. */
  async listTools(options: CallOptions = {}): Promise<ToolDeclaration[]> {
    const tools: ToolDeclaration[] = [];
    let cursor: unknown;
    for (let pages = 0; pages < 1_000; pages++) {
      const page = await this.request("tools/list", cursor === undefined ? {} : { cursor }, options);
      const { tools: listed } = page as { tools?: ToolDeclaration[] };
      if (!Array.isArray(listed) || !listed.every((tool) => typeof tool?.name === "string")) {
        throw new Violation("tools/list gave something else than a list of tools");
      }
      const invalid = new Set(this.#dial().dialer.learn(JSON.stringify(page)).split("\n"));
      tools.push(...listed.filter(({ name }) => !invalid.has(name)));
      cursor = page["nextCursor"];
      // Servers that write every member say `null` for none.
      if (cursor === undefined || cursor === null) return tools;
      if (typeof cursor !== "string") throw new Violation("tools/list gave a cursor that is no text");
    }
    throw new Stopped("tools/list has more than 1,000 pages");
  }

  /** Any other request, such as `server/discover` or `prompts/list`. */
  async request(method: string, params: object = {}, options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.#complete(() => this.#begin("m", method, params, options), options);
  }

  /**
   * Makes a call up to its first questions, for hosts that cannot wait for a person: a chat back end stores
   * `exchange.save()` and goes on with {@link resume} days later. How long the server lets that be is its choice
   * (`stateTtlMs` **and** `limits.exchangeMs` there; its defaults are ten minutes and an hour).
   */
  async startTool(
    name: string,
    args: object = {},
    capabilities: ClientOptions["capabilities"],
    options: Omit<CallOptions, keyof Answerers> = {},
  ): Promise<PendingExchange | { done: true; result: ToolOutcome }> {
    const trip = this.#begin("t", name, args, options, capabilities);
    return (await this.#step(trip, options)) as PendingExchange | { done: true; result: ToolOutcome };
  }

  /** Takes up an exchange that was saved for this very url; elsewhere its answers would go to somebody else. */
  resume(bytes: Uint8Array): PendingExchange {
    const { glue: living, dialer } = this.#dial();
    try {
      return new PendingExchange(dialer.resume(bytes, this.url), this.url, this.#next(living));
    } catch (error) {
      trapped(error, living);
      throw new ResumeError(error instanceof Error ? error.message : String(error));
    }
  }

  #dial(): { glue: Glue; dialer: Dialer } {
    const living = glue();
    if (this.#dialer?.glue !== living) {
      if (living.Dialer === undefined) throw new ConfigError("this entry of the package has no client");
      this.#dialer = { glue: living, dialer: new living.Dialer(this.#settings) };
    }
    return this.#dialer;
  }

  #begin(
    kind: string,
    target: string,
    args: object | undefined,
    options: CallOptions,
    capabilities: ClientOptions["capabilities"] = this.#options.capabilities ?? declared(options),
  ): Trip {
    const { glue: living, dialer } = this.#dial();
    const more = {
      progress: options.onProgress !== undefined,
      logLevel: options.logLevel ?? (options.onLog === undefined ? undefined : "info"),
      mayRunTwice: options.mayRunTwice === true,
      jitter: random(),
      capabilities,
    };
    try {
      return dialer.dial(kind, target, args === undefined ? undefined : json(args), JSON.stringify(more), Date.now());
    } catch (error) {
      trapped(error, living);
      throw new NotSent(error instanceof Error ? error.message : String(error));
    }
  }

  /** Calls, and calls once more with headers that a list of tools tells of, if the server misses them. */
  async #complete(begin: () => Trip, options: CallOptions): Promise<Record<string, unknown>> {
    for (let again = false; ; again = true) {
      const trip = begin();
      try {
        return await this.#run(trip, options);
      } catch (error) {
        if (again || !(error instanceof McpError) || !missing.has(error)) throw error;
        await this.listTools({ signal: options.signal });
      }
    }
  }

  async #run(trip: Trip, options: CallOptions): Promise<Record<string, unknown>> {
    let step = await this.#step(trip, options);
    while (step instanceof PendingExchange) {
      const exchange = step;
      try {
        await exchange.answerWith(options);
      } catch (error) {
        exchange.abandon();
        throw error;
      }
      step = await exchange.proceed(options);
    }
    return step.result as Record<string, unknown>;
  }

  #next(living: Glue): Step {
    return {
      go: (trip, options) => this.#step(trip, options),
      trapped: (error) => trapped(error, living),
    };
  }

  /** Sends what the trip has to send, up to the next questions or the outcome. */
  async #step(
    trip: Trip,
    options: CallOptions,
  ): Promise<PendingExchange | { done: true; result: ToolOutcome }> {
    const living = glue();
    let keep = false;
    try {
      for (;;) {
        const code = await this.#leg(trip, options);
        if (code === RESEND) continue;
        if (code === ASKED) {
          keep = true;
          return new PendingExchange(trip, this.url, this.#next(living));
        }
        if (code === DONE) return { done: true, result: JSON.parse(trip.result() ?? "{}") as ToolOutcome };
        throw this.#fault(trip, code);
      }
    } catch (error) {
      if (error instanceof Thrown) throw error.cause;
      trapped(error, living);
      throw error;
    } finally {
      if (!keep) free(trip);
    }
  }

  #fault(trip: Trip, code: number): Error {
    switch (code) {
      case PEER:
      case STATE_REFUSED: {
        trip.settle();
        const data = trip.peer_data();
        const Kind = code === PEER ? McpError : StateRefused;
        const error = new Kind(trip.peer_code(), trip.peer_message(), data === undefined ? undefined : JSON.parse(data));
        if (trip.misses_headers()) missing.add(error);
        return error;
      }
      case VIOLATION:
        return new Violation(trip.text());
      case STOPPED:
        return new Stopped(trip.text());
      case NOT_SENT:
        return new NotSent(trip.text());
      default:
        return new TransportError(trip.text());
    }
  }

  /** One request and its reply. */
  async #leg(trip: Trip, options: CallOptions): Promise<number> {
    const abort = new AbortController();
    let late = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const watch = () => {
      clearTimeout(timer);
      const until = trip.timeout();
      if (until === 0) return;
      // A timer has 31 bits.
      const wait = Math.min(Math.max(0, until - Date.now()), 0x7fff_ffff);
      timer = setTimeout(() => ((late = true), abort.abort()), wait);
    };
    const leave = () => abort.abort();
    options.signal?.addEventListener("abort", leave, { once: true });
    try {
      options.signal?.throwIfAborted();
      watch();
      return await this.#exchange(trip, options, abort.signal, watch);
    } catch (error) {
      if (late) throw new TimedOut();
      options.signal?.throwIfAborted();
      if (!(error instanceof Broken)) throw error;
      const code = trip.lost(Date.now());
      if (code === RESEND) return code;
      throw new TransportError(`the connection failed: ${String((error.cause as Error | undefined)?.message ?? error.cause)}`, {
        cause: error.cause,
      });
    } finally {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", leave);
      // Ends a stream that goes on behind the reply.
      abort.abort();
    }
  }

  async #exchange(trip: Trip, options: CallOptions, signal: AbortSignal, watch: () => void): Promise<number> {
    const { headers: more, fetch: send = fetch } = this.#options;
    let headers: Headers;
    try {
      headers = new Headers(typeof more === "function" ? await unless(signal, more()) : more);
    } catch (error) {
      throw new Thrown(error);
    }
    for (const line of trip.headers().split("\n")) {
      const colon = line.indexOf(": ");
      if (colon > 0) headers.set(line.slice(0, colon), line.slice(colon + 2));
    }
    const body = trip.body() as BodyInit;
    const init: RequestInit = { method: "POST", headers, body, signal, redirect: "manual" };
    const response = await broken(unless(signal, (async () => send(this.url, init))()));
    if (response?.headers === undefined) throw new Broken(new Error("fetch gave no response"));
    // All that a browser tells of it.
    if (response.type === "opaqueredirect") throw new TransportError("redirected elsewhere");
    // A server in this process may have answered all the same.
    signal.throwIfAborted();
    const kind = response.headers.get("content-type") ?? undefined;
    if (!trip.streams(response.status, kind)) {
      const bytes = await whole(response, trip.limit(), signal);
      const code = trip.whole(response.status, kind, bytes, Date.now());
      if (code === HTTP) throw new TransportError(trip.text(), { status: response.status });
      return code;
    }
    const next = reader(response, signal);
    for (;;) {
      const value = await next();
      if (value === undefined) throw new Broken(new Error("the stream ended before the reply"));
      trip.push(value);
      for (;;) {
        const code = trip.next(Date.now());
        if (code === MORE) break;
        if (code !== ASIDE) return code;
        watch();
        hear(JSON.parse(trip.text()) as Aside, options);
      }
    }
  }
}

/** Errors after which a list of tools would help. */
const missing = new WeakSet<Error>();

/** By a function of the host's. */
class Thrown extends Error {
  constructor(override readonly cause: unknown) {
    super("thrown");
  }
}

class Broken extends Error {
  constructor(override readonly cause: unknown) {
    super("broken");
  }
}

function broken<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw new Broken(error);
  });
}

/** What gives the pieces of a body, and nothing at its end. It is over when the signal aborts, for its source too: a `fetch`
 * of the host's own may not look at signals. */
function reader(response: Response, signal: AbortSignal): () => Promise<Uint8Array | undefined> {
  if (response.body === null) return async () => undefined;
  const reader = response.body.getReader();
  signal.addEventListener("abort", () => void reader.cancel().catch(() => {}));
  return async () => {
    const { value } = await broken(reader.read());
    signal.throwIfAborted();
    if (value !== undefined && !isBytes(value)) throw new Broken(new Error("its body gives something else than bytes"));
    return value;
  };
}

async function whole(response: Response, limit: number, signal: AbortSignal): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const next = reader(response, signal);
  for (;;) {
    const value = await next();
    if (value === undefined) break;
    length += value.length;
    if (length > limit) throw new TransportError(`the reply is over the limit of ${limit} bytes`);
    chunks.push(value);
  }
  return join(chunks, length);
}

function declared({ elicit, sample, roots }: Answerers): ClientOptions["capabilities"] {
  return {
    ...(elicit && { elicitation: { form: {}, url: {} } }),
    ...(sample && { sampling: {} }),
    ...(roots && { roots: {} }),
  };
}

type Aside = { method: string; params: { [name: string]: never } };

function hear({ method, params }: Aside, { onProgress, onLog }: CallOptions): void {
  try {
    if ("progress" in params) onProgress?.(params as never);
    else if ("level" in params && method.startsWith("notifications/")) onLog?.(params as never);
  } catch (error) {
    throw new Thrown(error);
  }
}

/** A whole number below 2³². */
function random(): number {
  return (crypto.getRandomValues(new Uint32Array(1)) as unknown as [number])[0];
}
