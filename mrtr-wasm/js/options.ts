/** What a server is made with, what it offers, and what a request comes with. */
import type { FromSchema, JsonSchema } from "./schema.js";
import type { LedgerStore } from "./store.js";

/** A secret of 32 bytes or more: the bytes, or base64url text without padding as `mrtr keygen` makes it. */
export type Key = string | Uint8Array;

/**
 * Where the keys come from. The first one seals, all of them open. Replacing OLD by NEW without refusing a call
 * that waits for its answer takes three steps, each on every replica before the next: `[OLD, NEW]`, `[NEW, OLD]`, and
 * after the longest TTL `[NEW]`.
 *
 * A function is asked again every `keysRefreshMs` and gets the `env` of the request, so that keys come from a binding and
 * are rotated without a redeploy. While it fails, the keys that were known stay.
 */
export type Keys = readonly Key[] | ((env: never) => readonly Key[] | Promise<readonly Key[]>);

/** Everybody is nobody in particular: states are open to whoever has them. A request that carries `Authorization` is
 * refused, for its sender thinks that it is somebody. */
export const anonymous: unique symbol = Symbol("mrtr.anonymous");
/** The same, with credentials not looked at. */
export const anonymousIgnoringAuthorization: unique symbol = Symbol("mrtr.anonymousIgnoringAuthorization");

/**
 * Who sends a request: bytes or text that name one principal and no other, for ever, such as issuer and subject of a
 * verified token. Never something that the message says of itself (G-10).
 */
export type Principal = string | Uint8Array | typeof anonymous | typeof anonymousIgnoringAuthorization;

/** Bounds of a server, each inclusive; what goes over one gets an error that names it (G-07). */
export interface Limits {
  /** Bytes of one request. Default 4 MiB. */
  messageBytes?: number | undefined;
  /** Nesting of arrays and objects in a request. Default 64. */
  depth?: number | undefined;
  /** JSON values in a request, members and elements counted. Default 100,000. */
  nodes?: number | undefined;
  /** Questions that a handler may ask in one round. Default 16. */
  asksSent?: number | undefined;
  /** Answers that are read in one retry; further ones only if they answer an open question. Default 64. */
  asksAccepted?: number | undefined;
  /** Bytes of one answer as JSON. Default 64 KiB. */
  answerBytes?: number | undefined;
  /** Characters of a state, which holds the answers and what `once` and `set` keep. Default 64 KiB. */
  stateMinted?: number | undefined;
  /** Rounds with questions in one exchange. Default 16. */
  rounds?: number | undefined;
  /** Rounds without a question in one exchange. Default 60. */
  stateOnlyRounds?: number | undefined;
  /** How long an exchange may take from its first request to its last retry. Default 3,600,000. */
  exchangeMs?: number | undefined;
}

export interface ServerOptions {
  /** Who the server says it is. */
  name: string;
  version: string;
  title?: string | undefined;
  /** Text that discovery gives to the model. */
  instructions?: string | undefined;
  keys: Keys;
  /** Default 60,000; 0 asks before every request. */
  keysRefreshMs?: number | undefined;
  /** What states are bound to besides; the same on all replicas. Default: the name. */
  audience?: string | undefined;
  /** `encrypted` (XChaCha20-Poly1305, the default) or `signed-readable` (HMAC-SHA256; the client can read it). */
  seal?: "encrypted" | "signed-readable" | undefined;
  /** How long a state is good. Default 600,000. A client that waits for a person for days needs days here **and** in
   * `limits.exchangeMs`. */
  stateTtlMs?: number | undefined;
  /** How far the clocks of two replicas may be apart. Default 60,000. */
  skewMs?: number | undefined;
  /** Ask again instead of refusing when a state has expired and nothing else is wrong. */
  softExpiry?: boolean | undefined;
  /** Take no answer that comes without a state (A7). */
  requireState?: boolean | undefined;
  limits?: Limits | undefined;
  /** How handlers are run again (A3, A8, A10). */
  replay?: {
    /** When a run leaves the recorded path: ask anew what differs (the default), or `-32603` (A8). */
    divergence?: "ask-again" | "fail" | undefined;
    /** What `once` made behind such a point: `-32603` (the default), kept under its name, or made again (A8). */
    afterEffects?: "refuse" | "keep" | "drop" | undefined;
    /** How long a repeated round may stay short of its recorded asks, for whatever else the handler waits for (A3).
     * Default 2,000. */
    patienceMs?: number | undefined;
    /** How long a retry is held whose url was consented to and whose `until` says no (A10, G-32). Default 25,000; 0 holds
     * none. */
    holdUrlsMs?: number | undefined;
    /** How often `until` is asked meanwhile. Default 1,000. */
    lookMs?: number | undefined;
    /** How long a checkpoint waits for asks to ride with before it is sent alone (A10). Default 0. */
    holdCheckpointsMs?: number | undefined;
  } | undefined;
  /** Uses each state once and keeps replies for retries whose reply was lost (B1…B7). The same on all replicas. */
  ledger?: {
    store: LedgerStore;
    /** After a crash in a handler: its state may be used again when the lease has run out (the default), or never (B6).
     * What {@link Context.onCommit} does happens at most once in both. */
    once?: "at-least-once" | "at-most-once" | undefined;
    /** While the store fails: `-32603` (the default), or run without it, and so without single use (B7). */
    whenDown?: "closed" | "open" | undefined;
    /** How long a run holds its state without a sign of life; renewed every third of it. Default 30,000, at least 1,000. */
    leaseMs?: number | undefined;
    /** How long a second copy of a retry waits for the reply to the first (B4). Default 30,000. */
    waitMs?: number | undefined;
    /** Copies that wait for one reply at a time (B4). Default 4, at most 16. */
    waiters?: number | undefined;
    /** Bytes of a reply that is kept (B3); a longer one is sent, but not again. Default 256 KiB, at most 4 MiB. */
    replyBytes?: number | undefined;
    /** How far the clocks of two replicas may be apart. Default 5,000. */
    skewMs?: number | undefined;
    /** How long an entry is kept after its state has expired. Default 60,000. */
    retentionMs?: number | undefined;
  } | undefined;
  /** Names in `Host` that are this server's. Without any, every host is; behind a proxy or on an edge network that is
   * fine, for it has chosen the worker by name already. */
  hosts?: readonly string[] | undefined;
  /** Pages that may call, such as `https://app.example.com`. */
  origins?: readonly string[] | undefined;
  /** The server listens on this machine only: `Host` and `Origin` must name it. */
  loopback?: boolean | undefined;
  /** How long clients may keep lists. */
  cache?: { ttlMs?: number; public?: boolean } | undefined;
  /** Announces changes and serves subscriptions, for as long as this instance lives. */
  changes?: boolean | undefined;
  /** Is told what is asked, answered and refused, a line each (no content). */
  observe?: ((line: string) => void) | undefined;
  /** Is told what goes wrong. Default: `console.error`. */
  report?: ((message: string, error?: unknown) => void) | undefined;
}

/** What a request comes with besides itself. */
export interface RequestOptions {
  /** Required, so that nobody serves the anonymous by oversight. */
  principal: Principal;
  /** Given to a `keys` function. */
  env?: unknown;
  /** Keeps a worker alive for a commit that has begun when its client leaves: `ctx.waitUntil.bind(ctx)`. */
  waitUntil?: ((work: Promise<unknown>) => void) | undefined;
}

type Requirement = "form" | "url" | "sampling" | "sampling.tools" | "roots";
type Json = { readonly [name: string]: unknown };

interface Declared {
  description?: string | undefined;
  title?: string | undefined;
  /** Another lifetime for states of this one. */
  stateTtlMs?: number | undefined;
}
/** A tool. */
export interface ToolOptions<S extends JsonSchema = JsonSchema, A = FromSchema<S>> extends Declared {
  /** JSON Schema of the arguments. Of its keywords `type`, `properties`, `required`, `items`, `enum` and `const` are
   * checked before the handler is called; for more, give `parse`. */
  inputSchema?: S | undefined;
  /** Checks the arguments and makes what the handler gets, such as `schema.parse` of a validation library. What it throws
   * is told to the peer as invalid parameters. It may take its time. */
  parse?: ((args: unknown) => Awaitable<A>) | undefined;
  outputSchema?: JsonSchema | undefined;
  annotations?: Json | undefined;
  /** What the client must have declared before a line of the handler runs. */
  requires?: readonly Requirement[] | undefined;
}
export interface PromptOptions extends Declared {
  arguments?: readonly {
    name: string;
    description?: string | undefined;
    required?: boolean | undefined;
    completions?: readonly string[] | undefined;
  }[] | undefined;
}
export interface ResourceOptions extends Declared {
  name: string;
  mimeType?: string | undefined;
}

/** A text, or a result as the protocol has it. */
export type ToolResult =
  | string
  | { content: readonly object[]; structuredContent?: unknown; isError?: boolean; _meta?: object };
export type PromptResult = string | { messages: readonly object[]; description?: string; _meta?: object };
export type ResourceResult = string | { contents: readonly object[]; ttlMs?: number; cacheScope?: string; _meta?: object };
export type Awaitable<T> = T | Promise<T>;
