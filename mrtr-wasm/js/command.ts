/** Carries out what the ledger wants of its store. */
import type { Call } from "./glue.js";
import type { LedgerStore } from "./store.js";
import { isBytes } from "./values.js";

/** What a store may take; it then counts as down. */
const STORE_MS = 5_000;
/** What the store said, as the engine takes it: `a`pplied, the `c`urrent bytes, `f`ull, or `x` for one that is down. */
export async function carryOut(
  call: Call,
  store: LedgerStore | undefined,
  report: (message: string, error?: unknown) => void,
): Promise<[what: string, current: Uint8Array | undefined]> {
  if (store === undefined) return ["x", undefined];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${STORE_MS} ms`)), STORE_MS);
  });
  try {
    const key = call.store_key();
    if (!call.store_sets()) return ["c", entry(await Promise.race([store.get(key), late]))];
    const [expected, next] = [call.store_expected(), call.store_new()];
    const said = await Promise.race([store.compareAndSet(key, expected, next, call.store_expires()), late]);
    if (said === true) return ["a", undefined];
    if (said === "full") return ["f", undefined];
    if (typeof said !== "object" || said === null) throw new TypeError(`compareAndSet gave ${String(said)}`);
    return ["c", entry(said.current)];
  } catch (error) {
    report("the ledger's store failed", error);
    return ["x", undefined];
  } finally {
    clearTimeout(timer);
  }
}

/** What a store says it holds. Drivers say `null` for nothing. */
function entry(bytes: unknown): Uint8Array | undefined {
  if (bytes === undefined || bytes === null) return undefined;
  if (isBytes(bytes)) return bytes;
  throw new TypeError("the store gave something else than a Uint8Array");
}
