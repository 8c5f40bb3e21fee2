import type { Attempt } from "./attempt.js";
import type { Call } from "./glue.js";
import { json } from "./values.js";
import type { Sampled, Sampling, Root } from "./context.js";
import type { Content, Form, FormSchema } from "./schema.js";

/** What became of a question of a return-style handler. */
export type Given<T> =
  | { kind: "given"; value: T }
  /** The person said no, or dismissed it. */
  | { kind: "declined" }
  | { kind: "cancelled" }
  /** Not answered yet: ask (again). */
  | { kind: "missing" }
  /** Answered with content that does not fit; why. Ask again. */
  | { kind: "invalid"; reason: string }
  /** What was answered under this key was another question: ask this one (G-26). */
  | { kind: "changed" };

/** A question of a return-style handler. Made by {@link questions}. */
export interface Question<T> {
  /** @internal */
  readonly wire: readonly [kind: string, a: string, b: string];
  /** @internal */
  read(text: string): T;
}

/** Questions for return-style handlers. */
export const questions = {
  form: <const S extends FormSchema>(form: Form<S>): Question<Content<S>> => ({
    wire: ["f", form.message, json(form.schema) ?? ""],
    read: (text) => JSON.parse(text) as Content<S>,
  }),
  /** A yes to this very message. */
  confirm: (message: string): Question<true> => ({ wire: ["c", message, ""], read: () => true }),
  /** Consent to open this very url, which is not completion. */
  url: (message: string, url: string): Question<true> => ({ wire: ["u", message, url], read: () => true }),
  sample: (request: Sampling): Question<Sampled> => ({
    wire: ["s", json(request) ?? "", ""],
    read: (text) => JSON.parse(text) as Sampled,
  }),
  roots: (): Question<Root[]> => ({ wire: ["r", "", ""], read: (text) => JSON.parse(text) as Root[] }),
};

/** What a return-style handler gives back to ask; made by {@link Exchange.require}. */
export class Required {
  readonly #asks: readonly (readonly [key: string, question: Question<unknown>])[];
  readonly #state: string;

  /** @internal */
  constructor(asks: { [key: string]: Question<unknown> }, state: unknown) {
    this.#asks = Object.entries(asks);
    this.#state = json(state) ?? "null";
  }

  /** @internal */
  hand(call: Call): void {
    for (const [key, { wire: [kind, a, b] }] of this.#asks) call.want(kind, key, a, b);
    call.require(this.#state);
  }
}

/**
 * One round of a return-style handler. It looks at the answers, and returns a result or what it wants to ask:
 *
 * ```ts
 * server.returningTool("book", { description: "Books a table" }, (exchange) => {
 *   const party = exchange.answer("party", partyForm);
 *   if (party.kind !== "given") return exchange.require({ party: partyForm });
 *   return `Booked for ${party.value.people}.`;
 * });
 * ```
 *
 * The protection is that of other handlers: the state is sealed and bound, an answer counts only for the question that was
 * asked, and with a ledger a state is used once (B1).
 */
export class Exchange {
  readonly #attempt: Attempt;

  /** @internal */
  constructor(attempt: Attempt) {
    this.#attempt = attempt;
  }

  /** The answer to `question`, **as it would be asked now**, from this request or an earlier round. */
  answer<T>(key: string, question: Question<T>): Given<T> {
    const [kind, a, b] = question.wire;
    const text = this.#attempt.use(`answer(${key})`, (call) => call.answer(kind, key, a, b));
    switch (text[0]) {
      case "a":
        return { kind: "given", value: question.read(text.slice(1)) };
      case "d":
        return { kind: "declined" };
      case "c":
        return { kind: "cancelled" };
      case "i":
        return { kind: "invalid", reason: text.slice(1) };
      case "h":
        return { kind: "changed" };
      default:
        return { kind: "missing" };
    }
  }

  /** What `require` left in the last round. */
  state<T>(): T | undefined {
    const text = this.#attempt.use("state", (call) => call.state());
    return text === "" ? undefined : (JSON.parse(text.slice(1)) as T);
  }

  /** Return what this gives: asks these questions, and keeps `state` (JSON, sealed) for the next round. Without questions
   * the client only comes again. */
  require(asks: { [key: string]: Question<unknown> }, state: unknown = null): Required {
    return new Required(asks, state);
  }

  /** The tool's or prompt's name, or the resource's uri. */
  get target(): string {
    return this.#attempt.use("target", (call) => call.target());
  }

  /** Who sends the request, as you said when you handed it over. */
  get principal(): string | Uint8Array | undefined {
    return this.#attempt.principal;
  }
}
