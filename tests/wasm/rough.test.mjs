// What handlers, hosts and stores do that they should not: nobody else is hurt, and what is wrong is said.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { runInNewContext } from "node:vm";

import { ConfigError, McpClient, McpError, McpServer, MemoryStore, anonymous, nodeListener, questions } from "mrtr";

import { KEY, KEY_TEXT, call, line, play, reply, request } from "./lib.mjs";

const reports = [];
const make = (options = {}) =>
  new McpServer({ name: "t", version: "1", keys: [KEY], report: (message, error) => reports.push(`${message} ${error ?? ""}`), ...options });
const text = (got) => got.result?.content?.[0]?.text ?? JSON.stringify(got.error ?? got);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const run = (handler, options) => call(make(options).tool("t", {}, handler), "t");
const asking = (options) => make(options).tool("t", {}, async (ctx) => String(await ctx.confirm("sure", "sure?")));
const yes = (one) => ({ requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } });
const never = new Promise(() => {});
/** Fails if something was left for nobody to catch. */
async function calm(work) {
  const loose = [];
  const hear = (error) => loose.push(error);
  process.on("unhandledRejection", hear).on("uncaughtException", hear);
  try {
    await work();
    await pause(60);
  } finally {
    process.off("unhandledRejection", hear).off("uncaughtException", hear);
  }
  assert.deepEqual(loose, []);
}

test("what cannot be sent is the handler's fault, named in the log, and hurts no other request", async () => {
  const cyclic = { content: [] };
  cyclic.self = cyclic;
  let deep = {};
  for (let n = 0; n < 200_000; n++) deep = { deep };
  const results = {
    bigint: () => ({ content: [], n: 1n }),
    cyclic: () => cyclic,
    deep: () => ({ content: [], deep }),
    getter: () => ({ get content() { throw new RangeError("mine"); } }),
    nothing: () => undefined,
    null: () => null,
    number: () => 42,
    list: () => [],
    shapeless: () => ({ ok: true }),
    flat: () => ({ content: "hi" }),
    function: () => () => 1,
    data: () => { throw new McpError(7, "m", 1n); },
    code: () => { throw new McpError(4.02, "m"); },
    noCode: () => { throw new McpError(NaN, "m"); },
    promise: () => Object.defineProperty(Promise.resolve("hi"), "constructor", { get() { throw new RangeError("mine"); } }),
    undefined: () => { throw undefined; },
    proxy: () => { throw new Proxy({}, { getPrototypeOf() { throw new Error("proto"); } }); },
    commit: (ctx) => (ctx.onCommit(() => { throw new McpError(7, "m", 1n); }), "ok"),
  };
  let release;
  const held = new Promise((resolve) => (release = resolve));
  const server = make().tool("held", {}, () => held);
  for (const [name, handler] of Object.entries(results)) server.tool(name, {}, handler);
  const waiting = call(server, "held");
  for (const name of Object.keys(results)) {
    reports.length = 0;
    const got = await call(server, name);
    assert.deepEqual(got.error, { code: -32603, message: "Internal error" }, name);
    assert.equal(reports.length, 1, `${name}: ${reports}`);
    assert.match(reports[0], new RegExp(`^${name}: (the handler threw|what the handler returned|the error that|a step of the commit)`));
  }
  release("fine");
  assert.equal(text(await waiting), "fine", "the instance was not given up for it");
  const prompts = make().prompt("p", {}, () => ({ content: [] })).resource("mem://r", { name: "r" }, () => ({ messages: [] }));
  for (const [method, params] of [["prompts/get", { name: "p" }], ["resources/read", { uri: "mem://r" }]]) {
    const got = await reply(await prompts.fetch(new Request("http://mcp.test/", request(method, params)), { principal: "ada" }));
    assert.equal(got.error?.code, -32603, method);
  }
  assert.equal(text(await run(() => ({ toJSON: () => ({ content: [{ type: "text", text: "made" }] }) }))), "made");
});

test("B3: a result that cannot be sent ends its run; nobody waits for the lease", async () => {
  const server = make({ ledger: { store: new MemoryStore() } }).tool("t", {}, async (ctx) => {
    await ctx.confirm("sure", "sure?");
    return { content: [], x: 1n };
  });
  const one = await call(server, "t");
  const begun = Date.now();
  for (let copy = 0; copy < 2; copy++) assert.equal((await call(server, "t", {}, yes(one))).error.message, "Internal error");
  assert.ok(Date.now() - begun < 2_000);
});

test("values of another type than the engine takes are refused at the border, and spoil no memory", async () => {
  const strange = [5, null, undefined, true, [], {}, ["a"], { length: 1e9 }, 1n, Symbol("s"), () => 1];
  const asks = [
    (ctx, x) => ctx.confirm("k", x),
    (ctx, x) => ctx.confirm(x, "?"),
    (ctx, x) => ctx.elicit("k", { message: x, schema: line("?", "v").schema }),
    (ctx, x) => ctx.elicitUrl("k", { message: "?", url: x }),
    (ctx, x) => ctx.ticket(x, 1_000),
    (ctx, x) => ctx.set(x, 1),
    (ctx, x) => ctx.part(x),
  ];
  const server = make();
  asks.forEach((ask, a) => strange.forEach((x, b) => server.tool(`${a}.${b}`, {}, async (ctx) => `${await ask(ctx, x)}`)));
  server.tool("good", {}, async (ctx) => String(await ctx.confirm("sure", "sure?")));
  reports.length = 0;
  for (const a of asks.keys()) for (const b of strange.keys()) assert.equal((await call(server, `${a}.${b}`)).error?.code, -32603, `${a}.${b}`);
  assert.deepEqual(reports.filter((line) => line.includes("the engine failed")), []);
  assert.equal(text(await play(server, "good", {}, { sure: "accept" })), "true");
  assert.throws(() => server.openTicket(5, "ada"), TypeError);
  assert.equal(server.openTicket("no ticket", "ada"), undefined);
});

test("halves of surrogate pairs are sent as U+FFFD, wherever they come from", async () => {
  const half = "\ud800 \\ud800 \\\ud800";
  const fine = "\ufffd \\ud800 \\\ufffd";
  const server = make().tool("t", {}, async (ctx) => {
    const once = await ctx.once("v", () => ({ [half]: half }));
    ctx.set("v", half);
    await ctx.confirm("sure", half);
    return { content: [{ type: "text", text: JSON.stringify([once, ctx.get("v")]) }], structuredContent: { half } };
  });
  const one = await call(server, "t");
  assert.equal(one.result.inputRequests.sure.params.message, fine);
  const two = await call(server, "t", {}, yes(one));
  assert.deepEqual(JSON.parse(text(two)), [{ [fine]: fine }, fine]);
  assert.equal(two.result.structuredContent.half, fine);
});

test("G-10: what names nobody in particular is nobody's principal", async () => {
  const server = asking();
  const nobody = [null, undefined, "", 42, true, {}, ["ada"], Promise.resolve("ada"), new Uint8Array(), new ArrayBuffer(3), new DataView(new ArrayBuffer(3)), Symbol("x"), "\ud800"];
  for (const principal of nobody) {
    reports.length = 0;
    const got = await server.fetch(new Request("http://mcp.test/", request("tools/call", { name: "t" })), { principal });
    assert.equal(got.status, 500, String(principal));
    assert.match(reports[0], /without a principal/);
  }
  assert.equal((await server.fetch(new Request("http://mcp.test/", request("tools/call", { name: "t" })))).status, 500);
  const ticket = text(await run((ctx) => ctx.ticket("k", 60_000)));
  const anybody = make();
  for (const principal of nobody) assert.equal(anybody.openTicket(ticket, principal), undefined);
  assert.equal(anybody.openTicket(ticket, "ada").key, "k");
});

test("R-142: a ticket's life is as long as it was said to be", async () => {
  const day = 86_400_000;
  const server = make().tool("t", {}, (ctx) => ctx.ticket("k", 60 * day));
  const { expires } = server.openTicket(text(await call(server, "t")), "ada");
  assert.ok(expires - Date.now() > 59 * day);
  for (const ms of [NaN, 0, -1, "soon", undefined]) {
    reports.length = 0;
    assert.equal((await run((ctx) => ctx.ticket("k", ms))).error.code, -32603);
    assert.match(reports.join(), /ttlMs/);
  }
});

test("options that are not what they should be are refused when they are given", async () => {
  const store = new MemoryStore();
  for (const options of [
    { stateTtlMs: -1 }, { stateTtlMs: 1.5 }, { stateTtlMs: "10" }, { stateTtlMs: Infinity }, { stateTtlMs: NaN }, { stateTtlMs: 0 },
    { limits: { messageBytes: 1e21 } }, { limits: { rounds: 0.5 } }, { limits: 5 }, { seal: "signed" }, { replay: { divergence: "x" } },
    { ledger: {} }, { ledger: { store: null } }, { ledger: { store: {} } }, { ledger: { store, once: "once" } }, { ledger: { store, leaseMs: -1 } },
    { name: "" }, { name: undefined }, { name: 5 }, { version: undefined }, { hosts: "x" }, { hosts: ["bad host/"] }, { origins: "x" }, { keysRefreshMs: -1 },
    { keys: [] }, { keys: KEY_TEXT }, { keys: [undefined] }, { keys: undefined }, { keys: [5] }, { keys: ["AAAAA"] }, { keys: [`${KEY_TEXT}=`] }, { keys: [KEY, KEY] },
  ]) {
    assert.throws(() => make(options), ConfigError, JSON.stringify(options));
  }
  assert.throws(() => new McpClient("http://mcp.test/", { name: "c", version: "1", policy: { requestTimeoutMs: 1.5 } }), ConfigError);
  const server = make();
  for (const declare of [
    (name) => server.tool(name), (name) => server.tool(name, {}), (name) => server.tool(name, {}, "no"), (name) => server.tool(name, { inputSchema: { type: "string" } }, () => ""),
    (name) => server.tool(name, { inputSchema: "str" }, () => ""),
    ...[{ required: true }, { properties: [] }, { properties: { x: 5 } }, { properties: { x: { enum: "ab" } } }, { properties: { x: { type: "text" } } }, { properties: { x: { items: { type: [5] } } } }].map(
      (part) => (name) => server.tool(name, { inputSchema: { type: "object", ...part } }, () => ""),
    ),
    (name) => server.tool(name, { requires: ["nope"] }, () => ""), (name) => server.tool(name, { stateTtlMs: 0.5 }, () => ""),
    () => server.tool("", {}, () => ""), () => server.tool(5, {}, () => ""), () => server.resourceTemplate("mem://{", { name: "r" }, () => ""),
  ]) {
    assert.throws(() => declare("x"), ConfigError);
  }
  // What was refused has shifted nothing.
  server.tool("a", {}, () => "A");
  assert.throws(() => server.tool("a", {}, () => "A2"), ConfigError);
  server.tool("b", {}, () => "B");
  assert.equal(text(await call(server, "b")), "B");
});

test("R-077: a source of keys that fails or hangs holds nobody else up", async () => {
  reports.length = 0;
  let source = () => never;
  const server = new McpServer({ name: "t", version: "1", keysRefreshMs: 0, report: (message) => reports.push(message), keys: () => source() }).tool("t", {}, () => "ok");
  void call(server, "t"); // never answered: its runtime has given it up
  source = () => undefined;
  const refused = await server.fetch(new Request("http://mcp.test/", request("tools/call", { name: "t" })), { principal: "ada" });
  assert.equal(refused.status, 500);
  assert.match(reports.join(), /cannot be started/);
  source = () => [KEY];
  assert.equal(text(await call(server, "t")), "ok");
});

test("arguments: schemas that are true or false, structured constants, and a parse that takes its time", async () => {
  const server = make()
    .tool("s", { inputSchema: { type: "object", properties: { any: true, none: false, one: { const: { x: [1], y: 2 } }, some: { enum: [[1], null] } } } }, (_, args) => JSON.stringify(args))
    .tool("p", { parse: async (args) => { await pause(5); if (args.n !== 1) throw new Error("n must be 1"); return args.n; } }, (_, n) => `${n}`);
  for (const args of [{ any: [] }, { one: { y: 2, x: [1] } }, { some: [1] }, { some: null }]) assert.equal(text(await call(server, "s", args)), JSON.stringify(args));
  for (const args of [{ none: 1 }, { one: { x: [1] } }, { one: { x: [1], y: 2, z: 3 } }, { one: { x: { 0: 1 }, y: 2 } }, { some: [2] }]) assert.equal((await call(server, "s", args)).error?.code, -32602, JSON.stringify(args));
  await calm(async () => {
    assert.equal(text(await call(server, "p", { n: 1 })), "1");
    assert.match((await call(server, "p", { n: 2 })).error.message, /n must be 1/);
  });
  const polluted = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}');
  assert.equal(text(await call(server, "s", polluted)), JSON.stringify(polluted));
  assert.equal({}.polluted, undefined);
});

test("A11: an effect without a value is recorded too", async () => {
  let sent = 0;
  const server = make().tool("t", {}, async (ctx) => {
    const value = await ctx.once("mail", () => void sent++);
    await ctx.confirm("sure", "sure?");
    return `${value} ${sent}`;
  });
  assert.equal(text(await play(server, "t", {}, { sure: "accept" })), "null 1");
});

test("A12: what a commit asks has no answer, and holds nobody up", async () => {
  reports.length = 0;
  for (const step of [(ctx) => ctx.confirm("k", "?"), (ctx) => ctx.checkpoint()]) {
    const got = await run((ctx) => (ctx.onCommit(async () => void (await step(ctx))), "ok"));
    assert.equal(got.error?.code, -32603);
  }
  assert.match(reports.join(), /a step of the commit threw AskFailed/);
  assert.match(text(await run((ctx) => ctx.onCommit("no"))), /-32603/);
});

test("A1: a question that was taken back has no answer", async () => {
  const got = await run(async (ctx) => {
    const ask = ctx.confirm("k", "?");
    ask.withdraw();
    return ask.then(String, (error) => `${error.code} ${error.message}`);
  });
  assert.equal(text(got), "MRTR_ASK_FAILED the question was taken back");
});

test("callbacks that throw or reject, and timers that go on, hurt nobody", async () => {
  const bad = () => { throw new RangeError("mine"); };
  await calm(async () => {
    assert.equal(text(await run(() => "ok", { observe: bad })), "ok");
    assert.equal((await run(bad, { report: bad })).error.code, -32603);
    assert.equal((await run(bad, { report: async () => bad() })).error.code, -32603);
    let timer;
    const one = await run(async (ctx) => {
      ctx.onSuspend(async () => bad());
      timer = setInterval(() => (ctx.progress(1), ctx.log("info", "still here")), 5);
      await ctx.confirm("sure", "sure?");
    });
    assert.equal(one.result.resultType, "input_required");
    await pause(40);
    clearInterval(timer);
  });
});

test("errors that throw when they are looked at cost nobody else the engine", async (t) => {
  const logged = [];
  t.mock.method(console, "error", (...what) => {
    if (what.some((one) => typeof one === "object")) throw new RangeError("looked at");
    logged.push(what.join(" "));
  });
  const server = make({ report: undefined }).tool("t", {}, () => { throw {}; }).tool("held", {}, async () => (await pause(20), "fine"));
  const waiting = call(server, "held");
  assert.equal((await call(server, "t")).error.code, -32603);
  assert.equal(text(await waiting), "fine");
  assert.deepEqual(logged, ["mrtr: t: the handler threw"]);
});

test("G-07: a state over its bound is named in the log, as it is to the client", async () => {
  const long = "y".repeat(100_000);
  const server = make()
    .tool("awaits", {}, async (ctx) => (ctx.set("x", long), String(await ctx.confirm("sure", "?"))))
    .returningTool("returns", {}, (exchange) => exchange.require({ sure: questions.confirm("?") }, long));
  for (const name of ["awaits", "returns"]) {
    reports.length = 0;
    const { error } = await call(server, name);
    assert.match(error.message, /65536 \(state_minted\)/);
    assert.match(reports.join(), new RegExp(`^${name}: .*65536 \\(state_minted\\)`));
  }
});

test("R-205: what is no change is the caller's fault, and closes nothing", async () => {
  const server = make({ changes: true }).tool("t", {}, async () => (await pause(20), "fine"));
  const waiting = call(server, "t");
  const stream = await server.fetch(new Request("http://mcp.test/", request("subscriptions/listen", { notifications: { toolsListChanged: true } })), { principal: "ada" });
  await pause(1);
  for (const change of [undefined, null, "tool", "", 5, {}, { resource: 5 }, ["tools"]]) assert.throws(() => server.notify(change), TypeError);
  server.notify("tools");
  server.close();
  assert.match(await stream.text(), /list_changed/);
  assert.equal(text(await waiting), "fine");
});

test("A12: a `waitUntil` that throws is reported, and the reply is not lost", async () => {
  reports.length = 0;
  const server = make().tool("t", {}, async () => (await pause(5), "fine"));
  // Not bound: the runtime calls this illegal.
  const waitUntil = () => { throw new TypeError("Illegal invocation"); };
  const response = await server.fetch(new Request("http://mcp.test/", request("tools/call", { name: "t" })), { principal: "ada", waitUntil });
  assert.equal(text(await reply(response)), "fine");
  assert.match(reports.join(), /waitUntil threw.*Illegal invocation/);
});

test("A11: nothing is asked in what is made once, and that is said at once", async () => {
  for (const ask of [(ctx) => ctx.confirm("k", "?"), async (ctx) => await ctx.elicit("k", line("?", "v")), (ctx) => ctx.checkpoint()]) {
    reports.length = 0;
    assert.equal((await run((ctx) => ctx.once("x", () => ask(ctx)))).error?.code, -32603);
    assert.match(reports.join(), /once\(x\): ask before it, not in it/);
  }
  const server = make().tool("t", {}, async (ctx) => `${await ctx.once("x", () => ctx.once("y", () => 1))} ${await ctx.confirm("sure", "?")}`);
  assert.equal(text(await play(server, "t", {}, { sure: "accept" })), "1 true");
});

test("bytes of another realm are bytes", async () => {
  const Bytes = runInNewContext("Uint8Array");
  const store = new MemoryStore();
  const get = async (key) => (await store.get(key)) && Bytes.from(await store.get(key));
  const server = make({ keys: [Bytes.from(KEY)], ledger: { store: { get, compareAndSet: (...all) => store.compareAndSet(...all) } } }).tool("t", {}, async (ctx) => String(await ctx.confirm("sure", "?")));
  const principal = Bytes.of(1, 2, 3);
  const one = await call(server, "t", {}, {}, { principal });
  assert.equal(text(await call(server, "t", {}, yes(one), { principal })), "true");
  assert.equal(text(await call(server, "t", {}, yes(one), { principal })), "true");
  assert.equal((await call(server, "t", {}, yes(one), { principal: Bytes.of(3, 2, 1) })).error.code, -32602);
});

test("R-187: whoever aborts before the reply has begun gets one, and the handler is told", async () => {
  for (const ms of [0, 30]) {
    const abort = new AbortController();
    let told = 0;
    const server = make().tool("t", {}, (ctx) => (ctx.signal.addEventListener("abort", () => told++), never));
    if (ms === 0) abort.abort();
    else setTimeout(() => abort.abort(), ms);
    const kept = [];
    const init = { ...request("tools/call", { name: "t" }), signal: abort.signal };
    const response = await server.fetch(new Request("http://mcp.test/", init), { principal: "ada", waitUntil: (work) => kept.push(work) });
    assert.equal(response.status, 499);
    await Promise.all(kept);
    assert.equal(told, 1);
  }
});

test("R-187: whoever aborts a retry under a ledger leaves its handler at once, and the state can be used again", async () => {
  const memory = new MemoryStore();
  let held;
  const store = { get: (key) => memory.get(key), compareAndSet: async (...all) => (await held, memory.compareAndSet(...all)) };
  let [let_go, told, runs] = [0, 0, 0];
  const server = make({ ledger: { store } }).tool("t", {}, async (ctx) => {
    const sure = await ctx.confirm("sure", "?");
    if (++runs > 1) return String(sure);
    ctx.onSuspend(() => let_go++);
    ctx.signal.addEventListener("abort", () => told++);
    await never;
  });
  const retry = yes(await call(server, "t"));
  const abort = new AbortController();
  const init = { ...request("tools/call", { name: "t", ...retry }), signal: abort.signal };
  const leaving = server.fetch(new Request("http://mcp.test/", init), { principal: "ada" });
  await pause(20);
  let release;
  // Giving the state back takes its time.
  held = new Promise((resolve) => (release = resolve));
  abort.abort();
  assert.equal((await leaving).status, 499);
  assert.deepEqual([let_go, told], [1, 1]);
  release();
  await pause(5);
  assert.equal(text(await call(server, "t", {}, retry)), "true");
  assert.deepEqual([let_go, told], [1, 1]);
});

test("R-187: a stream whose request is aborted is over, for whoever reads it too", async () => {
  const server = make({ changes: true }).tool("t", {}, () => "x");
  const abort = new AbortController();
  const init = { ...request("subscriptions/listen", { notifications: { toolsListChanged: true } }), signal: abort.signal };
  const response = await server.fetch(new Request("http://mcp.test/", init), { principal: "ada" });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const reader = response.body.getReader();
  await reader.read();
  abort.abort(new Error("enough"));
  await assert.rejects(reader.read(), /enough/);
});

test("B7: a store that gives garbage counts as down; nothing runs", async () => {
  const stores = {
    undefined: async () => undefined,
    false: async () => false,
    one: async () => 1,
    text: async () => ({ current: "abc" }),
    buffer: async () => ({ current: new ArrayBuffer(8) }),
    throws: () => { throw new RangeError("mine"); },
  };
  for (const [name, compareAndSet] of Object.entries(stores)) {
    reports.length = 0;
    let runs = 0;
    const server = make({ ledger: { store: { get: async () => null, compareAndSet } } }).tool("t", {}, async (ctx) => (runs++, String(await ctx.confirm("sure", "?"))));
    const one = await call(server, "t");
    const two = await call(server, "t", {}, yes(one));
    assert.deepEqual([two.error?.code, runs], [-32603, 1], name);
    assert.match(reports.join(), /the ledger's store failed/);
  }
});

test("return-style handlers ask what they return, and nothing else", async () => {
  const [a, b] = [questions.confirm("a?"), questions.confirm("b?")];
  const server = make().returningTool("t", {}, (exchange) => (exchange.require({ a }), exchange.require({ b })));
  assert.deepEqual(Object.keys((await call(server, "t")).result.inputRequests), ["b"]);
});

test("old clients are told what is served, however they begin (R-053)", async () => {
  const server = asking();
  const old = (method, params, headers) =>
    server.fetch(new Request("http://mcp.test/", { method: "POST", headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers }, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) }), { principal: "ada" });
  const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } };
  for (const response of [await old("initialize", hello, {}), await old("tools/list", {}, { "mcp-protocol-version": "2025-11-25", "mcp-session-id": "s" })]) {
    const { error } = await response.json();
    assert.deepEqual([response.status, error.code, error.data], [400, -32022, { supported: ["2026-07-28"], requested: "2025-11-25" }]);
  }
});

test("the Node listener: bodies that are gone, and clients that leave early", async () => {
  const aborted = [];
  const server = make().tool("t", {}, async (ctx) => (ctx.signal.addEventListener("abort", () => aborted.push(1)), await pause(400), "late"));
  const listen = nodeListener(server, async () => (await pause(100), { principal: anonymous }));
  const http = createServer((incoming, response) => {
    if (incoming.url !== "/parsed") return listen(incoming, response);
    incoming.resume().on("end", () => setTimeout(() => listen(incoming, response), 5));
  });
  await new Promise((done) => http.listen(0, "127.0.0.1", done));
  const { port } = http.address();
  const logged = [];
  const { error } = console;
  console.error = (...what) => logged.push(what.join(" "));
  try {
    const init = request("tools/call", { name: "t" });
    assert.equal((await fetch(`http://127.0.0.1:${port}/parsed`, init)).status, 500);
    assert.match(logged.splice(0).join(), /body was read already/);
    const socket = connect(port, "127.0.0.1");
    const head = Object.entries(init.headers).map(([name, value]) => `${name}: ${value}\r\n`).join("");
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\n${head}content-length: 5000\r\n\r\n{`);
    await pause(250);
    socket.destroy();
    await pause(50);
    assert.deepEqual(logged, [], "who leaves is no failure");
    const whole = connect(port, "127.0.0.1");
    whole.write(`POST / HTTP/1.1\r\nhost: a\r\n${head}content-length: ${init.body.length}\r\n\r\n${init.body}`);
    await pause(30);
    whole.destroy();
    await pause(300);
    assert.deepEqual(logged, []);
  } finally {
    console.error = error;
    http.closeAllConnections();
    http.close();
  }
});

test("B7 R-077: a store that never answers counts as down, and known keys stay while their source is silent", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: Date.now() });
  const ends = async (work) => {
    let over = false;
    void work.finally(() => (over = true));
    for (let turn = 0; !over && turn < 10_000; turn++) {
      t.mock.timers.tick(10);
      await new Promise((done) => setImmediate(done));
    }
    assert.ok(over, "it never ends");
    return work;
  };
  let runs = 0;
  const store = { get: () => never, compareAndSet: () => never };
  const server = make({ ledger: { store } }).tool("t", {}, async (ctx) => (runs++, String(await ctx.confirm("sure", "?"))));
  const one = await call(server, "t");
  const two = await ends(call(server, "t", {}, yes(one)));
  assert.deepEqual([two.error.message, runs], ["Single use cannot be checked at the moment", 1]);
  let source = () => [KEY];
  const keyed = make({ keys: () => source(), keysRefreshMs: 0 }).tool("t", {}, () => "ok");
  assert.equal(text(await call(keyed, "t")), "ok");
  source = () => never;
  reports.length = 0;
  assert.equal(text(await ends(call(keyed, "t"))), "ok");
  assert.match(reports.join(), /the old ones stay/);
});
