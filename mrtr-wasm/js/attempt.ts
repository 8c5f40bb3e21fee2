import { carryOut } from "./command.js";
import { Context } from "./context.js";
import { AskFailed, AskInvalid, AttemptEnded } from "./errors.js";
import { Exchange, Required } from "./exchange.js";
import type { Call } from "./glue.js";
import { type Given, type Handler, type Sink, type Surroundings, answered, heads, result as sendable } from "./reply.js";
import { type Glue, trapped } from "./runtime.js";
import { macrotask, quietly } from "./values.js";
import { Waits } from "./waits.js";

/** What `Call.poll` gives; the constants of `call.rs`. */
const IDLE = 0;
const START = 1;
const START_RETURNING = 2;
const CHUNK = 3;
const LAST_CHUNK = 4;
const STORE = 5;
const COMMIT = 6;
const SUSPENDED = 7;

/** Turns of what has settled that a handler has before its questions go out. An `await` takes one to three. */
const TURNS = 128;

/** A comment goes out after so much silence, so that nobody takes the connection for dead. */
const KEEP_ALIVE_MS = 15_000;

/** Drives one request: does what the engine says, and hands in what came of it. */
export class Attempt {
  readonly principal: string | Uint8Array | undefined;
  readonly #glue: Glue;
  readonly #call: Call;
  readonly #sink: Sink;
  readonly #around: Surroundings;
  /** What the handler waits for. */
  readonly waits: Waits;
  readonly #commits = new Map<number, () => void | Promise<void>>();
  #releases: (() => unknown)[] = [];
  #abort: AbortController | undefined;
  #handler: Handler | undefined;
  #begun = false;
  #polling = false;
  #again = false;
  #restDue = false;
  #flushDue = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #keepAlive: ReturnType<typeof setInterval> | undefined;
  /** The handler is left: what it still does is nobody's business. */
  #left = false;
  /** The call is over and its memory is given back. */
  #freed = false;

  constructor(glue: Glue, call: Call, sink: Sink, around: Surroundings, principal: string | Uint8Array | undefined) {
    this.#glue = glue;
    this.#call = call;
    this.#sink = sink;
    this.#around = around;
    this.principal = principal;
    this.waits = new Waits(this);
  }

  /** Goes on as far as it gets. */
  poll(): void {
    if (this.#freed) return;
    if (this.#polling) {
      this.#again = true;
      return;
    }
    this.#polling = true;
    try {
      do {
        this.#again = false;
        this.#run();
      } while (this.#again && !this.#freed);
    } catch (error) {
      this.#break(error);
    } finally {
      this.#polling = false;
    }
  }

  #run(): void {
    const call = this.#call;
    while (!this.#freed) {
      switch (call.poll(Date.now())) {
        case IDLE:
          this.waits.deliver(call);
          this.#arm(call.wake_at());
          this.#linger();
          return;
        case START:
          this.#start(call.number(), false);
          break;
        case START_RETURNING:
          this.#start(call.number(), true);
          break;
        case CHUNK:
          this.#send(false);
          break;
        case LAST_CHUNK:
          this.#send(true);
          this.#free();
          return;
        case STORE:
          void this.#store();
          break;
        case COMMIT:
          void this.#commit(call.number());
          break;
        case SUSPENDED: {
          const text = call.text();
          if (text !== undefined) this.#around.report(`${this.#handler?.name ?? "a request"}: ${text}`);
          this.#leave();
          break;
        }
        default:
          this.#free();
          return;
      }
    }
  }

  #send(last: boolean): void {
    const head = this.#call.head();
    const bytes = this.#call.bytes();
    if (head !== undefined) {
      this.#begun = true;
      const { status, headers } = heads(head);
      this.#sink.begin(status, headers, bytes, last);
    } else if (this.#begun) this.#sink.piece(bytes, last);
  }

  #start(number: number, returning: boolean): void {
    const handler = this.#around.handlers[number];
    if (handler === undefined) return this.#call.failed_ask("x", "");
    this.#handler = handler;
    let given: Given | Promise<Given>;
    try {
      given = handler.args(this.#call.arguments());
    } catch (error) {
      return this.#failed(error);
    }
    if (given instanceof Promise) given.then((given) => this.#ended(() => this.#enter(handler, given, returning)));
    else this.#enter(handler, given, returning);
  }

  #enter(handler: Handler, given: Given, returning: boolean): void {
    if ("problem" in given) return this.#call.refused_arguments(given.problem);
    let result: Promise<unknown>;
    try {
      // Even this may throw: it looks at what the handler gave.
      result = Promise.resolve(
        returning && handler.exchange !== undefined
          ? handler.exchange(new Exchange(this), given.args)
          : handler.run(new Context(this), given.args),
      );
    } catch (error) {
      return this.#failed(error);
    }
    // Also when the attempt is over long before: nobody else would catch it.
    result.then(
      (value) => this.#ended(() => this.#returned(value)),
      (error: unknown) => this.#ended(() => this.#failed(error)),
    );
  }

  #ended(hand: () => void): void {
    if (this.#left || this.#freed) return;
    try {
      hand();
    } catch (error) {
      return this.#break(error);
    }
    this.poll();
  }

  #returned(value: unknown): void {
    if (typeof value === "string") return this.#call.returned_text(value);
    let text: string | undefined;
    try {
      if (value instanceof Required && this.#handler?.exchange !== undefined) return value.hand(this.#call);
      text = sendable(value, this.#handler?.member ?? "content");
    } catch (error) {
      return this.#failed(error, "what the handler returned cannot be sent");
    }
    this.#call.returned(text);
  }

  #failed(error: unknown, what = "the handler threw"): void {
    let own: ReturnType<typeof answered>;
    try {
      own = answered(error);
    } catch (fault) {
      [error, what] = [fault, "the error that the handler threw cannot be sent"];
    }
    if (own !== undefined) return this.#call.failed(...own);
    if (error instanceof AskInvalid) return this.#call.failed_ask("i", error.reason);
    if (!(error instanceof AskFailed)) this.#around.report(`${this.#handler?.name}: ${what}`, error);
    this.#call.failed_ask("x", "");
  }

  async #store(): Promise<void> {
    const call = this.#call;
    const [what, current] = await carryOut(call, this.#around.store, this.#around.report);
    if (this.#freed) return;
    try {
      call.stored(what, current);
    } catch (error) {
      return this.#break(error);
    }
    this.poll();
  }

  async #commit(number: number): Promise<void> {
    let failed: unknown;
    try {
      await this.#commits.get(number)?.();
    } catch (error) {
      failed = error ?? new Error("thrown without a value");
    }
    if (this.#freed) return;
    const call = this.#call;
    try {
      let own: ReturnType<typeof answered>;
      try {
        own = answered(failed);
      } catch (fault) {
        failed = fault;
      }
      if (failed === undefined) call.committed(number);
      else if (own !== undefined) call.commit_failed(number, ...own);
      else {
        this.#around.report(`${this.#handler?.name}: a step of the commit threw`, failed);
        call.commit_broke(number);
      }
    } catch (error) {
      return this.#break(error);
    }
    this.poll();
  }

  // What a context and its asks do.

  /** Uses the call, as long as the attempt is not over. */
  use<T>(what: string, work: (call: Call) => T): T {
    const ended = this.tooLate(what);
    if (ended !== undefined) throw ended;
    try {
      return work(this.#call);
    } catch (error) {
      if (trapped(error, this.#glue)) this.#break(error);
      throw error;
    }
  }

  /** Why the call cannot be used. Its promise may be nobody's: it is reported once for each handler and key. */
  tooLate(what: string): AttemptEnded | undefined {
    if (!this.isLeft) return undefined;
    const ended = new AttemptEnded(what);
    const line = `${this.#handler?.name}: ${ended.message}`;
    // Keys may be made of what a request says.
    if (warned.size < 100 && !warned.has(line)) {
      warned.add(line);
      this.#around.report(line);
    }
    return ended;
  }

  /** Sends something on the way. A timer that does so after the end harms nobody. */
  notify(what: string, work: (call: Call) => void): void {
    if (this.tooLate(what) !== undefined) return;
    this.use(what, work);
    this.flush();
  }

  onCommit(step: () => void | Promise<void>): void {
    if (typeof step !== "function") throw new TypeError("onCommit: a function is needed");
    this.#commits.set(this.use("onCommit", (call) => call.on_commit()), step);
  }

  onSuspend(release: () => unknown): void {
    if (typeof release !== "function") throw new TypeError("onSuspend: a function is needed");
    const ended = this.tooLate("onSuspend");
    if (ended !== undefined) throw ended;
    this.#releases.push(release);
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#left) this.#abort.abort();
    return this.#abort.signal;
  }

  /** Notifications wait to be sent. */
  flush(): void {
    if (this.#flushDue) return;
    this.#flushDue = true;
    queueMicrotask(() => {
      this.#flushDue = false;
      this.poll();
    });
  }

  /**
   * Says, after everything that needs no answer has settled, that the handler gets no further. Siblings in a `Promise.all`
   * have as many turns of what has settled as this, counted anew from each ask. With a macrotask it would be a matter of luck
   * which I/O still counts, and in a worker's runtime it is dear.
   * A recorded round needs less: what it waits for is known (A3), and all that matters is that a handler which returns over
   * an open ask has done so (A9).
   */
  rest(): void {
    if (this.#left || this.#freed) return;
    this.#patience = this.#call.replaying() ? 17 : TURNS;
    if (this.#restDue) return;
    this.#restDue = true;
    const turn = () => {
      if (this.#patience-- > 0) return void settled.then(turn);
      this.#restDue = false;
      if (this.#freed) return;
      if (this.#left) return this.#linger();
      try {
        this.#call.rests();
      } catch (error) {
        return this.#break(error);
      }
      this.poll();
    };
    turn();
  }
  #patience = 0;

  #arm(at: number): void {
    clearTimeout(this.#timer);
    if (at === 0) return;
    // A timer has 31 bits; one that comes early finds nothing to do.
    const wait = Math.min(Math.max(1, at - Date.now()), 0x7fff_ffff);
    this.#timer = setTimeout(() => {
      if (!this.#left) this.#safely((call) => call.rests());
    }, wait);
  }

  /** Whether the handler is nobody's any more. */
  get isLeft(): boolean {
    return this.#left || this.#freed;
  }

  report(what: string, error?: unknown): void {
    this.#around.report(`${this.#handler?.name}: ${what}`, error);
  }

  /** Uses the call, unless the attempt is over. */
  guarded(work: (call: Call) => void): void {
    if (this.isLeft) return;
    try {
      work(this.#call);
    } catch (error) {
      this.#break(error);
    }
  }

  /** Tells the engine something, and goes on. */
  #safely(work: (call: Call) => void): void {
    if (this.#freed) return;
    try {
      work(this.#call);
    } catch (error) {
      return this.#break(error);
    }
    this.poll();
  }

  /**
   * It takes longer than a turn: from now on silence is broken, and somebody may leave. Most requests never get here: their
   * handlers ask or return within a few microtasks, and what rests comes back here. A macrotask is dear where it crosses
   * into a worker's runtime.
   */
  #linger(): void {
    if (this.#keepAlive !== undefined || this.#restDue || this.#lingerDue) return;
    this.#lingerDue = true;
    const later = (then: () => void) => () => {
      if (this.#freed || this.#restDue) this.#lingerDue = false;
      else then();
    };
    turns(
      9,
      later(() =>
        macrotask(
          later(() => {
            this.#lingerDue = false;
            this.#keepAlive = setInterval(() => this.#safely((call) => call.silent()), KEEP_ALIVE_MS);
            this.#sink.lingers?.();
          }),
        ),
      ),
    );
  }
  #lingerDue = false;

  // How it ends.

  /** Nobody reads the reply any more. */
  gone(): void {
    this.#safely((call) => {
      if (!call.leave()) this.#leave();
    });
  }

  /** A change, for a subscription. */
  change(kind: string, uri: string): void {
    this.#safely((call) => call.change(kind, uri));
  }

  /** Leaves the handler where it stands. */
  #leave(): void {
    if (this.#left) return;
    this.#left = true;
    for (const release of this.#releases.splice(0)) {
      quietly(release, (error) => this.#around.report(`${this.#handler?.name}: onSuspend threw`, error));
    }
    this.#abort?.abort();
  }

  #free(): void {
    if (this.#freed) return;
    this.#freed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#keepAlive);
    this.waits.clear();
    this.#commits.clear();
    this.#releases = [];
    try {
      this.#call.free();
    } catch {
      // Only in an instance that has trapped, whose memory goes as a whole.
    }
    this.#around.ended(this);
    this.#done?.();
  }

  get isOver(): boolean {
    return this.#freed;
  }

  /** Settles when nothing is left to be done. */
  over(): Promise<void> {
    return this.#freed ? Promise.resolve() : new Promise((done) => (this.#done = done));
  }
  #done: (() => void) | undefined;

  /** The instance has trapped, or something else went wrong that has no reply. */
  #break(error: unknown): void {
    trapped(error, this.#glue);
    this.#around.report(`${this.#handler?.name ?? "a request"}: the engine failed`, error);
    this.#leave();
    if (!this.#freed) {
      this.#free();
      this.#sink.broken(error, this.#begun);
    }
  }

  /** The instance that this attempt lives in has trapped in another one. */
  abandon(error: unknown): void {
    this.#break(error);
  }

  get instance(): Glue {
    return this.#glue;
  }
}

const warned = new Set<string>();

const settled = Promise.resolve();

/**
 * Does it after so many turns of what has settled. `queueMicrotask` would be the same, but a worker's runtime makes it forty
 * times as dear; and `await` makes three objects a turn.
 */
function turns(count: number, work: () => void): void {
  // Gives nothing back: what a turn gave would be waited for.
  const turn = () => {
    if (count-- > 0) void settled.then(turn);
    else work();
  };
  turn();
}
