/** How a client's calls fail. */
import { McpError, MrtrError } from "./errors.js";

/** The server refuses a retry, most likely for its state: it has expired, or the server's keys have changed (G-11). The
 * call can be made anew. */
export class StateRefused extends McpError {
  override readonly code = "MRTR_STATE_REFUSED";
}
/** The server breaks the protocol. */
export class Violation extends MrtrError {
  constructor(message: string) {
    super("MRTR_VIOLATION", message);
  }
}
/** The reply is legal, but this client goes no further: too many rounds, or a question that was declined comes again. */
export class Stopped extends MrtrError {
  constructor(message: string) {
    super("MRTR_STOPPED", message);
  }
}
/** No message came back, or the connection broke. */
export class TransportError extends MrtrError {
  /** The HTTP status of a response without a message: 401, say. Nothing if no response came, or it broke off. */
  readonly status: number | undefined;
  constructor(message: string, options?: ErrorOptions & { status?: number }) {
    super("MRTR_TRANSPORT", message, options);
    this.status = options?.status;
  }
}
/** The reply did not come in time; the request was cancelled. */
export class TimedOut extends MrtrError {
  constructor() {
    super("MRTR_TIMED_OUT", "the reply did not come in time");
  }
}
/** The retry was not sent. */
export class NotSent extends MrtrError {
  constructor(message: string) {
    super("MRTR_NOT_SENT", message);
  }
}
/** A question that nobody could be asked, or whose answer did not fit three times. Nothing was sent for it. */
export class Unanswered extends MrtrError {
  readonly key: string;
  constructor(key: string, reason: string, options?: ErrorOptions) {
    super("MRTR_UNANSWERED", `${JSON.stringify(key)} is not answered: ${reason}`, options);
    this.key = key;
  }
}
/** Saved bytes that cannot be taken up here. */
export class ResumeError extends MrtrError {
  constructor(message: string) {
    super("MRTR_RESUME", message);
  }
}
