// The server around its handlers: HTTP, catalog, principals, keys, the ledger, traps, memory.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { ConfigError, McpServer, MemoryStore, anonymous, anonymousIgnoringAuthorization, nodeListener, questions } from "mrtr";

import { KEY, KEY_TEXT, call, line, play, reply, request } from "./lib.mjs";

const reports = [];
const make = (options = {}) =>
  new McpServer({ name: "t", version: "1.2.3", keys: [KEY], report: (message) => reports.push(message), ...options });
const text = (got) => got.result?.content?.[0]?.text ?? JSON.stringify(got.error ?? got);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const asking = (options) => make(options).tool("t", {}, async (ctx) => String(await ctx.confirm("sure", "sure?")));
const post = (server, method, params, { principal = "ada", ...more } = {}) =>
  server.fetch(new Request("http://mcp.test/mcp", request(method, params, more)), { principal });

test("R-159 R-160 R-170 R-171: the rules of HTTP are the engine's", async () => {
  const server = make({ hosts: ["mcp.test"], origins: ["https://app.test"] }).tool("t", {}, () => "ok");
  const url = "http://mcp.test/mcp";
  const get = await server.fetch(new Request(url), { principal: anonymous });
  assert.deepEqual([get.status, get.headers.get("allow")], [405, "POST"]);
  const foreign = request("tools/list", {}, { headers: { origin: "https://evil.test" } });
  assert.equal((await server.fetch(new Request(url, foreign), { principal: anonymous })).status, 403);
  assert.equal((await server.fetch(new Request("http://other.test/", request("tools/list", {})), { principal: anonymous })).status, 403);
  const app = request("tools/list", {}, { headers: { origin: "https://app.test" } });
  const allowed = await server.fetch(new Request(url, app), { principal: anonymous });
  assert.deepEqual([allowed.status, allowed.headers.get("access-control-allow-origin")], [200, "https://app.test"]);
  const preflight = { method: "OPTIONS", headers: { origin: "https://app.test", "access-control-request-method": "POST", "access-control-request-headers": "mcp-method" } };
  const answered = await server.fetch(new Request(url, preflight), { principal: anonymous });
  assert.deepEqual([answered.status, answered.headers.get("access-control-allow-headers")], [204, "mcp-method"]);
  const lying = request("tools/list", {}, { headers: { "mcp-method": "tools/call" } });
  const mismatch = await server.fetch(new Request(url, lying), { principal: anonymous });
  assert.deepEqual([mismatch.status, (await mismatch.json()).error.code], [400, -32020]);
  const unknown = await post(server, "no/such", {});
  assert.deepEqual([unknown.status, (await unknown.json()).error.code], [404, -32601]);
  const broken = await server.fetch(new Request(url, { ...request("tools/list", {}), body: "{" }), { principal: anonymous });
  assert.deepEqual([broken.status, (await broken.json()).error.code], [400, -32700]);
  const notice = { ...request("tools/list", {}), body: JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: {} }) };
  delete notice.headers["mcp-method"];
  const taken = await server.fetch(new Request(url, notice), { principal: anonymous });
  assert.deepEqual([taken.status, await taken.text()], [202, ""]);
});

test("bodies over the limit are refused, whatever was said of their length", async () => {
  const server = make({ limits: { messageBytes: 1_000 } });
  const init = request("tools/list", { padding: "x".repeat(2_000) });
  const said = await server.fetch(new Request("http://mcp.test/", { ...init, headers: { ...init.headers, "content-length": "3000" } }), { principal: anonymous });
  assert.equal(said.status, 413);
  const stream = new Blob([init.body]).stream();
  const unsaid = await server.fetch(new Request("http://mcp.test/", { ...init, body: stream, duplex: "half" }), { principal: anonymous });
  assert.deepEqual([unsaid.status, (await unsaid.json()).jsonrpc], [413, "2.0"]);
});

test("R-012 R-036 R-201: tools, prompts, resources and templates are offered as they are declared", async () => {
  const server = make({ instructions: "Ask away.", cache: { ttlMs: 5_000, public: true } })
    .tool("t", { title: "T", description: "d", inputSchema: { type: "object", properties: { a: { type: "string" } } }, annotations: { readOnlyHint: true }, outputSchema: { type: "object" } }, () => ({ content: [], structuredContent: { ok: true } }))
    .prompt("p", { description: "d", arguments: [{ name: "who", description: "w", required: true, completions: ["ada", "adam", "eve"] }] }, async (ctx, { who }) => {
      const tone = await ctx.elicit("tone", line("Which tone?", "tone"));
      return `Greet ${who} ${tone.content.tone}.`;
    })
    .resource("mem://one", { name: "one", mimeType: "text/plain" }, () => "one")
    .resourceTemplate("mem://{kind}/{id}", { name: "any" }, (ctx) => `${ctx.part("kind")} ${ctx.part("id")} ${ctx.target}`);
  const result = async (method, params) => (await reply(await post(server, method, params))).result;
  const discovered = await result("server/discover", {});
  assert.equal(discovered.instructions, "Ask away.");
  const { tools, ttlMs, cacheScope } = await result("tools/list", {});
  assert.deepEqual([ttlMs, cacheScope], [5_000, "public"]);
  assert.deepEqual(tools[0], { name: "t", title: "T", description: "d", inputSchema: { type: "object", properties: { a: { type: "string" } } }, outputSchema: { type: "object" }, annotations: { readOnlyHint: true } });
  assert.deepEqual((await result("tools/call", { name: "t" })).structuredContent, { ok: true });
  const completed = await result("completion/complete", { ref: { type: "ref/prompt", name: "p" }, argument: { name: "who", value: "ad" } });
  assert.deepEqual(completed.completion.values, ["ada", "adam"]);
  const asked = await result("prompts/get", { name: "p", arguments: { who: "Ada" } });
  assert.equal(asked.resultType, "input_required");
  const got = await result("prompts/get", { name: "p", arguments: { who: "Ada" }, requestState: asked.requestState, inputResponses: { tone: { action: "accept", content: { tone: "warmly" } } } });
  assert.equal(got.messages[0].content.text, "Greet Ada warmly.");
  assert.deepEqual((await result("resources/read", { uri: "mem://one" })).contents, [{ uri: "mem://one", mimeType: "text/plain", text: "one" }]);
  assert.equal((await result("resources/read", { uri: "mem://a/b" })).contents[0].text, "a b mem://a/b");
  assert.equal((await reply(await post(server, "resources/read", { uri: "mem://none" }))).error.code, -32602);
});

test("R-205: what is offered while a request is under way is there for the next one, and the request goes on", async () => {
  let go;
  const server = make({ instructions: "Ask away." })
    .tool("first", {}, () => new Promise((done) => (go = done)))
    .tool("second", {}, () => "two");
  const waiting = call(server, "first");
  await pause(20);
  server.tool("third", {}, () => "three");
  assert.throws(() => server.tool("second", {}, () => ""), /declared twice/);
  for (const [name, said] of [["second", "two"], ["third", "three"]]) assert.equal(text(await call(server, name)), said);
  const discovered = await reply(await post(server, "server/discover", {}));
  assert.equal(discovered.result.instructions, "Ask away.");
  go("one");
  assert.equal(text(await waiting), "one");
});

test("declarations that cannot be sent are refused when they are made", async () => {
  assert.throws(() => new McpServer({ name: "t", version: "1", keys: [new Uint8Array(31)] }), ConfigError);
  assert.throws(() => new McpServer({ name: "t", version: "1", keys: ["not base64!"] }), ConfigError);
  const server = asking();
  await call(server, "t");
  assert.throws(() => server.tool("t", {}, () => ""), /declared twice/);
});

test("arguments are checked by the schema, or by parse (R-029)", async () => {
  const schema = { type: "object", properties: { n: { type: "integer" }, deep: { type: "object", properties: { of: { enum: ["a", "b"] } } }, list: { type: "array", items: { type: "string" } } }, required: ["n"] };
  const server = make()
    .tool("schema", { inputSchema: schema }, (_, args) => JSON.stringify(args))
    .tool("parse", { parse: (args) => { if (args.n !== 1) throw new Error("n must be 1"); return args.n; } }, (_, n) => `${n}`);
  for (const [args, problem] of [[{}, "n is missing"], [{ n: 1.5 }, "n is not of type integer"], [{ n: 1, deep: { of: "c" } }, "deep.of is none of"], [{ n: 1, list: [1] }, "list\\[0\\] is not of type string"]]) {
    const got = await call(server, "schema", args);
    assert.deepEqual([got.status, got.error.code], [200, -32602]);
    assert.match(got.error.message, new RegExp(problem));
  }
  assert.equal(text(await call(server, "schema", { n: 2, deep: { of: "a" }, list: ["x"] })), '{"n":2,"deep":{"of":"a"},"list":["x"]}');
  assert.match((await call(server, "parse", { n: 2 })).error.message, /n must be 1/);
  assert.equal(text(await call(server, "parse", { n: 1 })), "1");
});

test("G-10: the principal is required, and a state is good for its own only", async () => {
  reports.length = 0;
  const server = asking();
  const missing = await server.fetch(new Request("http://mcp.test/", request("tools/call", { name: "t" })), {});
  assert.equal(missing.status, 500);
  assert.match(reports.join(), /without a principal/);
  const signed = request("tools/call", { name: "t" }, { headers: { authorization: "Bearer x" } });
  assert.equal((await server.fetch(new Request("http://mcp.test/", signed), { principal: anonymous })).status, 500);
  assert.equal((await server.fetch(new Request("http://mcp.test/", signed), { principal: anonymousIgnoringAuthorization })).status, 200);
  const one = await call(server, "t", {}, {}, { principal: "ada" });
  const retry = { requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } };
  for (const principal of ["eve", anonymous, new TextEncoder().encode("adA")]) {
    const refused = await call(server, "t", {}, retry, { principal });
    assert.deepEqual([refused.status, refused.error.code, refused.error.message], [200, -32602, "Invalid or expired requestState"]);
  }
  assert.equal(text(await call(server, "t", {}, retry, { principal: new TextEncoder().encode("ada") })), "true");
});

test("R-071 R-072: a state that was changed, is of another request, or is late is refused", async () => {
  const server = asking({ stateTtlMs: 1_000, skewMs: 0 });
  const one = await call(server, "t", { a: 1 });
  const state = one.result.requestState;
  const retry = (requestState, args = { a: 1 }) => call(server, "t", args, { requestState, inputResponses: { sure: { action: "accept" } } });
  for (const bent of [`${state}A`, state.slice(0, -4) + (state.endsWith("AAAA") ? "BBBB" : "AAAA"), "x"]) assert.equal((await retry(bent)).error.code, -32602);
  assert.equal((await retry(state, { a: 2 })).error.code, -32602);
  assert.equal(text(await retry(state)), "true");
  await pause(1_100);
  assert.equal((await retry(state)).error.code, -32602);
});

test("R-077 B-17: keys come from a binding and are rotated while the server runs", async () => {
  const other = new Uint8Array(32).fill(9);
  let asked = 0;
  const server = new McpServer({ name: "t", version: "1", keysRefreshMs: 0, report: (message) => reports.push(message), keys: async (env) => (asked++, env.keys()) });
  server.tool("t", {}, async (ctx) => String(await ctx.confirm("sure", "sure?")));
  let keys = () => [KEY_TEXT];
  const env = { keys: () => keys() };
  const begin = () => call(server, "t", {}, {}, { env });
  const end = (one) => call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } }, { env });
  const old = await begin();
  keys = () => [other, KEY];
  assert.equal(text(await end(old)), "true", "what the old key sealed still opens");
  const fresh = await begin();
  keys = () => { throw new Error("the binding is gone"); };
  assert.equal(text(await end(fresh)), "true", "the keys that were known stay");
  assert.ok(reports.some((line) => line.includes("the old ones stay")));
  keys = () => [other];
  assert.equal((await end(old)).error.code, -32602, "a retired key opens nothing");
  assert.equal(text(await end(fresh)), "true");
  assert.ok(asked >= 6);
  server.setKeys([KEY]);
});

test("B1 B3: with a ledger a state is used once, and a lost reply is found again", async () => {
  let runs = 0;
  let commits = 0;
  const server = make({ ledger: { store: new MemoryStore() } }).tool("t", {}, async (ctx) => {
    runs++;
    const yes = await ctx.confirm("sure", "sure?");
    ctx.onCommit(() => void commits++);
    return `${yes} ${runs}`;
  });
  const one = await call(server, "t");
  const retry = (action) => call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { sure: { action } } });
  const [a, b] = await Promise.all([retry("accept"), retry("accept")]);
  assert.deepEqual([text(a), text(b)], ["true 2", "true 2"]);
  assert.notEqual(a.id, b.id, "each under its own request's id");
  assert.equal(text(await retry("accept")), "true 2");
  assert.deepEqual([runs, commits], [2, 1]);
  assert.equal((await retry("decline")).error.message, "Invalid or expired requestState");
});

test("B7: with its store down a retry is refused, and nothing runs", async () => {
  const down = { get: () => Promise.reject(new Error("down")), compareAndSet: () => Promise.reject(new Error("down")) };
  let runs = 0;
  const server = make({ ledger: { store: down } }).tool("t", {}, async (ctx) => (runs++, String(await ctx.confirm("sure", "?"))));
  const one = await call(server, "t");
  const two = await call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } });
  assert.deepEqual([two.error.code, runs], [-32603, 1]);
});

test("R-187 A12: a client that leaves cancels its request, but for a commit that has begun", async () => {
  const seen = [];
  const server = make()
    .tool("waits", {}, async (ctx) => {
      ctx.signal.addEventListener("abort", () => seen.push("aborted"));
      ctx.onSuspend(() => seen.push("let go"));
      ctx.progress(1);
      await pause(150);
      ctx.onCommit(() => seen.push("never"));
      return "late";
    })
    .tool("commits", {}, async (ctx) => {
      ctx.progress(1);
      ctx.onCommit(async () => (await pause(80), seen.push("committed")));
      await pause(20);
      return "ok";
    });
  for (const [name, expected] of [["waits", ["let go", "aborted"]], ["commits", ["committed"]]]) {
    seen.length = 0;
    const kept = [];
    const init = request("tools/call", { name }, { meta: { progressToken: 1 } });
    const response = await server.fetch(new Request("http://mcp.test/", init), { principal: "ada", waitUntil: (work) => kept.push(work) });
    const reader = response.body.getReader();
    await reader.read();
    if (name === "commits") await pause(40);
    await reader.cancel();
    await Promise.all(kept);
    await pause(200);
    assert.deepEqual(seen, expected, name);
  }
});

test("return-style handlers: questions, state, refusals, and answers only to what was asked (G-26)", async () => {
  let asks = questions.form({ message: "How many?", schema: { type: "object", properties: { n: { type: "integer", maximum: 9 } }, required: ["n"] } });
  const kinds = [];
  const server = make().returningTool("t", {}, (exchange) => {
    const given = exchange.answer("n", asks);
    kinds.push(given.kind);
    const state = exchange.state() ?? { tries: 0 };
    if (given.kind === "declined") return { content: [], isError: true };
    if (given.kind !== "given") return exchange.require({ n: asks }, { tries: state.tries + 1 });
    return `${given.value.n} after ${state.tries} for ${exchange.principal} of ${exchange.target}`;
  });
  const got = await play(server, "t", {}, { n: { content: { n: 3 } } });
  assert.equal(text(got), "3 after 1 for ada of t");
  const one = await call(server, "t");
  const bad = await call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { n: { action: "accept", content: { n: 10 } } } });
  const no = await call(server, "t", {}, { requestState: bad.result.requestState, inputResponses: { n: { action: "decline" } } });
  assert.equal(no.result.isError, true);
  const two = await call(server, "t");
  asks = questions.form({ message: "How many more?", schema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] } });
  const changed = await call(server, "t", {}, { requestState: two.result.requestState, inputResponses: { n: { action: "accept", content: { n: 1 } } } });
  assert.equal(changed.result.resultType, "input_required");
  assert.deepEqual(kinds, ["missing", "given", "missing", "invalid", "declined", "missing", "changed"]);
  const refused = await call(server, "t", {}, {}, { capabilities: {} });
  assert.deepEqual([refused.status, refused.error.code], [400, -32021]);
});

test("B1 B3 B5: the ledger covers return-style handlers", async () => {
  let runs = 0;
  let held;
  const sure = questions.confirm("sure?");
  const server = make({ ledger: { store: new MemoryStore() } }).returningTool("t", {}, async (exchange) => {
    if (exchange.answer("sure", sure).kind === "missing") return exchange.require({ sure }, 1);
    runs++;
    await held;
    return `${exchange.state()} ${runs}`;
  });
  const one = await call(server, "t");
  const retry = (action, options) => call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { sure: { action } } }, options);
  // Somebody who leaves gives the state back.
  let release;
  held = new Promise((done) => (release = done));
  const abort = new AbortController();
  const kept = [];
  const init = request("tools/call", { name: "t", requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } });
  const left = server.fetch(new Request("http://mcp.test/", { ...init, signal: abort.signal }), { principal: "ada", waitUntil: (work) => kept.push(work) });
  await pause(30);
  assert.equal(runs, 1);
  abort.abort();
  await left;
  release();
  await Promise.all(kept);
  const [a, b] = await Promise.all([retry("accept"), retry("accept")]);
  assert.deepEqual([text(a), text(b)], ["1 2", "1 2"]);
  assert.notEqual(a.id, b.id);
  assert.equal(text(await retry("accept")), "1 2");
  assert.equal((await retry("decline")).error.message, "Invalid or expired requestState");
  assert.equal(runs, 2);
});

test("R-205: subscriptions hear of changes, and are closed in order", async () => {
  const server = make({ changes: true }).tool("t", {}, () => "ok");
  const response = await post(server, "subscriptions/listen", { notifications: { toolsListChanged: true } });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  assert.match((await reader.read()).value, /subscriptions\/acknowledged/);
  server.notify("prompts");
  server.notify("tools");
  assert.match((await reader.read()).value, /tools\/list_changed/);
  server.close();
  assert.match((await reader.read()).value, /"resultType":"complete"/);
  assert.ok((await reader.read()).done);
});

test("an observer is told what happened, without content", async () => {
  const lines = [];
  const server = asking({ observe: (line) => lines.push(line) });
  await play(server, "t", {}, { sure: "decline" });
  assert.match(lines[0], /^[0-9a-f]{32} round 1: asked sure \(form\)$/);
  assert.match(lines[1], /round 1: sure \(form\) decline$/);
  assert.match(lines[2], /ended with a result$/);
});

test("the Node listener carries the same, keeps connections, and hears when a client leaves", async () => {
  let left;
  const gone = new Promise((resolve) => (left = resolve));
  const server = asking({ loopback: true }).tool("slow", {}, async (ctx) => (ctx.onSuspend(left), ctx.progress(1), pause(10_000)));
  const http = createServer(nodeListener(server, (incoming) => ({ principal: incoming.headers["x-user"] ?? anonymous })));
  await new Promise((done) => http.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${http.address().port}/mcp`;
  try {
    const one = await reply(await fetch(url, request("tools/call", { name: "t" }, { headers: { "x-user": "ada" } })));
    const more = { name: "t", requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } };
    assert.equal((await reply(await fetch(url, request("tools/call", more, { headers: { "x-user": "eve" } })))).error.code, -32602);
    assert.equal(text(await reply(await fetch(url, request("tools/call", more, { headers: { "x-user": "ada" } })))), "true");
    const abort = new AbortController();
    const slow = await fetch(url, { ...request("tools/call", { name: "slow" }, { meta: { progressToken: 1 } }), signal: abort.signal });
    assert.equal(slow.headers.get("content-type"), "text/event-stream");
    abort.abort();
    await gone;
  } finally {
    http.closeAllConnections();
    http.close();
  }
});
