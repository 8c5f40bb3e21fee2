// The client's half: calls, questions, what is saved and taken up again, and what goes wrong.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import {
  McpClient,
  McpError,
  McpServer,
  NotSent,
  PendingExchange,
  ResumeError,
  StateRefused,
  Stopped,
  TimedOut,
  TransportError,
  Unanswered,
  Violation,
  anonymous,
  nodeListener,
} from "mrtr";

import { KEY, line } from "./lib.mjs";

const server = new McpServer({ name: "inn", version: "1", keys: [KEY], loopback: true, stateTtlMs: 1_500, skewMs: 0 });
server
  .tool("book", { inputSchema: { type: "object", properties: { people: { type: "integer" } }, required: ["people"] } }, async (ctx, { people }) => {
    const day = await ctx.elicit("day", line("Which day?", "day"));
    if (day.action !== "accept") return `no: ${day.action}`;
    const sure = await ctx.confirm("sure", `On ${day.content.day}?`);
    return `${people} ${day.content.day} ${sure}`;
  })
  .tool("all", {}, async (ctx) => {
    const [said, roots, url] = await Promise.all([
      ctx.sample("said", { messages: [], maxTokens: 5 }),
      ctx.roots("roots"),
      ctx.elicitUrl("url", { message: "Open", url: "https://a.example/" }),
    ]);
    return `${said.model} ${roots.length} ${url.action}`;
  })
  .tool("rests", {}, async (ctx) => (await ctx.checkpoint(), await ctx.checkpoint(), "rested"))
  .tool("insists", {}, async (ctx) => {
    for (;;) if (await ctx.confirm("sure", "Now?")) return "finally";
  })
  .tool("reports", {}, async (ctx) => {
    ctx.progress(1, 2, "half");
    ctx.log("warning", "hm");
    await new Promise((done) => setTimeout(done, 20));
    return "done";
  })
  .tool("region", { inputSchema: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } } }, (_, { region }) => region)
  .tool("slow", {}, () => new Promise((done) => setTimeout(() => done("late"), 5_000).unref()));

let http;
let url;
before(async () => {
  http = createServer(nodeListener(server, { principal: anonymous }));
  await new Promise((done) => http.listen(0, "127.0.0.1", done));
  url = `http://127.0.0.1:${http.address().port}/mcp`;
});
after(() => {
  http.closeAllConnections();
  http.close();
});

const make = (options = {}) => new McpClient(url, { name: "c", version: "1", ...options });
const text = (result) => result.content[0].text;
const accept = (content) => ({ action: "accept", content });

test("B-58 R-087: a call asks until its result is there; asks say what and by whom", async () => {
  const asked = [];
  const elicit = (ask) => {
    asked.push([ask.kind, ask.key, ask.server, ask.params.message]);
    return accept(ask.key === "day" ? { day: "Friday" } : {});
  };
  assert.equal(text(await make().callTool("book", { people: 2 }, { elicit })), "2 Friday true");
  assert.deepEqual(asked, [["form", "day", "inn", "Which day?"], ["form", "sure", "inn", "On Friday?"]]);
});

test("sampling, roots and urls are answered by whoever is there", async () => {
  const result = await make().callTool("all", {}, {
    elicit: () => ({ action: "accept" }),
    sample: () => ({ role: "assistant", content: { type: "text", text: "hi" }, model: "m" }),
    roots: () => [{ uri: "file:///a" }, { uri: "file:///b" }],
  });
  assert.equal(text(result), "m 2 accept");
});

test("R-106: nothing is declared that nobody answers", async () => {
  await assert.rejects(make().callTool("book", { people: 1 }), (error) => error instanceof McpError && error.rpcCode === -32021);
});

test("R-094: a question that nobody can be asked ends the call, and nobody is asked the others", async () => {
  let asked = 0;
  const client = make({ capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } });
  await assert.rejects(client.callTool("all", {}, { elicit: () => (asked++, { action: "accept" }), sample: () => (asked++, {}) }), (error) => error instanceof Unanswered && error.key === "roots");
  assert.equal(asked, 0);
  const broken = client.callTool("book", { people: 1 }, { elicit: () => Promise.reject(new Error("closed")) });
  await assert.rejects(broken, (error) => error instanceof Unanswered && error.cause.message === "closed" && error.code === "MRTR_UNANSWERED");
});

test("an answer that is not to be sent is asked for again, with why, twice", async () => {
  const problems = [];
  const elicit = (ask) => (problems.push(ask.problem), accept({ day: { deep: true } }));
  await assert.rejects(make().callTool("book", { people: 1 }, { elicit }), Unanswered);
  assert.equal(problems.length, 3);
  assert.equal(problems[0], undefined);
  assert.match(problems[2], /answer.content\["day"\]/);
});

test("G-06: rounds without questions are paced, and need nobody", async () => {
  const begun = Date.now();
  assert.equal(text(await make().callTool("rests")), "rested");
  assert.ok(Date.now() - begun >= 100);
});

test("a question that was declined and comes again stops the call", async () => {
  await assert.rejects(make().callTool("insists", {}, { elicit: () => ({ action: "decline" }) }), (error) => error instanceof Stopped && error.code === "MRTR_STOPPED");
});

test("an exchange is saved, taken up by another client, and finished; elsewhere it is not", async () => {
  const started = await make().startTool("book", { people: 3 }, { elicitation: {} });
  assert.ok(started instanceof PendingExchange);
  assert.deepEqual(started.missing, ["day"]);
  assert.equal(started.answer("day", accept({ day: "Monday" })), undefined);
  const bytes = started.save();
  assert.ok(bytes instanceof Uint8Array);
  started.abandon();
  assert.throws(() => started.asks, NotSent);
  assert.throws(() => new McpClient("http://127.0.0.1:1/mcp", { name: "c", version: "1" }).resume(bytes), ResumeError);
  assert.throws(() => make().resume(bytes.subarray(0, 40)), ResumeError);
  let exchange = McpClient.resume(bytes, url, { name: "c", version: "1" });
  assert.deepEqual([exchange.missing, exchange.asks[0].key], [[], "day"]);
  exchange = await exchange.proceed();
  assert.equal(exchange.asks[0].params.message, "On Monday?");
  await assert.rejects(make().resume(exchange.save()).proceed(), NotSent, "every question needs an answer");
  await exchange.answerWith({ elicit: () => ({ action: "accept" }) });
  const end = await exchange.proceed();
  assert.deepEqual([end.done, text(end.result)], [true, "3 Monday true"]);
});

test("a state that has expired is an error of its own (G-11)", async () => {
  const started = await make().startTool("book", { people: 3 }, { elicitation: {} });
  started.answer("day", { action: "decline" });
  await new Promise((done) => setTimeout(done, 1_700));
  await assert.rejects(started.proceed(), (error) => error instanceof StateRefused && error.code === "MRTR_STATE_REFUSED" && error.rpcCode === -32602);
});

test("progress and logs are heard (R-194, R-198)", async () => {
  const heard = [];
  const result = await make().callTool("reports", {}, { onProgress: ({ progress, total, message }) => heard.push([progress, total, message]), onLog: ({ level, data }) => heard.push([level, data]) });
  assert.equal(text(result), "done");
  assert.deepEqual(heard, [[1, 2, "half"], ["warning", "hm"]]);
});

test("R-173 R-176: arguments are mirrored into headers once a list told so", async () => {
  assert.equal(text(await make().callTool("region", { region: "süd" })), "süd");
});

test("a call is cancelled by its signal, and by time", async () => {
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 50);
  await assert.rejects(make().callTool("slow", {}, { signal: abort.signal }), { name: "AbortError" });
  await assert.rejects(make({ policy: { requestTimeoutMs: 80 } }).callTool("slow"), TimedOut);
});

test("what is no MCP server, or is none at all, is a transport error; what breaks the protocol a violation", async () => {
  await assert.rejects(new McpClient("http://127.0.0.1:1/", { name: "c", version: "1" }).listTools(), TransportError);
  const answers = (status, body, type = "application/json") => async () => new Response(body, { status, headers: { "content-type": type } });
  const with_ = (fetch) => make({ fetch }).callTool("book", { people: 1 });
  await assert.rejects(with_(answers(502, "bad gateway", "text/plain")), TransportError);
  await assert.rejects(with_(answers(200, "{")), Violation);
  await assert.rejects(with_(answers(200, '{"jsonrpc":"2.0","id":999,"result":{"resultType":"complete"}}')), Violation);
  await assert.rejects(with_(answers(200, "", "text/event-stream")), TransportError);
  let tries = 0;
  const flaky = make({ fetch: (...args) => (++tries === 1 ? Promise.reject(new TypeError("reset")) : fetch(...args)) });
  assert.equal(text(await flaky.callTool("rests", {}, { mayRunTwice: true })), "rested");
});
