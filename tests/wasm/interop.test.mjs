// With others: the official TypeScript SDK on both sides, and `mrtr serve`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { McpClient } from "mrtr";

import { KEY_TEXT, bundle, here, plainConfig, workerd } from "./lib.mjs";

/** A program that prints its url. */
export async function listening(command, ...args) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  child.stderr.on("data", (data) => (log += data));
  const url = await new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
      const found = /https?:\/\/\S+/.exec(text);
      if (found) resolve(found[0]);
    });
    child.once("exit", () => reject(new Error(`it ended: ${log}`)));
  });
  return { url, stop: () => child.kill() };
}

const answers = { days: { days: 3 }, pace: { pace: "slow" } };
const elicit = ({ params: { requestedSchema } }) => {
  const [name] = Object.keys(requestedSchema.properties);
  return { action: "accept", content: answers[name] };
};

test("the TypeScript SDK's client and a worker in workerd", async () => {
  const worker = await workerd(bundle(join(here, "interop.worker.mjs")), plainConfig, { env: { MRTR_KEYS: KEY_TEXT } });
  try {
    const child = spawn(process.execPath, [join(here, "sdk.client.mjs"), "http", worker.url], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (data) => (text += data));
    const code = await new Promise((done) => child.once("exit", done));
    assert.deepEqual([code, JSON.parse(text).version], [0, "2026-07-28"], text);
  } finally {
    await worker.stop();
  }
});

test("the TypeScript SDK's client and the example worker, ledger and all", async () => {
  const example = join(here, "examples/worker");
  const config = readFileSync(join(example, "workerd.capnp"), "utf8");
  const worker = await workerd(bundle(join(example, "worker.ts")), config, { env: { MRTR_KEYS: KEY_TEXT } });
  try {
    const info = { name: "peer", version: "0" };
    const client = new Client(info, { versionNegotiation: { mode: "auto" }, capabilities: { elicitation: { form: {} } } });
    const asked = [];
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      asked.push(params.message);
      return { action: "accept", content: asked.length === 1 ? { day: "2026-12-24", seating: "late" } : {} };
    });
    await client.connect(new StreamableHTTPClientTransport(new URL(worker.url)));
    const { content } = await client.callTool({ name: "book", arguments: { people: 2 } });
    assert.equal(content[0].text, "Booked for 2 on 2026-12-24, late seating.");
    assert.deepEqual(asked, ["A table for 2: when?", "Book the late seating on 2026-12-24?"]);
    assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
    await client.close();
  } finally {
    await worker.stop();
  }
});

test("the package's client and the TypeScript SDK's server", async () => {
  const server = await listening(process.execPath, join(here, "sdk.server.mjs"), "http");
  try {
    const client = new McpClient(server.url, { name: "c", version: "1" });
    const result = await client.callTool("plan", { city: "Lisbon" }, { elicit });
    assert.equal(result.content[0].text, "Lisbon, 3 days, slow");
  } finally {
    server.stop();
  }
});

test("the package's client and mrtr serve", { skip: !process.env.MRTR_PROGRAM && "MRTR_PROGRAM is not set" }, async () => {
  const server = await listening(process.env.MRTR_PROGRAM, "serve", "--listen", "127.0.0.1:0");
  try {
    const client = new McpClient(server.url, { name: "c", version: "1" });
    const tools = await client.listTools();
    assert.ok(tools.some(({ name }) => name === "plan"));
    const seen = [];
    const result = await client.callTool("plan", { city: "Lisbon" }, {
      elicit: (ask) => {
        seen.push(ask);
        const content = {};
        for (const [name, schema] of Object.entries(ask.params.requestedSchema.properties)) {
          content[name] = schema.type === "integer" ? 3 : schema.type === "boolean" ? true : (schema.enum?.[0] ?? schema.oneOf?.[0].const ?? "x");
        }
        return { action: "accept", content };
      },
    });
    assert.equal(seen.length, 2);
    assert.match(result.content[0].text, /Lisbon/);
  } finally {
    server.stop();
  }
});
