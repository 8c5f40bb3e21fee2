/** Who asks, and the keys that states are sealed with. */
import { ConfigError } from "./errors.js";
import { type Key, anonymous, anonymousIgnoringAuthorization } from "./options.js";
import { join } from "./body.js";
import { isBytes } from "./values.js";

export const nobody: unique symbol = Symbol("nobody");

/** The bytes that name a principal; nothing for an anonymous one. Whatever names nobody in particular (`null`, a promise that
 * was not awaited, a number that would be read as no bytes) must not become the principal of everybody. */
export function named(principal: unknown): Uint8Array | undefined | typeof nobody {
  if (principal === anonymous || principal === anonymousIgnoringAuthorization) return undefined;
  if (typeof principal === "string") {
    // Halves of surrogate pairs would all be encoded alike.
    return principal === "" || /\p{Cs}/u.test(principal) ? nobody : new TextEncoder().encode(principal);
  }
  return isBytes(principal) && principal.length > 0 ? principal : nobody;
}

/** Keys as the engine takes them: each behind its length in one byte. */
export function pack(keys: readonly Key[]): Uint8Array {
  if (!Array.isArray(keys) || keys.length === 0) throw new ConfigError("keys: a list of one or more is needed");
  const secrets = keys.map((key: unknown) => (typeof key === "string" ? decode(key) : key));
  if (!secrets.every(isBytes)) {
    throw new ConfigError("a key is text or bytes; is it set where you read it from?");
  }
  for (const secret of secrets) {
    if (secret.length < 32 || secret.length > 255) throw new ConfigError("a key has 32 to 255 bytes");
  }
  return join(
    secrets.flatMap((secret) => [Uint8Array.of(secret.length), secret]),
    secrets.reduce((sum, secret) => sum + secret.length + 1, 0),
  );
}

function decode(text: string): Uint8Array {
  if (!/^[A-Za-z0-9_-]+$/.test(text) || text.length % 4 === 1) throw new ConfigError("not the text of a key: base64url without padding");
  const base64 = text.replaceAll("-", "+").replaceAll("_", "/");
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
