// No wasm object is left behind, and a broken instance is replaced.
import assert from "node:assert/strict";
import { test } from "node:test";

import { McpServer } from "mrtr";

import { KEY, call } from "./lib.mjs";

const EXCHANGES = Number(process.env.MRTR_WASM_EXCHANGES ?? 10_000);

/** Bytes of every memory that was made. */
function memories() {
  return made.reduce((sum, memory) => sum + memory.buffer.byteLength, 0);
}
const made = [];
const { Instance } = WebAssembly;
WebAssembly.Instance = new Proxy(Instance, {
  construct(target, args) {
    const instance = new target(...args);
    made.push(instance.exports.memory);
    instances.push(instance);
    return instance;
  },
});
const instances = [];

test(`memory is flat over ${EXCHANGES} exchanges, half of them left in the middle`, { timeout: 600_000 }, async () => {
  const server = new McpServer({ name: "t", version: "1", keys: [KEY] }).tool("t", {}, async (ctx) => {
    ctx.once("x", () => 1);
    return String(await ctx.confirm("sure", "sure?"));
  });
  const exchange = async (n) => {
    const one = await call(server, "t");
    if (n % 2) return;
    const two = await call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } });
    assert.equal(two.result.content[0].text, "true");
  };
  for (let n = 0; n < 500; n++) await exchange(n);
  const before = memories();
  for (let n = 0; n < EXCHANGES; n += 8) await Promise.all(Array.from({ length: 8 }, (_, k) => exchange(n + k)));
  assert.ok(memories() - before <= 65_536, `${before} bytes became ${memories()}`);
  console.log(`wasm memory: ${before} bytes before, ${memories()} after ${EXCHANGES} exchanges`);
});

test("a trap poisons the instance: it is replaced, requests in it get -32603, later ones are served", async () => {
  const reports = [];
  let release;
  const held = new Promise((resolve) => (release = resolve));
  const server = new McpServer({ name: "t", version: "1", keys: [KEY], report: (message) => reports.push(message) })
    .tool("t", {}, async (ctx) => String(await ctx.confirm("sure", "sure?")))
    .tool("held", {}, () => held);
  const one = await call(server, "t");
  const waiting = call(server, "held");
  const broken = instances.at(-1).exports;
  const before = instances.length;
  // Nothing in the engine traps that we know of: its memory is spoilt, where its tables of functions are.
  new Uint8Array(broken.memory.buffer).fill(0xff, 1_024, broken.memory.buffer.byteLength);
  const hurt = await call(server, "t");
  assert.ok(hurt.result?.resultType === "input_required" || hurt.error?.code === -32603, JSON.stringify(hurt));
  const lost = await waiting;
  assert.equal(lost.error?.code, -32603);
  release("late");
  const two = await call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } });
  assert.equal(two.result.content[0].text, "true");
  assert.equal(instances.length, before + 1);
});
