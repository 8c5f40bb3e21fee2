/** A call that waits for answers, and who gives them. */
import type { LogLevel, Root, Sampled, Sampling } from "./context.js";
import { NotSent, Unanswered } from "./failures.js";
import type { Trip } from "./glue.js";
import type { FormSchema } from "./schema.js";
import { json } from "./values.js";

/** What `Trip.proceed` gives; the constants of `client.rs`. */
export const RESEND = 6;

type Before = "accept" | "decline" | "cancel";

/** A question, as a person is asked it. `server` is a name that the server gives itself: show it as a claim. */
export type ClientAsk = { key: string; server?: string; before?: Before; problem?: string } & (
  | { kind: "form"; params: { message: string; requestedSchema: FormSchema } }
  /** Nothing but `http:` and `https:` can be accepted: open nothing else. `before: "accept"` says that it was opened
   * already: do not open it again, ask when to go on (G-32). */
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
  elicit?: ((ask: AskOf<"form"> | AskOf<"url">) => Answer | Promise<Answer>) | undefined;
  /** Asks the model, with the person's consent. */
  sample?: ((ask: AskOf<"sampling">) => Sampled | Promise<Sampled>) | undefined;
  /** The permitted folders. */
  roots?: ((ask: AskOf<"roots">) => readonly Root[] | Promise<readonly Root[]>) | undefined;
}

export interface CallOptions extends Answerers {
  signal?: AbortSignal | undefined;
  /** Hears notifications about the call; asks for progress. */
  onProgress?: ((progress: { progress: number; total?: number; message?: string }) => void) | undefined;
  /** Hears log messages of this level and above. */
  onLog?: ((message: { level: string; data: unknown; logger?: string }) => void) | undefined;
  logLevel?: LogLevel | undefined;
  /** The call does no harm if it runs twice: it is sent again when its connection breaks. */
  mayRunTwice?: boolean | undefined;
}

/** What `new Headers` takes. */
type Headed = NonNullable<ConstructorParameters<typeof Headers>[0]>;

export interface ClientOptions {
  /** Who the client says it is. */
  name: string;
  version: string;
  title?: string | undefined;
  /** Headers for every request, such as `Authorization`. */
  headers?: (Headed | (() => Headed | Promise<Headed>)) | undefined;
  /** Other than the global one. */
  fetch?: typeof fetch | undefined;
  /** What is declared where a call does not say otherwise by its answerers. */
  capabilities?: { elicitation?: { form?: object; url?: object }; sampling?: object; roots?: object } | undefined;
  /** How far the client goes along (R-099, G-06, G-07). */
  policy?: {
    /** Retries with answers. When none is left, nobody is asked any more. Default 10. */
    retries?: number | undefined;
    /** How often a call that may run twice is sent again after its connection broke (R-096, G-29). Default 3. */
    resends?: number | undefined;
    /** The first pause before a retry without answers; each further one in a row doubles. Default 50. */
    pauseFirstMs?: number | undefined;
    /** The longest such pause. Default 250. */
    pauseLongestMs?: number | undefined;
    /** How long a request may go without a reply or progress. Default 60,000. */
    requestTimeoutMs?: number | undefined;
    /** How long a request may take even with progress. Default 600,000. */
    requestLongestMs?: number | undefined;
    /** Whether the time people take to answer counts towards `limits.exchangeMs`. Default: it does not. */
    countThinking?: boolean | undefined;
  } | undefined;
  /** Bounds, each inclusive. */
  limits?: {
    /** Bytes of one message, sent or received. Default 4 MiB. */
    messageBytes?: number | undefined;
    /** Questions that are accepted in one round. Default 64. */
    asksAccepted?: number | undefined;
    /** Bytes of one answer as JSON. Default 64 KiB. */
    answerBytes?: number | undefined;
    /** Characters of a state that is accepted. Default 256 KiB. */
    stateAccepted?: number | undefined;
    /** How long an exchange may take, without the time people take to answer unless `countThinking` is set. Default
     * 3,600,000. */
    exchangeMs?: number | undefined;
  } | undefined;
}

export interface ToolOutcome {
  content: { type: string; text?: string; [member: string]: unknown }[];
  structuredContent?: unknown;
  isError?: boolean;
  [member: string]: unknown;
}
/** @internal How it goes on. */
export interface Step {
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
  #pausing = false;

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
    if (typeof answer !== "object" || answer === null) return "an answer is an object";
    if ("sampled" in answer) return trip.answer(key, "s", json(answer.sampled) ?? "null");
    if ("roots" in answer) return trip.answer(key, "r", json(answer.roots) ?? "null");
    if (answer.action === "decline" || answer.action === "cancel") return trip.answer(key, answer.action.slice(0, 1), "null");
    // Nobody's typing error declines or accepts anything.
    if (answer.action !== "accept") return "answer.action: is none of accept, decline and cancel";
    const ask = this.asks.find((ask) => ask.key === key);
    if (ask?.kind !== "url") return trip.answer(key, "a", json(answer.content ?? {}) ?? "null");
    // `javascript:` in a page runs as if it were the page's own.
    if (!/^https?:\/\//i.test(ask.params.url)) return "the url is none of a web page: it is not to be opened, so decline or cancel";
    return trip.answer(key, "o", "null");
  }

  /** Puts the open questions to whoever answers, one after the other. */
  async answerWith(answerers: Answerers & { signal?: AbortSignal | undefined }): Promise<void> {
    const { signal } = answerers;
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
        try {
          const given = await unless(signal, answer(problem === undefined ? ask : { ...ask, problem }));
          problem = this.answer(ask.key, given);
        } catch (error) {
          signal?.throwIfAborted();
          throw new Unanswered(ask.key, "the answerer failed", { cause: error });
        }
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
    if (this.#pausing) throw new NotSent("this exchange is going on already");
    // Nothing was sent: it can go on later.
    options.signal?.throwIfAborted();
    for (;;) {
      if (trip.proceed(Date.now()) === RESEND) break;
      const at = trip.not_before();
      if (at === 0) throw new NotSent(trip.text());
      this.#pausing = true;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const pause = new Promise<void>((go) => (timer = setTimeout(go, Math.max(1, at - Date.now()))));
      try {
        await unless(options.signal, pause);
      } finally {
        clearTimeout(timer);
        this.#pausing = false;
      }
      // It may have been given up meanwhile.
      this.#use();
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

/** What `work` gives, unless it is aborted before. */
export async function unless<T>(signal: AbortSignal | undefined, work: T | Promise<T>): Promise<T> {
  if (signal === undefined) return work;
  let leave: (() => void) | undefined;
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  });
  try {
    return await Promise.race([work, left]);
  } finally {
    if (leave !== undefined) signal.removeEventListener("abort", leave);
  }
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

/** @internal */
export function free(trip: Trip): void {
  try {
    trip.free();
  } catch {
    // Only in an instance that has trapped, whose memory goes as a whole.
  }
}
