import type { IncomingMessage, ServerResponse } from "node:http";

import { ConfigError } from "./errors.js";
import { join } from "./body.js";
import type { RequestOptions } from "./options.js";
import type { McpServer } from "./server.js";

/** What a request comes with; may be found out from the request, such as by verifying its token. */
export type NodeOptions = RequestOptions | ((request: IncomingMessage) => RequestOptions | Promise<RequestOptions>);

/**
 * A listener for `node:http` and `node:https`:
 *
 * ```ts
 * createServer(nodeListener(server, { principal: anonymous })).listen(3000, "127.0.0.1");
 * ```
 *
 * A server that listens on loopback is made with `loopback: true`, so that no page can reach it by pointing a name of its
 * own at this machine.
 */
export function nodeListener(
  server: McpServer,
  options: NodeOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    serve(server, options, request, response).catch((error: unknown) => {
      // Who leaves before the request is whole is no failure.
      if (request.destroyed && !request.complete) return void response.destroy();
      console.error("mrtr: a request failed", error);
      if (response.headersSent) response.destroy();
      else response.writeHead(500, { "content-type": "text/plain" }).end("the server failed\n");
    });
  };
}

async function serve(
  server: McpServer,
  options: NodeOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { rawHeaders } = request;
  const lines: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  if (request.headers.host === undefined && typeof request.headers[":authority"] === "string") {
    lines.push(`host: ${request.headers[":authority"]}`);
  }
  let over = false;
  const attempt = await server.handle(
    request.method ?? "",
    lines,
    typeof options === "function" ? await options(request) : options,
    {
      begin: (status, headers, bytes, last) => {
        over = last;
        const head: string[] = [];
        for (const [name, value] of headers) head.push(name, value);
        if (last) head.push("Content-Length", String(bytes.length));
        response.writeHead(status, head);
        if (last) response.end(bytes);
        else response.write(bytes);
      },
      piece: (bytes, last) => {
        over = last;
        if (last) response.end(bytes);
        else response.write(bytes);
      },
      broken: () => {
        over = true;
        if (response.headersSent) response.destroy();
        else response.writeHead(500, { "content-type": "text/plain" }).end("the server failed\n");
      },
    },
    (limit) => body(request, limit),
  );
  if (attempt === undefined || attempt.isOver) return;
  const gone = () => {
    if (!over) attempt.gone();
  };
  if (response.closed || response.destroyed) gone();
  else response.once("close", gone);
}

function body(request: IncomingMessage, limit: number): Promise<Uint8Array | undefined> {
  if (request.readableEnded) {
    throw new ConfigError("the request's body was read already: mount the listener before what parses bodies");
  }
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    request.on("data", (chunk: Uint8Array) => {
      length += chunk.length;
      if (length > limit) {
        request.pause();
        resolve(undefined);
      } else chunks.push(chunk);
    });
    request.on("end", () => resolve(join(chunks, length)));
    request.on("error", reject);
    // After its end this says nothing new.
    request.on("close", () => reject(new Error("the request was not sent to its end")));
  });
}
