/** What a handler waits for: its asks, by the numbers that the engine gave them. */
import type { Attempt } from "./attempt.js";
import { failure } from "./context.js";
import { AskFailed } from "./errors.js";
import type { Call } from "./glue.js";
import { json } from "./values.js";

type Check = () => boolean | Promise<boolean>;
type Read<T> = (letter: string, rest: string) => T;
type Waiter = {
  promise: Promise<unknown>;
  settle(text: string): void;
  check: Check | undefined;
};

export class Waits {
  readonly #attempt: Attempt;
  readonly #open = new Map<number, Waiter>();
  readonly #awaited = new Map<number, Waiter>();
  readonly #withdrawn = new Set<number>();

  constructor(attempt: Attempt) {
    this.#attempt = attempt;
  }

  /** The answer to an ask that is waited for now. */
  wait<T>(wait: number, key: string, read: Read<T>, check: Check | undefined, project?: (value: unknown) => T): Promise<T> {
    const attempt = this.#attempt;
    if (this.#withdrawn.has(wait)) return Promise.reject(new AskFailed(key, "the question was taken back"));
    const known = this.#awaited.get(wait);
    if (known !== undefined) return known.promise as Promise<T>;
    const ended = attempt.tooLate(key);
    if (ended !== undefined) return Promise.reject(ended);
    let resolve!: (value: T) => void;
    let reject!: (error: unknown) => void;
    const promise = new Promise<T>((fulfil, refuse) => ([resolve, reject] = [fulfil, refuse]));
    const settle = (text: string) => {
      const [letter, rest] = [text.slice(0, 1), text.slice(1)];
      const error = failure(key, letter, rest);
      try {
        if (error !== undefined) reject(error);
        else if (project !== undefined) resolve(this.#keep(wait, key, letter, rest, read, project));
        else resolve(read(letter, rest));
      } catch (fault) {
        reject(fault);
      }
    };
    const waiter: Waiter = { promise, settle, check };
    this.#awaited.set(wait, waiter);
    const text = attempt.use(key, (call) => call.wait(wait));
    if (text !== undefined) settle(text);
    else {
      this.#open.set(wait, waiter);
      attempt.use(key, (call) => call.runs());
      attempt.rest();
    }
    return promise;
  }

  /** Something is kept of the answer instead of the answer itself. */
  keeps(wait: number, key: string): void {
    if (this.#awaited.has(wait)) throw new TypeError(`keep(${key}): the ask is awaited already`);
    this.#attempt.use(`keep(${key})`, (call) => call.keeps(wait));
  }

  /** What is kept of an answer: found again, or made of it and handed in. It is read back as every later run will. */
  #keep<T>(wait: number, key: string, letter: string, rest: string, read: Read<unknown>, project: (value: unknown) => T): T {
    if (rest.startsWith("k")) return JSON.parse(rest.slice(1)) as T;
    const made = project(read(letter, rest));
    const text = json(made === undefined ? null : made);
    if (text === undefined || made instanceof Promise) throw new TypeError(`what keep(${key}) makes is not JSON`);
    this.#attempt.use(`keep(${key})`, (call) => {
      call.made(wait, text);
      call.wait(wait);
    });
    return JSON.parse(text) as T;
  }

  withdraw(wait: number): void {
    const attempt = this.#attempt;
    if (attempt.isLeft) return;
    // An answer that has come stays.
    if (!this.#awaited.has(wait) || this.#open.has(wait)) this.#withdrawn.add(wait);
    this.#open.delete(wait);
    attempt.use("withdraw", (call) => call.withdraw(wait));
    attempt.rest();
  }

  /** Settles what waits and is there. */
  deliver(call: Call): void {
    if (this.#open.size === 0) return;
    for (const [wait, waiter] of this.#open) {
      const text = call.wait(wait);
      if (text !== undefined) {
        this.#open.delete(wait);
        waiter.settle(text);
      } else if (waiter.check !== undefined && call.looks(wait)) void this.#look(wait, waiter.check);
    }
    // What is still open may be all that is left. Without anything to wait for, the next ask says when it rests.
    if (call.running()) this.#attempt.rest();
  }

  /** An errand behind a url is to be looked after (A10). */
  async #look(wait: number, check: Check): Promise<void> {
    let done = false;
    try {
      done = await check();
    } catch (error) {
      this.#attempt.report("until threw", error);
    }
    this.#attempt.guarded((call) => {
      call.looked(wait, done === true);
      this.deliver(call);
    });
    this.#attempt.rest();
  }

  clear(): void {
    this.#open.clear();
    this.#awaited.clear();
  }
}
