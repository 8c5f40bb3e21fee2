/**
 * Where the ledger's entries are kept (rules B1…B7): used states and the replies they got.
 *
 * The store must be linearizable for one key, for a state is used once only if everybody sees the same entry. A Durable
 * Object is; Redis (one primary, `noeviction`) is. **Workers KV is not**: its reads may be a minute old and it has no
 * compare-and-set, so that two copies of a retry would both find the state unused.
 */
export interface LedgerStore {
  /** The bytes under a key, or nothing. */
  get(key: string): Promise<Uint8Array | undefined>;
  /**
   * If the key holds exactly `expected` (`undefined`: nothing), puts `next` in its place (`undefined`: removes it) and
   * gives `true`; otherwise changes nothing and gives what it holds. One atomic step. `expires` is in milliseconds since
   * the epoch; the store must not forget the entry earlier.
   */
  compareAndSet(
    key: string,
    expected: Uint8Array | undefined,
    next: Uint8Array | undefined,
    expires: number,
  ): Promise<true | { current: Uint8Array | undefined } | "full">;
}

/** Entries in this instance's memory: for one process, and for tests. */
export class MemoryStore implements LedgerStore {
  #entries = new Map<string, { bytes: Uint8Array; expires: number }>();
  #limit: number;

  /** A store for at most `limit` entries. */
  constructor(limit = 100_000) {
    this.#limit = limit;
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    return this.#find(key);
  }

  async compareAndSet(
    key: string,
    expected: Uint8Array | undefined,
    next: Uint8Array | undefined,
    expires: number,
  ): Promise<true | { current: Uint8Array | undefined } | "full"> {
    const current = this.#find(key);
    if (!same(current, expected)) return { current };
    if (next === undefined) this.#entries.delete(key);
    else {
      if (current === undefined && this.#entries.size >= this.#limit) {
        for (const [old, entry] of this.#entries) if (entry.expires <= Date.now()) this.#entries.delete(old);
        if (this.#entries.size >= this.#limit) return "full";
      }
      this.#entries.set(key, { bytes: next, expires });
    }
    return true;
  }

  #find(key: string): Uint8Array | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.expires > Date.now() ? entry.bytes : undefined;
  }
}

/** Whether two entries are the same bytes. */
export function same(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
