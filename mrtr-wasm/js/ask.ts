import type { Attempt } from "./attempt.js";

/**
 * An answer to come. It was registered when it was made (A1), so that asks made side by side share a round:
 *
 * ```ts
 * const [day, seats] = await Promise.all([ctx.elicit("day", dayForm), ctx.elicit("seats", seatsForm)]);
 * ```
 *
 * Await it, or combine it with other asks by `Promise.all` and `Promise.race`; **never race it against a timer or a
 * fetch**: which of them wins would differ from run to run. When nothing but asks can bring the handler on, the request
 * is answered with the questions and the handler is left where it stands; it runs again from its start when the answers
 * are there. Neither `catch` nor `finally` runs then.
 */
export class Ask<T> implements PromiseLike<T> {
  /** @internal */
  constructor(
    private readonly attempt: Attempt,
    private readonly wait: number,
    private readonly key: string,
    private readonly read: (letter: string, rest: string) => T,
    private readonly check?: () => boolean | Promise<boolean>,
    private readonly project?: (value: unknown) => T,
  ) {}

  then<A = T, B = never>(
    resolved?: ((value: T) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.attempt.waits.wait(this.wait, this.key, this.read, this.check, this.project).then(resolved, rejected);
  }

  catch<B = never>(rejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(undefined, rejected);
  }

  finally(settled?: (() => void) | null): Promise<T> {
    return this.then().finally(settled);
  }

  /**
   * Keeps what `project` makes of the answer instead of the answer (A11): the sealed state stays small, and the rest of the
   * answer is not in it. `project` is called once, with the answer as it came; on later runs what it gave is found again.
   * What it gives travels as JSON. Await what this gives, instead of the ask. An optional ask that the client cannot answer is
   * nothing to be kept: `project` is then called on every run.
   *
   * ```ts
   * const size = await ctx.sample("draft", request).keep((said) => JSON.stringify(said.content).length);
   * ```
   */
  keep<U>(project: (value: T) => U): Ask<U> {
    const { attempt, wait, key, read, check } = this;
    attempt.waits.keeps(wait, key);
    return new Ask<U>(attempt, wait, key, read as never, check, project as (value: unknown) => U);
  }

  /**
   * Takes the question back: what lost a race, say, and is not wanted any more. Without this it stays open until the
   * handler returns, and its key cannot be used again (A1).
   */
  withdraw(): void {
    this.attempt.waits.withdraw(this.wait);
  }
}
