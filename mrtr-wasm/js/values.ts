/** What handlers and hosts hand over: made into JSON, and looked at before it is believed. */
import { ConfigError } from "./errors.js";

/**
 * JSON text of a value; nothing if it is `undefined`, a function or a symbol. Half of a surrogate pair is no Unicode, and
 * half of the parsers would refuse the whole message for it: it becomes U+FFFD, as in every text that is encoded.
 *
 * @throws what `JSON.stringify` throws: for a bigint, a cycle, a getter that does.
 */
export function json(value: unknown): string | undefined {
  const text = JSON.stringify(value) as string | undefined;
  if (!text?.includes("\\ud")) return text;
  return text.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (escape) => (escape === "\\\\" ? escape : "\ufffd"));
}

/** Whether it is a `Uint8Array`, also one of another realm: tests run in one of their own. */
export function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && (value as Uint8Array)[Symbol.toStringTag] === "Uint8Array";
}

/** Runs code of the host's or a handler's whose failure, now or later, is nobody else's. */
export function quietly(work: () => unknown, failed: (error: unknown) => void = () => {}): void {
  (async () => work())().catch(failed);
}

const choices: { [name: string]: readonly string[] } = {
  seal: ["encrypted", "signed-readable"],
  divergence: ["ask-again", "fail"],
  afterEffects: ["refuse", "keep", "drop"],
  once: ["at-least-once", "at-most-once"],
  whenDown: ["closed", "open"],
};
const groups = new Set(["limits", "replay", "ledger", "cache", "policy"]);

/**
 * Options that the engine would take for absent, because they are not of their type: a lifetime of `1.5` must not become
 * the default without a word.
 *
 * @throws ConfigError that names the first.
 */
export function sensible(options: object, path = ""): void {
  for (const [name, value] of Object.entries(options)) {
    const full = path + name;
    if (value === undefined) continue;
    const wrong = (what: string) => new ConfigError(`${full}: ${what} is needed`);
    if (groups.has(full)) {
      if (typeof value !== "object" || value === null) throw wrong("an object");
      sensible(value, `${full}.`);
    } else if (choices[name] !== undefined) {
      if (!choices[name].includes(value as string)) throw wrong(`one of ${choices[name].join(", ")}`);
    } else if (name.endsWith("Ms") || typeof value === "number") {
      if (!Number.isSafeInteger(value) || (value as number) < 0) throw wrong("a whole number, 0 or more,");
    } else if (name === "hosts" || name === "origins") {
      if (!Array.isArray(value)) throw wrong("a list");
    }
  }
  if (path !== "") return;
  const { name, version } = options as { name?: unknown; version?: unknown };
  for (const [what, value] of Object.entries({ name, version })) {
    if (typeof value !== "string" || value === "") throw new ConfigError(`${what}: a text is needed`);
  }
}

const immediate = (globalThis as { setImmediate?: (work: () => void) => unknown }).setImmediate;

/** Does it when everything that needs nothing but promises is done. */
export function macrotask(work: () => void): void {
  if (immediate !== undefined) immediate(work);
  else setTimeout(work, 0);
}
