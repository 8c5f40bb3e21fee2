import { ConfigError, McpError, MrtrError } from "./errors.js";
import type { Dialer, Trip } from "./glue.js";
import type { Root, Sampled, Sampling } from "./context.js";
import { type Glue, glue, trapped } from "./runtime.js";
import type { FormSchema } from "./schema.js";

/** What `Trip` gives; the constants of `client.rs`. */
const MORE = 0;
const ASKED = 1;
const DONE = 2;
const PEER = 3;
const STATE_REFUSED = 4;
const ASIDE = 5;
const RESEND = 6;
const VIOLATION = 7;
const STOPPED = 8;
const HTTP = 9;
const NOT_SENT = 10;

/** The server refuses a retry, most likely for its state: it has expired, or the server's keys have changed (G-11). The
 * call can be made anew. */
export class StateRefused extends McpError {
  override readonly code = "MRTR_STATE_REFUSED";
}
/** The server breaks the protocol. */
export class Violation extends MrtrError {
  constructor(message: string) {
    super("MRTR_VIOLATION", message);
  }
}
/** The reply is legal, but this client goes no further: too many rounds, or a question that was declined comes again. */
export class Stopped extends MrtrError {
  constructor(message: string) {
    super("MRTR_STOPPED", message);
  }
}
/** No message came back, or the connection broke. */
export class TransportError extends MrtrError {
  constructor(message: string, options?: ErrorOptions) {
    super("MRTR_TRANSPORT", message, options);
  }
}
/** The reply did not come in time; the request was cancelled. */
export class TimedOut extends MrtrError {
  constructor() {
    super("MRTR_TIMED_OUT", "the reply did not come in time");
  }
}
/** The retry was not sent. */
export class NotSent extends MrtrError {
  constructor(message: string) {
    super("MRTR_NOT_SENT", message);
  }
}
/** A question that nobody could be asked, or whose answer did not fit three times. Nothing was sent for it. */
export class Unanswered extends MrtrError {
  readonly key: string;
  constructor(key: string, reason: string, options?: ErrorOptions) {
    super("MRTR_UNANSWERED", `${JSON.stringify(key)} is not answered: ${reason}`, options);
    this.key = key;
  }
}
/** Saved bytes that cannot be taken up here. */
export class ResumeError extends MrtrError {
  constructor(message: string) {
    super("MRTR_RESUME", message);
  }
}

type Before = "accept" | "decline" | "cancel";

/** A question, as a person is asked it. `server` is a name that the server gives itself: show it as a claim. */
export type ClientAsk = { key: string; server?: string; before?: Before; problem?: string } & (
  | { kind: "form"; params: { message: string; requestedSchema: FormSchema } }
  /** `before: "accept"` says that it was opened already: do not open it again, ask when to go on (G-32). */
  | { kind: "url"; params: { message: string; url: string } }
  | { kind: "sampling"; params: Sampling }
  | { kind: "roots"; params: object }
);
type AskOf<K> = ClientAsk & { kind: K };

/** What a person said to a form or a url. */
export type Answer =
  | { action: "accept"; content?: { readonly [name: string]: unknown } }
  | { action: "decline" }
  | { action: "cancel" };

/** Who answers. Declare only what is there: the server is told (`capabilities` follow from it). */
export interface Answerers {
  /** Shows a form, or asks for consent to open a url. An answer that does not fit is asked for again, with
   * `problem`, twice. */
  elicit?: (ask: AskOf<"form"> | AskOf<"url">) => Answer | Promise<Answer>;
  /** Asks the model, with the person's consent. */
  sample?: (ask: AskOf<"sampling">) => Sampled | Promise<Sampled>;
  /** The permitted folders. */
  roots?: (ask: AskOf<"roots">) => readonly Root[] | Promise<readonly Root[]>;
}

export interface CallOptions extends Answerers {
  signal?: AbortSignal;
  /** Hears notifications about the call; asks for progress. */
  onProgress?: (progress: { progress: number; total?: number; message?: string }) => void;
  /** Hears log messages of this level and above. */
  onLog?: (message: { level: string; data: unknown; logger?: string }) => void;
  logLevel?: string;
  /** The call does no harm if it runs twice: it is sent again when its connection breaks. */
  mayRunTwice?: boolean;
}

export interface ClientOptions {
  /** Who the client says it is. */
  name: string;
  version: string;
  title?: string;
  /** Headers for every request, such as `Authorization`. */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
  /** Other than the global one. */
  fetch?: typeof fetch;
  /** What is declared where a call does not say otherwise by its answerers. */
  capabilities?: { elicitation?: { form?: object; url?: object }; sampling?: object; roots?: object };
  policy?: {
    /** Retries with answers. Default 10. */
    retries?: number;
    resends?: number;
    pauseFirstMs?: number;
    pauseLongestMs?: number;
    requestTimeoutMs?: number;
    requestLongestMs?: number;
    /** Whether the time people take to answer counts towards `limits.exchangeMs`. Default: it does not. */
    countThinking?: boolean;
  };
  limits?: { messageBytes?: number; asksAccepted?: number; answerBytes?: number; stateAccepted?: number; exchangeMs?: number };
}

export interface ToolOutcome {
  content: { type: string; text?: string; [member: string]: unknown }[];
  structuredContent?: unknown;
  isError?: boolean;
  [member: string]: unknown;
}
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

  constructor(url: string | URL, options: ClientOptions) {
    this.url = String(url);
    const { headers: _, fetch: __, ...rest } = options;
    this.#options = options;
    this.#settings = JSON.stringify({ ...rest, firstId: Math.floor(Math.random() * 2 ** 40) });
  }

  /** Takes up an exchange that was {@link PendingExchange.save saved} for this server. */
  static resume(bytes: Uint8Array, url: string | URL, options: ClientOptions): PendingExchange {
    return new McpClient(url, options).resume(bytes);
  }

  /**
   * Calls a tool to its end.
   *
   * @throws McpError if the server answers with an error; other {@link MrtrError}s if there is no answer. A tool that
   * failed has a result: look at its `isError`.
   */
  async callTool(name: string, args: object = {}, options: CallOptions = {}): Promise<ToolOutcome> {
    return (await this.#complete(() => this.#begin("t", name, args, options), options)) as ToolOutcome;
  }

  /** Gets a prompt. */
  async getPrompt(name: string, args: Record<string, string> = {}, options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.#complete(() => this.#begin("p", name, args, options), options);
  }

  /** Reads a resource. */
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
      const invalid = new Set(this.#dial().dialer.learn(JSON.stringify(page)).split("\n"));
      tools.push(...(page["tools"] as ToolDeclaration[]).filter(({ name }) => !invalid.has(name)));
      cursor = page["nextCursor"];
      if (cursor === undefined) break;
    }
    return tools;
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
      jitter: Math.floor(Math.random() * 2 ** 32),
      capabilities,
    };
    try {
      return dialer.dial(kind, target, args === undefined ? undefined : JSON.stringify(args), JSON.stringify(more), Date.now());
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
        await this.listTools({ ...(options.signal && { signal: options.signal }) });
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
      case HTTP:
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
    const headers = new Headers(typeof more === "function" ? await more() : more);
    for (const line of trip.headers().split("\n")) {
      const colon = line.indexOf(": ");
      if (colon > 0) headers.set(line.slice(0, colon), line.slice(colon + 2));
    }
    const body = trip.body() as BodyInit;
    const response = await broken(send(this.url, { method: "POST", headers, body, signal, redirect: "manual" }));
    const kind = response.headers.get("content-type") ?? undefined;
    if (!trip.streams(response.status, kind)) {
      const bytes = await whole(response, trip.limit());
      return trip.whole(response.status, kind, bytes, Date.now());
    }
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    for (;;) {
      const { done, value } = await broken(reader.read());
      if (done) throw new Broken(new Error("the stream ended before the reply"));
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

interface Step {
  go(trip: Trip, options: CallOptions): Promise<PendingExchange | { done: true; result: ToolOutcome }>;
  trapped(error: unknown): boolean;
}

/**
 * A call that waits for answers: plain data, which can be saved and taken up elsewhere.
 *
 * Give it up with {@link abandon}, or it stays in memory until it is collected.
 */
export class PendingExchange {
  readonly #trip: Trip;
  readonly #origin: string;
  readonly #step: Step;
  #gone = false;

  /** @internal */
  constructor(trip: Trip, origin: string, step: Step) {
    this.#trip = trip;
    this.#origin = origin;
    this.#step = step;
  }

  /** The questions of this round, in their order; none if the server only wants to be asked again. */
  get asks(): ClientAsk[] {
    const trip = this.#use();
    const server = trip.server();
    const asks = JSON.parse(trip.asks()) as ClientAsk[];
    return server === undefined ? asks : asks.map((ask) => ({ ...ask, server }));
  }

  /** The keys that are not answered yet. */
  get missing(): string[] {
    return JSON.parse(this.#use().missing()) as string[];
  }

  /** Keeps an answer. Gives what is wrong with it, if anything is; then it is not kept. */
  answer(key: string, answer: Answer | { sampled: Sampled } | { roots: readonly Root[] }): string | undefined {
    const trip = this.#use();
    if ("sampled" in answer) return trip.answer(key, "s", JSON.stringify(answer.sampled));
    if ("roots" in answer) return trip.answer(key, "r", JSON.stringify(answer.roots));
    if (answer.action !== "accept") return trip.answer(key, answer.action === "decline" ? "d" : "c", "null");
    const url = this.asks.some((ask) => ask.key === key && ask.kind === "url");
    return url ? trip.answer(key, "o", "null") : trip.answer(key, "a", JSON.stringify(answer.content ?? {}));
  }

  /** Puts the open questions to whoever answers, one after the other. */
  async answerWith(answerers: Answerers): Promise<void> {
    const { missing } = this;
    const open = this.asks.filter((ask) => missing.includes(ask.key));
    // Nobody is asked something whose answer will not be sent because another one cannot be had.
    for (const ask of open) {
      if (answererOf(ask, answerers) === undefined) throw new Unanswered(ask.key, `nobody answers a ${ask.kind} ask`);
    }
    for (const ask of open) {
      const answer = answererOf(ask, answerers) as (ask: ClientAsk) => ReturnType<Asker>;
      let problem: string | undefined;
      for (let attempt = 0; attempt < 3; attempt++) {
        let given: Awaited<ReturnType<Asker>>;
        try {
          given = await answer(problem === undefined ? ask : { ...ask, problem });
        } catch (error) {
          throw new Unanswered(ask.key, "the answerer failed", { cause: error });
        }
        problem = this.answer(ask.key, given);
        if (problem === undefined) break;
      }
      if (problem !== undefined) throw new Unanswered(ask.key, problem);
    }
  }

  /**
   * The exchange with the answers so far. **Anybody who can change the bytes can change the call**: keep them where only
   * you write; and where only you read, for the state in them is a credential.
   */
  save(): Uint8Array {
    const bytes = this.#use().save(this.#origin);
    if (bytes === undefined) throw new NotSent("no question is open");
    return bytes;
  }

  /** Sends the answers, up to the next questions or the result. Every question needs an answer. */
  async proceed(options: CallOptions = {}): Promise<PendingExchange | { done: true; result: ToolOutcome }> {
    const trip = this.#use();
    for (;;) {
      if (trip.proceed(Date.now()) === RESEND) break;
      const at = trip.not_before();
      if (at === 0) throw new NotSent(trip.text());
      await new Promise((go) => setTimeout(go, Math.max(1, at - Date.now())));
      options.signal?.throwIfAborted();
    }
    this.#gone = true;
    return this.#step.go(trip, options);
  }

  /** Gives the call up. Nothing is sent: between rounds no request is under way. */
  abandon(): void {
    if (this.#gone) return;
    this.#gone = true;
    free(this.#trip);
  }

  #use(): Trip {
    if (this.#gone) throw new NotSent("this exchange has gone on or was given up");
    return this.#trip;
  }
}

/** Errors after which a list of tools would help. */
const missing = new WeakSet<Error>();

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

async function whole(response: Response, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  while (reader !== undefined) {
    const { done, value } = await broken(reader.read());
    if (done) break;
    length += value.length;
    if (length > limit) throw new TransportError(`the reply is over the limit of ${limit} bytes`);
    chunks.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

type Asker = (ask: ClientAsk) => Promise<Answer | { sampled: Sampled } | { roots: readonly Root[] }>;

function answererOf(ask: ClientAsk, { elicit, sample, roots }: Answerers): Asker | undefined {
  switch (ask.kind) {
    case "form":
    case "url":
      return elicit && (async (ask) => elicit(ask as AskOf<"form"> | AskOf<"url">));
    case "sampling":
      return sample && (async (ask) => ({ sampled: await sample(ask as AskOf<"sampling">) }));
    case "roots":
      return roots && (async (ask) => ({ roots: await roots(ask as AskOf<"roots">) }));
  }
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
  if ("progress" in params) onProgress?.(params as never);
  else if ("level" in params && method.startsWith("notifications/")) onLog?.(params as never);
}

function free(trip: Trip): void {
  try {
    trip.free();
  } catch {
    // Only in an instance that has trapped, whose memory goes as a whole.
  }
}
