/** Both halves. */
export * from "./client.js";
export * from "./entry.server.js";
