/** The server's half. */
export { Ask } from "./ask.js";
export type { AskOptions, Context, LogLevel, Root, Sampled, Sampling } from "./context.js";
export * from "./errors.js";
export { Exchange, questions, type Given, type Question, type Required } from "./exchange.js";
export { initSync } from "./runtime.js";
export type * from "./schema.js";
export {
  anonymous,
  anonymousIgnoringAuthorization,
  type Key,
  type Keys,
  type Limits,
  type Principal,
  type PromptOptions,
  type PromptResult,
  type RequestOptions,
  type ResourceOptions,
  type ResourceResult,
  type ServerOptions,
  type ToolOptions,
  type ToolResult,
} from "./options.js";
export { McpServer } from "./server.js";
export { type LedgerStore, MemoryStore, same } from "./store.js";
