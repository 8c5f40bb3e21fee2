/** Both halves. */
export { McpClient, type ToolDeclaration } from "./client.js";
export * from "./entry.server.js";
export * from "./failures.js";
export {
  type Answer,
  type Answerers,
  type CallOptions,
  type ClientAsk,
  type ClientOptions,
  PendingExchange,
  type ToolOutcome,
} from "./pending.js";
