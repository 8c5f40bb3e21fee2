/** What every error of this package is; `code` is stable, `message` is for people. */
export class MrtrError extends Error {
  readonly code: string;
  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/**
 * What a handler throws to answer with a JSON-RPC error of its own, and what a client gets when the peer did.
 *
 * `message` and `data` reach the peer: put nothing secret there.
 */
export class McpError extends MrtrError {
  /** The JSON-RPC code; those of an application lie outside -32768…-32000. */
  readonly rpcCode: number;
  readonly data: unknown;
  constructor(rpcCode: number, message: string, data?: unknown) {
    super("MRTR_PEER", message);
    this.rpcCode = rpcCode;
    this.data = data;
  }
}

/** An ask has no answer. A handler that does not catch it ends the request with an error. */
export class AskError extends MrtrError {
  /** The key of the ask. */
  readonly key: string;
  constructor(code: string, key: string, message: string) {
    super(code, message);
    this.key = key;
  }
}

/** The content did not fit the form three times (G-18). */
export class AskInvalid extends AskError {
  /** In a sentence for the person. */
  readonly reason: string;
  constructor(key: string, reason: string) {
    super("MRTR_ASK_INVALID", key, `the answer to ${JSON.stringify(key)} does not fit: ${reason}`);
    this.reason = reason;
  }
}

/** The answer cannot be had: the question was taken back, or the request ended while it was awaited. */
export class AskFailed extends AskError {
  constructor(key: string, reason: string) {
    super("MRTR_ASK_FAILED", key, reason);
  }
}

/**
 * A context was used after its attempt had ended: by a timer, or by a promise that was started beside an ask and not
 * awaited. The handler has been suspended and will run again, or its reply is out.
 */
export class AttemptEnded extends MrtrError {
  constructor(what: string) {
    super("MRTR_ATTEMPT_ENDED", `${what}: the attempt is over; see ctx.signal and ctx.onSuspend`);
  }
}

/** The package was set up in a way that cannot work. */
export class ConfigError extends MrtrError {
  constructor(message: string, options?: ErrorOptions) {
    super("MRTR_CONFIG", message, options);
  }
}
