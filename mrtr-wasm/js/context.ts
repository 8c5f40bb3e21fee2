import { Ask } from "./ask.js";
import type { Attempt } from "./attempt.js";
import { AskFailed, AskInvalid } from "./errors.js";
import { json } from "./values.js";
import type { Content, Elicited, Form, FormSchema, Unavailable } from "./schema.js";

/** A request that the client's model be asked (R-145…R-149). Deprecated in the protocol, and works. */
export interface Sampling {
  messages: readonly { role: "user" | "assistant"; content: unknown }[];
  maxTokens: number;
  systemPrompt?: string;
  temperature?: number;
  stopSequences?: readonly string[];
  modelPreferences?: object;
  metadata?: object;
  tools?: readonly object[];
  toolChoice?: object;
}
/** What the model said. */
export interface Sampled {
  role: string;
  content: unknown;
  model: string;
  stopReason?: string;
}
/** A folder or file that the client lets the server see. Check it against traversal before use. */
export interface Root {
  uri: string;
  name?: string;
}

export type LogLevel = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** What an ask may be told besides. */
export interface AskOptions {
  /** Go on without it if the client did not declare that it can answer: it then gives `unavailable` (G-13). Without
   * this, such a request is refused and the client told what it lacks. */
  optional?: boolean | undefined;
  /** Take no answer that comes without a state (A7): for questions whose being asked matters. Confirmations and urls are
   * so always. */
  solicited?: boolean | undefined;
}
type Optional = AskOptions & { optional: true };

/**
 * A handler's context: the request, the asks, and what stays the same from run to run.
 *
 * **Every line of a handler runs again in every round**, up to the last answer. So:
 * - effects and readings of the outside world go into {@link once} (before asks) and {@link onCommit} (after them);
 * - time comes from {@link started}, randomness from {@link seed};
 * - nothing but asks is awaited beside an ask; what must be is wrapped in {@link io};
 * - locks and timers that are held across an ask are let go in {@link onSuspend}, for `finally` does not run.
 *
 * Keys are `[A-Za-z0-9_.-]{1,64}`, chosen by you: they are on the wire, and they survive an ask that is put in above.
 * Using one again, in a loop say, asks anew under `key#1`, `key#2`, … (A1).
 */
export class Context {
  readonly #attempt: Attempt;
  /** The once-value that is made in this very turn. */
  #making: string | undefined;

  /** @internal */
  constructor(attempt: Attempt) {
    this.#attempt = attempt;
  }

  /**
   * Asks for a form to be filled in. The content is checked against the form before it gets here, and asked
   * again up to three times if it does not fit (R-132, G-18); then {@link AskInvalid} is thrown.
   *
   * ```ts
   * const answer = await ctx.elicit("date", {
   *   message: "Which day?",
   *   schema: { type: "object", properties: { day: { type: "string", format: "date" } }, required: ["day"] },
   * });
   * if (answer.action === "accept") answer.content.day; // string
   * ```
   */
  elicit<const S extends FormSchema>(key: string, form: Form<S>, options: Optional): Ask<Elicited<Content<S>> | Unavailable>;
  elicit<const S extends FormSchema>(key: string, form: Form<S>, options?: AskOptions): Ask<Elicited<Content<S>>>;
  elicit(key: string, form: Form, options: AskOptions = {}): Ask<unknown> {
    const schema = json(form.schema) ?? "";
    const wait = this.#attempt.use(`elicit(${key})`, (call) =>
      call.ask("f", key, form.message, schema, options.optional === true, options.solicited === true),
    );
    return this.#ask(wait, key, elicited);
  }

  /**
   * Asks for a yes: `true` for that and nothing else. Never taken from a request without a state: an answer counts only
   * for the message that was shown (A7).
   */
  confirm(key: string, message: string, options: Optional): Ask<boolean | undefined>;
  confirm(key: string, message: string, options?: AskOptions): Ask<boolean>;
  confirm(key: string, message: string, options: AskOptions = {}): Ask<unknown> {
    const wait = this.#attempt.use(`confirm(${key})`, (call) =>
      call.ask("c", key, message, "", options.optional === true, true),
    );
    return this.#ask(wait, key, (letter) => (letter === "u" ? undefined : letter === "a"));
  }

  /**
   * Asks that a url be opened. Accept is consent to open it, not completion.
   *
   * With `until`, accept means that the errand behind the url is done: after the consent `until` is called, and while it
   * says no the client's retry is held for a while (`replay.holdUrlsMs`, 25 s) and looked at every second; then the same
   * url is asked again (A10).
   */
  elicitUrl(
    key: string,
    ask: { message: string; url: string },
    options: AskOptions & { optional: true; until?: () => boolean | Promise<boolean> },
  ): Ask<{ action: "accept" | "decline" | "cancel" | "unavailable" }>;
  elicitUrl(
    key: string,
    ask: { message: string; url: string },
    options?: AskOptions & { until?: () => boolean | Promise<boolean> },
  ): Ask<{ action: "accept" | "decline" | "cancel" }>;
  elicitUrl(
    key: string,
    { message, url }: { message: string; url: string },
    options: AskOptions & { until?: () => boolean | Promise<boolean> } = {},
  ): Ask<{ action: "accept" | "decline" | "cancel" | "unavailable" }> {
    const optional = options.optional === true;
    const wait = this.#attempt.use(`elicitUrl(${key})`, (call) =>
      options.until === undefined
        ? call.ask("u", key, message, url, optional, true)
        : call.ask_until(key, message, url, optional),
    );
    return this.#ask(wait, key, (letter) => ({ action: action(letter) }), options.until);
  }

  /** Asks the client's model. */
  sample(key: string, request: Sampling, options: Optional): Ask<Sampled | undefined>;
  sample(key: string, request: Sampling, options?: AskOptions): Ask<Sampled>;
  sample(key: string, request: Sampling, options: AskOptions = {}): Ask<unknown> {
    const params = json(request) ?? "";
    const wait = this.#attempt.use(`sample(${key})`, (call) =>
      call.ask("s", key, params, "", options.optional === true, options.solicited === true),
    );
    return this.#ask(wait, key, (letter, rest) => (letter === "u" ? undefined : JSON.parse(rest)));
  }

  /** Asks for the client's roots. */
  roots(key: string, options: Optional): Ask<Root[] | undefined>;
  roots(key: string, options?: AskOptions): Ask<Root[]>;
  roots(key: string, options: AskOptions = {}): Ask<unknown> {
    const wait = this.#attempt.use(`roots(${key})`, (call) =>
      call.ask("r", key, "", "", options.optional === true, options.solicited === true),
    );
    return this.#ask(wait, key, (letter, rest) => (letter === "u" ? undefined : JSON.parse(rest)));
  }

  /**
   * A round without a question: lets the client come again, so that work can move or rest (R-066, A10). With an ask open
   * it rides in that ask's round.
   */
  checkpoint(): Ask<void> {
    const wait = this.#attempt.use("checkpoint", (call) => call.checkpoint());
    return this.#ask(wait, "checkpoint", () => undefined);
  }

  /**
   * A value that is made once in an exchange and found again on every later run (A11): an effect, a reading of the
   * outside world, a random number. It travels in the sealed state as JSON: keep it small. Await it **before** you ask, and
   * ask nothing in `make`: later runs find the value, and would not meet the question that they are to answer.
   *
   * An effect without a value is recorded as `null`. Without a ledger it is made once per accepted copy of a retry; before
   * the first question, once per first request.
   */
  async once<T>(name: string, make: () => T | Promise<T>): Promise<T> {
    const attempt = this.#attempt;
    const wait = attempt.use(`once(${name})`, (call) => call.once(name));
    let text = attempt.use(`once(${name})`, (call) => call.wait(wait));
    if (text === undefined) {
      let value: T | Promise<T>;
      this.#making = name;
      try {
        value = make();
      } finally {
        this.#making = undefined;
      }
      value = await value;
      const made = json(value === undefined ? null : value);
      if (made === undefined) throw new TypeError(`the value of once(${name}) is not JSON`);
      text = attempt.use(`once(${name})`, (call) => {
        call.made(wait, made);
        return call.wait(wait);
      });
    }
    if (text?.[0] !== "a") throw new AskFailed(name, text?.slice(1) ?? `once(${name}) has no value`);
    return JSON.parse(text.slice(1)) as T;
  }

  /**
   * A named value set in this run or an earlier attempt: memory across rounds, beside the tape (A11). Do not decide by
   * it whether to ask: the next run would find another value there and leave its path.
   */
  get<T>(name: string): T | undefined {
    const text = this.#attempt.use(`get(${name})`, (call) => call.get(name));
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  /** Sets a named value, which travels in the sealed state. */
  set(name: string, value: unknown): void {
    const text = json(value);
    if (text === undefined) throw new TypeError(`the value of set(${name}) is not JSON`);
    this.#attempt.use(`set(${name})`, (call) => call.set(name, text));
  }

  /**
   * Leaves `step` to be done after the handler has succeeded (a result with `isError` is no success) with no question
   * open, before the reply goes out; in order, and once. What it throws becomes the reply (A12). The place for effects
   * that must not happen twice.
   */
  onCommit(step: () => void | Promise<void>): void {
    this.#attempt.onCommit(step);
  }

  /**
   * Calls `release` when this attempt is suspended or cancelled: locks, timers and connections are let go here, because
   * `finally` does not run in a handler that is left at an ask.
   */
  onSuspend(release: () => void): void {
    this.#attempt.onSuspend(release);
  }

  /** Aborts when this attempt is suspended or cancelled: give it to `fetch` and to timers. */
  get signal(): AbortSignal {
    return this.#attempt.signal;
  }

  /**
   * Marks work that goes on beside an ask: should it fail after the handler was suspended, nobody is there to catch it,
   * and this does. The promise itself is given back and rejects as ever for whoever awaits it.
   */
  io<T>(work: Promise<T>): Promise<T> {
    work.catch(() => {});
    return work;
  }

  /** Reports progress, if the request asked for it; values that do not rise are dropped, and so is what a timer
   * reports after the attempt is over. */
  progress(progress: number, total?: number, message?: string): void {
    this.#attempt.notify("progress", (call) => call.progress(progress, total, message));
  }

  /** Sends a log message, if the request asked for this level and the attempt is not over. */
  log(level: LogLevel, data: unknown): void {
    const text = json(data) ?? "null";
    this.#attempt.notify("log", (call) => call.log(level, text));
  }

  /**
   * A ticket for the page behind the url that is asked **next** under `key`: sealed, good for `ttlMs`, and only for the
   * principal of this request. The page gives it to `server.openTicket`.
   */
  ticket(key: string, ttlMs: number): string {
    if (!(ttlMs > 0)) throw new TypeError("ticket: ttlMs: a number above 0 is needed");
    return this.#attempt.use(`ticket(${key})`, (call) => call.ticket(key, ttlMs));
  }

  /** The tool's or prompt's name, or the resource's uri. */
  get target(): string {
    return this.#attempt.use("target", (call) => call.target());
  }

  /** A part of the uri, if a resource template with that name in it matched. */
  part(name: string): string | undefined {
    return this.#attempt.use("part", (call) => call.part(name));
  }

  /** When the exchange began, in milliseconds since the epoch: the same on every run. */
  get started(): number {
    return this.#attempt.use("started", (call) => call.started());
  }

  /** Names the exchange, for logs. */
  get exchange(): string {
    return this.#attempt.use("exchange", (call) => call.exchange());
  }

  /** 32 bytes for a deterministic random generator: the same on every run. Never for secrets. */
  get seed(): Uint8Array {
    return this.#attempt.use("seed", (call) => call.seed());
  }

  /** Whether what runs now has run before. Log only when `false`. */
  get replaying(): boolean {
    return this.#attempt.use("replaying", (call) => call.replaying());
  }

  /**
   * What the request in hand declared. It may differ from round to round: to go on without an ask that cannot be
   * answered, make it `optional` instead of looking here.
   */
  get capabilities(): Record<string, unknown> {
    return JSON.parse(this.#attempt.use("capabilities", (call) => call.capabilities())) as Record<string, unknown>;
  }

  /** Who sends the request, as you said when you handed it over; nothing for an anonymous one. */
  get principal(): string | Uint8Array | undefined {
    return this.#attempt.principal;
  }

  #ask<T>(
    wait: number,
    key: string,
    read: (letter: string, rest: string) => T,
    check?: () => boolean | Promise<boolean>,
  ): Ask<T> {
    if (this.#making !== undefined) throw new TypeError(`once(${this.#making}): ask before it, not in it`);
    return new Ask(this.#attempt, wait, key, read, check);
  }
}

export function action(letter: string): "accept" | "decline" | "cancel" | "unavailable" {
  return letter === "a" ? "accept" : letter === "d" ? "decline" : letter === "c" ? "cancel" : "unavailable";
}

export function elicited(letter: string, rest: string): Elicited<unknown> | Unavailable {
  const what = action(letter);
  return what === "accept" ? { action: what, content: JSON.parse(rest) } : { action: what };
}

/** The error that an ask's letter stands for, if it is one. */
export function failure(key: string, letter: string, rest: string): Error | undefined {
  if (letter === "i") return new AskInvalid(key, rest);
  if (letter === "x") return new AskFailed(key, rest);
  return undefined;
}
