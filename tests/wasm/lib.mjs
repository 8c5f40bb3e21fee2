// What the tests share: requests as raw JSON, workers bundled as wrangler does it and run in workerd.
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);

export const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "tests", version: "0" },
  "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} },
};

let ids = 0;

/** A request's head and body. */
export function request(method, params, { capabilities, headers = {}, meta = {} } = {}) {
  const _meta = { ...META, ...meta };
  if (capabilities) _meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
  const named = params.name ?? params.uri;
  return {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(named === undefined ? {} : { "mcp-name": named }),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++ids, method, params: { ...params, _meta } }),
  };
}

/** Calls a tool of a server in this process: the reply's JSON, with its status. */
export async function call(server, name, args = {}, more = {}, options = {}) {
  const { principal = "ada", env, ...rest } = options;
  const init = request("tools/call", { name, arguments: args, ...more }, rest);
  const response = await server.fetch(new Request("http://mcp.test/mcp", init), { principal, env });
  return { status: response.status, ...(await reply(response)) };
}

/** The last message of a response, and the notifications before it. */
export async function reply(response) {
  const text = await response.text();
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    return { notifications: [], ...(text === "" ? {} : JSON.parse(text)) };
  }
  const messages = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data));
  return { notifications: messages.slice(0, -1), ...messages.at(-1) };
}

/** Plays an exchange to its end. `answers` has a value a key: an action, `{content}`, or anything else as it is. */
export async function play(server, name, args, answers, options) {
  const rounds = [];
  let more = {};
  for (let round = 0; round < 20; round++) {
    const got = await call(server, name, args, more, options);
    if (got.result?.resultType !== "input_required") return { ...got, rounds };
    const keys = Object.keys(got.result.inputRequests ?? {});
    rounds.push(keys);
    more = { requestState: got.result.requestState };
    if (keys.length > 0) {
      more.inputResponses = Object.fromEntries(keys.filter((key) => key in answers).map((key) => [key, wire(answers[key])]));
    }
  }
  throw new Error("no end");
}

export function wire(answer) {
  if (typeof answer === "string") return { action: answer };
  return "content" in answer && !("role" in answer) ? { action: "accept", ...answer } : answer;
}

/** A form with one line of text. */
export const line = (message, name) => ({
  message,
  schema: { type: "object", properties: { [name]: { type: "string" } }, required: [name] },
});

export const KEY = new Uint8Array(32).fill(7);
export const KEY_TEXT = Buffer.from(KEY).toString("base64url");

/** Bundles a worker the way wrangler does: one file, with the module beside it. Gives its folder. */
export function bundle(file, role = "server") {
  const esbuild = require("esbuild");
  const folder = mkdtempSync(join(tmpdir(), "mrtr-worker-"));
  mkdirSync(join(folder, "dist"));
  esbuild.buildSync({
    entryPoints: [file],
    bundle: true,
    format: "esm",
    conditions: ["workerd"],
    external: ["*.wasm", "node:*"],
    outfile: join(folder, "dist/worker.js"),
    logLevel: "error",
  });
  cpSync(join(dirname(require.resolve("mrtr/package.json")), role, "mrtr_bg.wasm"), join(folder, "dist/mrtr_bg.wasm"));
  return folder;
}

export async function freePort() {
  const probe = createServer();
  await new Promise((done) => probe.listen(0, "127.0.0.1", done));
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  return port;
}

const get = async (url) => (await fetch(url, { method: "GET" })).text();

/** Runs a configuration in workerd; `{ url, stop, pid }`. It is ready when `probe` of its url does not fail. */
export async function workerd(folder, config, { env = {}, path = "/mcp", probe = get, pause = 25 } = {}) {
  const port = await freePort();
  writeFileSync(join(folder, "config.capnp"), config);
  mkdirSync(join(folder, "ledger"), { recursive: true });
  const program = join(dirname(require.resolve("@cloudflare/workerd-linux-64/package.json")), "bin/workerd");
  const child = spawn(program, ["serve", "config.capnp", "--socket-addr", `http=127.0.0.1:${port}`], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (log += data));
  const ended = new Promise((done) => child.once("exit", done));
  const url = `http://127.0.0.1:${port}${path}`;
  for (let tries = 0; ; tries++) {
    try {
      await probe(url);
      break;
    } catch (error) {
      if (tries * pause > 5_000 || child.exitCode !== null) throw new Error(`workerd does not listen:\n${log}`, { cause: error });
      await new Promise((done) => setTimeout(done, pause));
    }
  }
  return {
    url,
    pid: child.pid,
    log: () => log,
    async stop() {
      child.kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The configuration of a worker without bindings but for its keys. */
export const plainConfig = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [
    (name = "worker.js", esModule = embed "dist/worker.js"),
    (name = "mrtr_bg.wasm", wasm = embed "dist/mrtr_bg.wasm"),
  ],
  bindings = [(name = "MRTR_KEYS", fromEnvironment = "MRTR_KEYS")],
  compatibilityDate = "2026-11-01",
);
`;
