// What answerers, hosts and servers do to a client that they should not: one kind of error, and nothing hangs or is guessed.
import assert from "node:assert/strict";
import { test } from "node:test";

import { McpClient, McpServer, MrtrError, NotSent, Stopped, TimedOut, TransportError, Unanswered, Violation, anonymous } from "mrtr";

import { KEY, line } from "./lib.mjs";

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const never = new Promise(() => {});
const server = new McpServer({ name: "t", version: "1", keys: [KEY], report: () => {} })
  .tool("form", {}, async (ctx) => JSON.stringify(await ctx.elicit("k", line("?", "v"))))
  .tool("rest", {}, async (ctx) => (await ctx.checkpoint(), "rested"))
  .tool("echo", {}, (_, args) => JSON.stringify(args))
  .tool("tells", {}, async (ctx) => (ctx.progress(1), await pause(10), "told"))
  .tool("slow", {}, async () => (await pause(500), "slow"));
const here = (url, init) => server.fetch(new Request(url, init), { principal: anonymous });
const client = (options = {}) => new McpClient("http://mcp.test/mcp", { name: "c", version: "1", fetch: here, ...options });
const gives = (make) => client({ fetch: async (_, init) => make(JSON.parse(new TextDecoder().decode(init.body)).id) });
const bad = () => { throw new RangeError("mine"); };

test("R-126 R-133: what is no answer is no cancel either", async () => {
  for (const answer of [undefined, null, 5, {}, { action: "yes" }, { action: "Accept" }, { content: { v: "x" } }, { action: "accept", content: { v: 1n } }, { action: "accept", get content() { return bad(); } }, { roots: undefined }]) {
    await assert.rejects(client().callTool("form", {}, { elicit: () => answer }), Unanswered);
  }
  await assert.rejects(client().callTool("form", {}, { elicit: bad }), (error) => error instanceof Unanswered && error.cause instanceof RangeError);
  const step = await client().startTool("form", {}, { elicitation: {} });
  for (const answer of [null, { action: "yes" }, { roots: [] }, { sampled: undefined }]) assert.equal(typeof step.answer("k", answer), "string");
  assert.deepEqual(step.missing, ["k"]);
  step.abandon();
});

test("R-134 R-141: nobody says yes to a url that is no web page's", async () => {
  const asks = (url) => (id) => Response.json({ jsonrpc: "2.0", id, result: { resultType: "input_required", requestState: "s", inputRequests: { k: { method: "elicitation/create", params: { mode: "url", message: "?", url } } } } });
  for (const url of ["javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "file:///etc/passwd", "blob:https://a.example/x"]) {
    const step = await gives(asks(url)).startTool("t", {}, { elicitation: { url: {} } });
    assert.match(step.answer("k", { action: "accept" }), /not to be opened/, url);
    assert.equal(step.answer("k", { action: "cancel" }), undefined);
  }
  for (const url of ["https://a.example/x", "HTTP://a.example/"]) {
    const step = await gives(asks(url)).startTool("t", {}, { elicitation: { url: {} } });
    assert.equal(step.answer("k", { action: "accept" }), undefined, url);
  }
});

test("R-190: whoever aborts while somebody thinks, or while the client rests, need not wait", async () => {
  for (const [name, options] of [["form", {}], ["rest", { policy: { pauseFirstMs: 5_000, pauseLongestMs: 5_000 } }]]) {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 30);
    const begun = Date.now();
    await assert.rejects(client(options).callTool(name, {}, { signal: abort.signal, elicit: () => never }), { name: "AbortError" });
    assert.ok(Date.now() - begun < 2_000);
  }
});

test("an exchange goes on once at a time", async () => {
  const step = await client({ policy: { pauseFirstMs: 50, pauseLongestMs: 50 } }).startTool("rest", {}, {});
  const [one, two] = await Promise.allSettled([step.proceed(), step.proceed()]);
  assert.equal(one.value.result.content[0].text, "rested");
  assert.ok(two.reason instanceof NotSent);
  const left = await client({ policy: { pauseFirstMs: 50, pauseLongestMs: 50 } }).startTool("rest", {}, {});
  const going = left.proceed();
  left.abandon();
  await assert.rejects(going, NotSent);
});

test("replies that are none, and a fetch that gives none", async () => {
  const events = { "content-type": "text/event-stream" };
  for (const make of [bad, () => undefined, () => new Response(null, { headers: events }), () => new Response("data: {", { headers: events }), () => new Response("<html>")]) {
    await assert.rejects(gives(make).callTool("echo"), TransportError);
  }
  await assert.rejects(client({ fetch: bad }).callTool("echo"), TransportError);
  await assert.rejects(client({ policy: { requestTimeoutMs: 60 } }).callTool("slow"), TimedOut);
  const list = (tools, more) => gives((id) => Response.json({ jsonrpc: "2.0", id, result: { resultType: "complete", tools, ...more } })).listTools();
  for (const tools of [5, undefined, [null], [5], [{}]]) await assert.rejects(list(tools), (error) => error instanceof MrtrError, JSON.stringify(tools));
  await assert.rejects(list([null]), Violation);
  await assert.rejects(list([], { nextCursor: "again" }), Stopped);
  await assert.rejects(list([], { nextCursor: 5 }), Violation);
  assert.deepEqual(await list([], { nextCursor: null }), []);
});

test("R-190 R-192: what never settles is left in time, and is told", async () => {
  const stream = (type) => (cancelled) => ({ fetch: () => new Response(new ReadableStream({ cancel: cancelled }), { headers: { "content-type": type } }) });
  const silent = [() => ({ headers: () => never }), () => ({ fetch: () => never }), stream("application/json"), stream("text/event-stream")];
  await Promise.all(silent.flatMap((make, n) => {
    let told = 0;
    const options = make(() => told++);
    const mine = new Error("enough");
    const abort = new AbortController();
    setTimeout(() => abort.abort(mine), 20);
    const heard = async (work, what) => (await assert.rejects(work, what), assert.ok(n < 2 || told > 0));
    return [
      heard(client(options).callTool("echo", {}, { signal: abort.signal }), mine),
      heard(client({ ...options, policy: { requestTimeoutMs: 20 } }).callTool("echo"), TimedOut),
    ];
  }));
});

test("a body that nobody reads to its end is cancelled, whoever's fetch it is", async () => {
  const bytes = (text) => new TextEncoder().encode(text);
  for (const [type, piece, ends] of [
    ["application/json", () => new Uint8Array(1_000_000), TransportError],
    ["text/event-stream", (id) => bytes(`data: {"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","content":[]}}\n\n`)],
  ]) {
    let told = 0;
    const body = (id) => new ReadableStream({ pull: (to) => to.enqueue(piece(id)), cancel: () => void told++ });
    const work = gives((id) => new Response(body(id), { headers: { "content-type": type } })).callTool("echo");
    if (ends) await assert.rejects(work, ends);
    else await work;
    assert.equal(told, 1);
  }
  for (const piece of ["text", 5, null]) {
    const body = () => new ReadableStream({ start: (to) => to.enqueue(piece) });
    await assert.rejects(gives(() => new Response(body(), { headers: { "content-type": "text/event-stream" } })).callTool("echo"), TransportError);
  }
});

test("a response without a message says its status", async () => {
  for (const status of [401, 429, 503]) await assert.rejects(gives(() => new Response("no", { status })).callTool("echo"), { name: "TransportError", status });
  await assert.rejects(client({ fetch: bad }).callTool("echo"), { name: "TransportError", status: undefined });
  const redirected = Object.defineProperty(Response.error(), "type", { value: "opaqueredirect" });
  await assert.rejects(client({ fetch: async () => redirected }).callTool("echo"), { name: "TransportError", message: "redirected elsewhere" });
});

test("R-190: a step that was aborted before anything was sent can be made again", async () => {
  const step = await client().startTool("form", {}, { elicitation: {} });
  step.answer("k", { action: "accept", content: { v: "x" } });
  await assert.rejects(step.proceed({ signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.match((await step.proceed()).result.content[0].text, /accept/);
});

test("a host's own errors are its own, and cost nobody else the engine", async () => {
  await assert.rejects(client().callTool("tells", {}, { onProgress: bad }), { name: "RangeError", message: "mine" });
  await assert.rejects(client({ headers: bad }).callTool("echo"), { name: "RangeError", message: "mine" });
  const step = await client().startTool("form", {}, { elicitation: {} });
  await assert.rejects(client().callTool("tells", {}, { onProgress: bad }), RangeError);
  step.answer("k", { action: "accept", content: { v: "\ud800" } });
  const { result } = await step.proceed();
  assert.deepEqual(JSON.parse(result.content[0].text).content, { v: "\ufffd" });
  assert.equal((await client().callTool("echo", { half: "\udfff" })).content[0].text, '{"half":"\ufffd"}');
});
