// No wasm object is left behind, and a broken instance is replaced.
import assert from "node:assert/strict";
import { test } from "node:test";

import { McpClient, McpServer } from "mrtr";

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

/** How many of these are held still, once garbage was collected. Looking at one keeps it for the turn. */
async function alive(refs) {
  let left = refs.length;
  for (let tries = 0; tries < 100 && left > 2; tries++) {
    await new Promise((go) => setTimeout(go, 2));
    gc();
    await new Promise((go) => setTimeout(go, 2));
    left = refs.filter((one) => one.deref() !== undefined).length;
  }
  return left;
}

test("what nobody holds any more gives its memory back: servers, clients, and exchanges that were never abandoned", async () => {
  const asked = { resultType: "input_required", requestState: "s", inputRequests: { a: { method: "elicitation/create", params: { mode: "form", message: "a".repeat(20_000), requestedSchema: { type: "object", properties: {} } } } } };
  const answering = async (_url, init) => {
    const { id } = JSON.parse(new TextDecoder().decode(init.body));
    return new Response(JSON.stringify({ jsonrpc: "2.0", id, result: asked }), { headers: { "content-type": "application/json" } });
  };
  const some = async (count, use) => {
    const held = [];
    for (let n = 0; n < count; n++) {
      const server = new McpServer({ name: "t", version: "1", keys: [KEY] }).tool("t", { description: "d".repeat(20_000) }, async (ctx) => String(await ctx.confirm("sure", "sure?")));
      await call(server, "t");
      const step = await new McpClient("http://mcp.test/mcp", { name: "c", version: "1", fetch: answering }).startTool("t", {}, { elicitation: {} });
      assert.equal(step.asks.length, 1);
      held.push(new WeakRef(server), new WeakRef(step));
      use(step);
    }
    // The engine's last references may stand on a stack.
    assert.ok((await alive(held)) <= 2);
    // Finalizers run after that.
    for (let n = 0; n < 20; n++) await new Promise((go) => setTimeout(go, 1));
  };
  for (const use of [() => {}, (step) => step.abandon()]) {
    // What lives at once, until garbage is collected, is another amount from one time to the next.
    for (let round = 0; round < 4; round++) await some(100, use);
    const before = memories();
    for (let round = 0; round < 5; round++) await some(100, use);
    // Held, they would take 40 KB each: 20 MB.
    assert.ok(memories() - before <= 1 << 20, `${before} bytes became ${memories()}`);
  }
});

test("an exchange that is abandoned gives its memory back at once, and so does one that is done: no garbage is collected", async () => {
  const message = "a".repeat(20_000);
  const inputRequests = { a: { method: "elicitation/create", params: { mode: "form", message, requestedSchema: { type: "object", properties: {} } } } };
  const answering = async (_url, init) => {
    const { id, params } = JSON.parse(new TextDecoder().decode(init.body));
    const asked = { resultType: "input_required", requestState: "s", inputRequests };
    const result = params.inputResponses === undefined ? asked : { resultType: "complete", content: [] };
    return new Response(JSON.stringify({ jsonrpc: "2.0", id, result }), { headers: { "content-type": "application/json" } });
  };
  const client = new McpClient("http://mcp.test/mcp", { name: "c", version: "1", fetch: answering });
  // Held to the end, so that no finalizer does it.
  const held = [];
  const some = async (count, end) => {
    for (let n = 0; n < count; n++) {
      const step = await client.startTool("t", {}, { elicitation: {} });
      await end(step);
      held.push(step);
    }
  };
  const ends = [(step) => step.abandon(), async (step) => (step.answer("a", { action: "accept", content: {} }), assert.ok((await step.proceed()).done))];
  for (const end of ends) {
    await some(50, end);
    const before = memories();
    await some(500, end);
    // Held, they would take 40 KB each: 20 MB.
    assert.ok(memories() - before <= 1 << 20, `${before} bytes became ${memories()}`);
  }
  assert.equal(held.length, 1_100);
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

test("a tool that is offered after somebody else's trap goes to the instance that lives", async () => {
  const make = (name) => new McpServer({ name, version: "1", keys: [KEY], report: () => {} }).tool("t", {}, () => name);
  const [one, two] = [make("one"), make("two")];
  for (const server of [one, two]) await call(server, "t");
  const { memory } = instances.at(-1).exports;
  new Uint8Array(memory.buffer).fill(0xff, 1_024, memory.buffer.byteLength);
  await call(one, "t");
  two.tool("later", {}, () => "later");
  assert.throws(() => two.tool("later", {}, () => "again"), { name: "ConfigError" });
  for (const tool of ["t", "later"]) assert.equal((await call(two, tool)).result.content[0].text, tool === "t" ? "two" : "later");
});
