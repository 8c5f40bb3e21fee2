// Handlers that run again: the rules of replay as JavaScript meets them (A1…A12).
import assert from "node:assert/strict";
import { test } from "node:test";

import { AttemptEnded, McpError, McpServer } from "mrtr";

import { KEY, call, line, play } from "./lib.mjs";

const reports = [];
const make = (options = {}) =>
  new McpServer({ name: "t", version: "1", keys: [KEY], report: (message) => reports.push(message), ...options });
const text = (got) => got.result?.content?.[0]?.text ?? JSON.stringify(got.error ?? got);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

test("A1 A2 A4: asks in a Promise.all share a round and are answered together", async () => {
  const server = make().tool("t", {}, async (ctx) => {
    const [a, b] = await Promise.all([ctx.elicit("a", line("A?", "v")), ctx.elicit("b", line("B?", "v"))]);
    return `${a.content.v} ${b.content.v}`;
  });
  const got = await play(server, "t", {}, { a: { content: { v: "1" } }, b: { content: { v: "2" } } });
  assert.deepEqual(got.rounds, [["a", "b"]]);
  assert.equal(text(got), "1 2");
});

test("A2: siblings that first do something of their own are waited for, counted from the last ask", async () => {
  const rounds = async (...turns) => {
    const later = async (ctx, turns, at) => {
      for (let turn = 0; turn < turns; turn++) await null;
      return ctx.confirm("abcd"[at], "Sure?");
    };
    const server = make().tool("t", {}, async (ctx) => (await Promise.all(turns.map((turns, at) => later(ctx, turns, at)))).join());
    const got = await play(server, "t", {}, { a: "accept", b: "decline", c: "accept", d: "decline" });
    // However many rounds it takes, every answer meets its question.
    assert.equal(text(got), ["true", "false", "true", "false"].slice(0, turns.length).join());
    return got.rounds;
  };
  assert.deepEqual(await rounds(2, 2, 2), [["a", "b", "c"]]);
  assert.deepEqual(await rounds(0, 120, 240, 360), [["a", "b", "c", "d"]]);
  // One that is busy for longer is asked after the others: in a round of its own, and in the same one every time.
  assert.deepEqual(await rounds(0, 1_000, 0), [["a", "c"], ["b"]]);
});

test("A6 partial answers: only what is open is asked again, and the handler keeps its path", async () => {
  let runs = 0;
  const server = make().tool("t", {}, async (ctx) => {
    runs++;
    const [a, b] = await Promise.all([ctx.confirm("a", "a?"), ctx.confirm("b", "b?")]);
    return `${a} ${b}`;
  });
  const first = await call(server, "t");
  const second = await call(server, "t", {}, { requestState: first.result.requestState, inputResponses: { a: { action: "accept" } } });
  assert.deepEqual(Object.keys(second.result.inputRequests), ["b"]);
  const third = await call(server, "t", {}, { requestState: second.result.requestState, inputResponses: { b: { action: "decline" } } });
  assert.equal(text(third), "true false");
  assert.equal(runs, 3);
});

test("A3 A9: Promise.race of asks goes on with the one that is answered, and takes the same way again", async () => {
  const server = make().tool("t", {}, async (ctx) => {
    const first = await Promise.race([
      ctx.elicit("slow", line("S?", "v")).then(() => "slow"),
      ctx.elicit("fast", line("F?", "v")).then(() => "fast"),
    ]);
    const sure = await ctx.confirm("sure", `${first}?`);
    return `${first} ${sure}`;
  });
  const one = await call(server, "t");
  assert.deepEqual(Object.keys(one.result.inputRequests), ["slow", "fast"]);
  const two = await call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { fast: { action: "accept", content: { v: "x" } } } });
  // What lost is still open, under its old key (A6).
  assert.deepEqual(Object.keys(two.result.inputRequests).sort(), ["slow", "sure"]);
  const both = { sure: { action: "accept" }, slow: { action: "accept", content: { v: "y" } } };
  const three = await call(server, "t", {}, { requestState: two.result.requestState, inputResponses: both });
  assert.equal(text(three), "fast true");
});

test("A3: of a race whose asks are all answered the first in order wins, every time", async () => {
  const server = make().tool("t", {}, async (ctx) => {
    const winner = await Promise.race(["a", "b"].map((key) => ctx.confirm(key, `${key}?`).then(() => key)));
    await ctx.confirm("next", "next?");
    return winner;
  });
  for (let turn = 0; turn < 5; turn++) {
    assert.equal(text(await play(server, "t", {}, { a: "accept", b: "accept", next: "accept" })), "a");
  }
});

test("the loser of a race can be withdrawn, and its key used again (A1)", async () => {
  const server = make().tool("t", {}, async (ctx) => {
    const slow = ctx.confirm("slow", "slow?");
    const won = await Promise.race([slow.then(() => "slow"), ctx.confirm("fast", "fast?").then(() => "fast")]);
    slow.withdraw();
    return `${won} ${await ctx.confirm("slow", "again?")}`;
  });
  const one = await call(server, "t");
  const two = await call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { fast: { action: "accept" } } });
  assert.deepEqual(Object.keys(two.result.inputRequests), ["slow#1"]);
  const three = await call(server, "t", {}, { requestState: two.result.requestState, inputResponses: { "slow#1": { action: "accept" } } });
  assert.equal(text(three), "fast true");
});

test("for await over asks: each turn is a round, keys are counted up (A1)", async () => {
  const server = make().tool("t", {}, async (ctx) => {
    async function* questions() {
      for (let n = 0; n < 3; n++) yield await ctx.elicit("item", line(`item ${n}?`, "v"));
    }
    const got = [];
    for await (const answer of questions()) {
      if (answer.action !== "accept") break;
      got.push(answer.content.v);
    }
    return got.join();
  });
  const answers = { item: { content: { v: "a" } }, "item#1": { content: { v: "b" } }, "item#2": "decline" };
  const got = await play(server, "t", {}, answers);
  assert.deepEqual(got.rounds, [["item"], ["item#1"], ["item#2"]]);
  assert.equal(text(got), "a,b");
});

test("a race with a timer: the timer fires in an attempt that is over, and does no harm", async () => {
  reports.length = 0;
  const late = [];
  const server = make().tool("t", {}, async (ctx) => {
    const timer = pause(500).then(() => "late");
    const won = await Promise.race([ctx.confirm("sure", "sure?").then((yes) => `yes ${yes}`), timer]);
    if (won !== "late") return won;
    const uses = [() => ctx.set("won", won), () => ctx.confirm("more", "more?"), () => ctx.set("won", won), () => ctx.onSuspend(() => {})];
    for (const use of uses) {
      try {
        await use();
      } catch (error) {
        late.push(error);
      }
    }
    return won;
  });
  const one = await call(server, "t");
  assert.deepEqual(Object.keys(one.result.inputRequests), ["sure"], "the timer does not decide");
  for (let tries = 0; late.length < 4 && tries < 100; tries++) await pause(50);
  assert.ok(late.length === 4 && late.every((error) => error instanceof AttemptEnded && error.code === "MRTR_ATTEMPT_ENDED"));
  const warned = reports.filter((line) => line.includes("the attempt is over")).map((line) => line.split(": ")[1]);
  assert.deepEqual(warned, ["set(won)", "confirm(more)", "onSuspend"], "warned once for each key, by name");
  const two = await call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } });
  assert.equal(text(two), "yes true");
});

test("A9: a timer that wins while a fresh ask is open does not answer the request", async () => {
  const server = make().tool("t", {}, (ctx) => Promise.race([ctx.confirm("sure", "sure?").then(String), Promise.resolve("at once")]));
  const one = await call(server, "t");
  assert.equal(one.result.resultType, "input_required");
  const two = await call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } });
  assert.equal(two.error?.code, -32603, "swallowed twice: an error, never the handler's value");
});

test("a sibling that rejects after the suspension kills nobody", async () => {
  const unhandled = [];
  const hear = (error) => unhandled.push(error);
  process.on("unhandledRejection", hear);
  const server = make()
    .tool("marked", {}, async (ctx) => {
      const work = ctx.io(pause(20).then(() => Promise.reject(new Error("late"))));
      // Left here: nobody awaits the work any more.
      const sure = await ctx.confirm("sure", "sure?");
      return `${sure} ${await work}`;
    })
    .tool("all", {}, async (ctx) => {
      // In a Promise.all the rejection goes to the handler's own promise, which is caught.
      await Promise.all([ctx.confirm("sure", "sure?"), pause(20).then(() => Promise.reject(new Error("late")))]);
      return "never";
    });
  for (const name of ["marked", "all"]) {
    const one = await call(server, name);
    assert.deepEqual(Object.keys(one.result.inputRequests), ["sure"]);
  }
  await pause(60);
  process.off("unhandledRejection", hear);
  assert.deepEqual(unhandled, []);
});

test("a lock held across an ask is let go in onSuspend, for finally does not run", async () => {
  let holders = 0;
  let finals = 0;
  const signals = [];
  const server = make().tool("t", {}, async (ctx) => {
    holders++;
    let held = true;
    const release = () => held && ((held = false), holders--);
    ctx.onSuspend(release);
    signals.push(ctx.signal);
    try {
      const sure = await ctx.confirm("sure", "sure?");
      return String(sure);
    } finally {
      finals++;
      release();
    }
  });
  const one = await call(server, "t");
  assert.equal(holders, 0, "let go before the reply was out");
  assert.equal(finals, 0);
  assert.ok(signals[0].aborted);
  const two = await call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } });
  assert.equal(text(two), "true");
  assert.deepEqual([holders, finals, signals[1].aborted], [0, 1, false]);
});

test("A11: once makes a value once; what is asked by it stays the same", async () => {
  let made = 0;
  const server = make().tool("t", {}, async (ctx) => {
    const price = await ctx.once("price", async () => (await null, ++made));
    const twice = await ctx.once("price", () => `use ${++made}`);
    const sure = await ctx.confirm("sure", `For ${price}?`);
    const after = await ctx.once("after", () => ({ deep: [++made] }));
    await ctx.confirm("more", "More?");
    return JSON.stringify([price, twice, sure, after]);
  });
  const got = await play(server, "t", {}, { sure: "accept", more: "accept" });
  assert.equal(text(got), JSON.stringify([1, "use 2", true, { deep: [3] }]));
  assert.equal(made, 3);
});

test("A11: once that throws records nothing and is the handler's own error", async () => {
  let tries = 0;
  const server = make().tool("t", {}, async (ctx) => {
    const value = await ctx.once("v", () => {
      if (++tries === 1) throw new McpError(7, "not yet", { retry: true });
      return "there";
    });
    return value;
  });
  const one = await call(server, "t");
  assert.deepEqual([one.error.code, one.error.message, one.error.data], [7, "not yet", { retry: true }]);
  assert.equal(text(await call(server, "t")), "there");
});

test("A11: named values are memory across rounds; started and seed are the same on every run", async () => {
  const seen = [];
  const server = make().tool("t", {}, async (ctx) => {
    seen.push([ctx.started, Buffer.from(ctx.seed).toString("hex"), ctx.exchange, ctx.replaying]);
    ctx.set("tries", (ctx.get("tries") ?? 0) + 1);
    await ctx.confirm("sure", "sure?");
    return `${ctx.get("tries")} ${ctx.get("none")}`;
  });
  const got = await play(server, "t", {}, { sure: "accept" });
  assert.equal(text(got), "2 undefined");
  assert.equal(seen.length, 2);
  assert.deepEqual(seen[0].slice(0, 3), seen[1].slice(0, 3));
  assert.deepEqual([seen[0][3], seen[1][3]], [false, true]);
});

test("A10: a checkpoint is a round without a question", async () => {
  const server = make().tool("t", {}, async (ctx) => {
    await ctx.checkpoint();
    await ctx.checkpoint();
    return "rested";
  });
  const got = await play(server, "t", {}, {});
  assert.deepEqual(got.rounds, [[], []]);
  assert.equal(text(got), "rested");
});

test("A10: a url waits for its errand, and is asked again while that is not done", async () => {
  let paid = false;
  let looks = 0;
  const server = make({ replay: { holdUrlsMs: 300, lookMs: 20 } }).tool("t", {}, async (ctx) => {
    const ticket = ctx.ticket("pay", 60_000);
    const { action } = await ctx.elicitUrl(
      "pay",
      { message: "Pay", url: `https://pay.example/?t=${ticket}` },
      { until: async () => (looks++, paid) },
    );
    return action;
  });
  const one = await call(server, "t");
  const url = one.result.inputRequests.pay.params.url;
  const opened = server.openTicket(new URL(url).searchParams.get("t"), "ada");
  assert.equal(opened.key, "pay");
  assert.equal(server.openTicket(new URL(url).searchParams.get("t"), "eve"), undefined, "R-142");
  const two = await call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { pay: { action: "accept" } } });
  assert.equal(two.result.resultType, "input_required");
  assert.equal(two.result.inputRequests.pay.params.url, url);
  assert.ok(looks >= 2, `it was looked at while the retry was held: ${looks}`);
  setTimeout(() => (paid = true), 30);
  const three = await call(server, "t", {}, { requestState: two.result.requestState, inputResponses: { pay: { action: "accept" } } });
  assert.equal(text(three), "accept");
});

test("A7: an answer that comes without a state counts for a form, never for a confirmation", async () => {
  const server = make()
    .tool("form", {}, async (ctx) => (await ctx.elicit("k", line("?", "v"))).content.v)
    .tool("confirm", {}, async (ctx) => String(await ctx.confirm("k", "Delete 3 files?")))
    .tool("solicited", {}, async (ctx) => (await ctx.elicit("k", line("?", "v"), { solicited: true })).content.v);
  const early = { inputResponses: { k: { action: "accept", content: { v: "early" } } } };
  assert.equal(text(await call(server, "form", {}, early)), "early");
  for (const name of ["confirm", "solicited"]) {
    assert.equal((await call(server, name, {}, early)).result.resultType, "input_required", name);
  }
});

test("G-18: content that does not fit is asked again, twice, then the handler is told", async () => {
  const server = make().tool("t", {}, async (ctx) => {
    try {
      return (await ctx.elicit("k", { message: "?", schema: { type: "object", properties: { n: { type: "integer", maximum: 3 } }, required: ["n"] } })).content.n.toString();
    } catch (error) {
      return `${error.code} ${error.key}: ${error.reason}`;
    }
  });
  const got = await play(server, "t", {}, { k: { content: { n: 9 } } });
  assert.equal(got.rounds.length, 3);
  assert.match(text(got), /^MRTR_ASK_INVALID k: /);
});

test("G-13 R-106: optional asks that cannot be answered are unavailable; others are refused", async () => {
  const server = make()
    .tool("optional", {}, async (ctx) => {
      const model = await ctx.sample("m", { messages: [], maxTokens: 5 }, { optional: true });
      const form = await ctx.elicit("f", line("?", "v"), { optional: true });
      return `${model} ${form.action}`;
    })
    .tool("required", {}, async (ctx) => JSON.stringify(await ctx.roots("r")));
  assert.equal(text(await call(server, "optional", {}, {}, { capabilities: {} })), "undefined unavailable");
  const refused = await call(server, "required", {}, {}, { capabilities: {} });
  assert.deepEqual([refused.status, refused.error.code], [400, -32021]);
});

test("sampling and roots come as they are (R-150, R-155)", async () => {
  const server = make().tool("t", {}, async (ctx) => {
    const [said, roots] = await Promise.all([
      ctx.sample("m", { messages: [{ role: "user", content: { type: "text", text: "hi" } }], maxTokens: 9 }),
      ctx.roots("r"),
    ]);
    return `${said.model} ${said.content.text} ${roots[0].uri}`;
  });
  const answers = { m: { role: "assistant", content: { type: "text", text: "ho" }, model: "m1" }, r: { roots: [{ uri: "file:///a" }] } };
  assert.equal(text(await play(server, "t", {}, answers)), "m1 ho file:///a");
});

test("A12: commits run after success, in order, once; what one throws is the reply", async () => {
  const done = [];
  const server = make()
    .tool("good", {}, async (ctx) => {
      ctx.onCommit(async () => (await null, done.push("one")));
      await ctx.confirm("sure", "sure?");
      ctx.onCommit(() => done.push("two"));
      return "ok";
    })
    .tool("failed", {}, async (ctx) => (ctx.onCommit(() => done.push("never")), { content: [], isError: true }))
    .tool("bad", {}, async (ctx) => {
      ctx.onCommit(() => {
        throw new McpError(-1000, "no");
      });
      ctx.onCommit(() => done.push("never"));
      return "ok";
    });
  assert.equal(text(await play(server, "good", {}, { sure: "accept" })), "ok");
  assert.deepEqual(done, ["one", "two"]);
  assert.equal((await call(server, "failed")).result.isError, true);
  assert.equal((await call(server, "bad")).error.code, -1000);
  assert.deepEqual(done, ["one", "two"]);
});

test("A8: a handler that changes its question is asked anew, and ends the third time", async () => {
  let n = 0;
  const server = make().tool("t", {}, async (ctx) => String(await ctx.confirm("k", `Number ${n++}?`)));
  const got = await play(server, "t", {}, { k: "accept" });
  assert.equal(got.error.code, -32603);
  assert.match(got.error.message, /changes from run to run/);
  assert.ok(reports.some((line) => line.startsWith("t: this question changes")), "the log names it");
});

test("A1: a key in use is a fault that the log names and the peer does not", async () => {
  reports.length = 0;
  const server = make().tool("t", {}, async (ctx) => String(await Promise.all([ctx.confirm("k", "a"), ctx.confirm("k", "b")])));
  const got = await call(server, "t");
  assert.deepEqual([got.error.code, got.error.message], [-32603, "Internal error"]);
  assert.match(reports.join(), /"k" while an earlier use of it is still open/);
});

test("I/O before an ask is plain waiting; I/O beside an ask does not hold the questions back", async () => {
  const server = make().tool("t", {}, async (ctx) => {
    await pause(20);
    const [sure] = await Promise.all([ctx.confirm("sure", "sure?"), ctx.io(pause(1_000))].slice(0, 1));
    await pause(5);
    return String(sure);
  });
  assert.equal(text(await play(server, "t", {}, { sure: "accept" })), "true");
  const beside = make().tool("t", {}, async (ctx) => {
    const slow = pause(1_000).then(() => "slow");
    const [sure, other] = await Promise.all([ctx.confirm("sure", "sure?"), slow]);
    return `${sure} ${other}`;
  });
  const begun = Date.now();
  const one = await call(beside, "t");
  assert.ok(Date.now() - begun < 900, "asked at once");
  const two = await call(beside, "t", {}, { requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } });
  assert.equal(text(two), "true slow");
});

test("A2: what wakes the run beside an ask does not cut a round short", async () => {
  const server = make().tool("t", {}, async (ctx) => {
    await ctx.confirm("first", "first?");
    await pause(20);
    ctx.progress(1);
    const later = async () => (await null, ctx.confirm("b", "b?"));
    ctx.progress(2);
    const [a, b] = await Promise.all([ctx.confirm("a", "a?"), later()]);
    return `${a} ${b}`;
  });
  const meta = { progressToken: 1 };
  const got = await play(server, "t", {}, { first: "accept", a: "accept", b: "accept" }, { meta });
  assert.deepEqual(got.rounds, [["first"], ["a", "b"]]);
  assert.equal(text(got), "true true");
});

test("a handler that throws answers -32603 without its words; the log has them", async () => {
  reports.length = 0;
  const server = make().tool("t", {}, async () => {
    throw new Error("secret");
  });
  const got = await call(server, "t");
  assert.deepEqual([got.status, got.error], [200, { code: -32603, message: "Internal error" }]);
  assert.match(reports.join(), /t: the handler threw/);
});

test("R-195 R-198: progress and logs are events before the reply, and are not repeated on replay", async () => {
  const server = make().tool("t", {}, async (ctx) => {
    ctx.progress(1, 2, "begun");
    ctx.log("info", { at: "begin" });
    await ctx.confirm("sure", "sure?");
    ctx.progress(2);
    return "done";
  });
  const meta = { progressToken: "p", "io.modelcontextprotocol/logLevel": "info" };
  const one = await call(server, "t", {}, {}, { meta });
  assert.deepEqual(one.notifications.map(({ params }) => params), [
    { progressToken: "p", progress: 1, total: 2, message: "begun" },
    { level: "info", data: { at: "begin" } },
  ]);
  const two = await call(server, "t", {}, { requestState: one.result.requestState, inputResponses: { sure: { action: "accept" } } }, { meta });
  assert.deepEqual(two.notifications.map(({ params }) => params), [{ progressToken: "p", progress: 2 }]);
});

test("A11: keep puts what is made of an answer into the state, and finds it again", async () => {
  const projected = [];
  const server = make().tool("t", {}, async (ctx) => {
    const [size, said, sure] = await Promise.all([
      ctx.elicit("long", line("Long?", "v")).keep((answer) => (projected.push("long"), answer.content?.v.length)),
      ctx.sample("m", { messages: [], maxTokens: 5 }).keep(({ model }) => ({ model })),
      ctx.confirm("sure", "sure?").keep((yes) => (yes ? undefined : "no")),
    ]);
    await ctx.confirm("next", "next?");
    return JSON.stringify([size, said, sure]);
  });
  const one = await call(server, "t");
  const answers = {
    long: { action: "accept", content: { v: "x".repeat(5_000) } },
    m: { role: "assistant", content: { type: "text", text: "y".repeat(5_000) }, model: "m1" },
    sure: { action: "accept" },
  };
  const two = await call(server, "t", {}, { requestState: one.result.requestState, inputResponses: answers });
  assert.deepEqual(Object.keys(two.result.inputRequests), ["next"]);
  assert.ok(two.result.requestState.length < 2_000, `${two.result.requestState.length}`);
  const three = await call(server, "t", {}, { requestState: two.result.requestState, inputResponses: { next: { action: "accept" } } });
  assert.equal(text(three), JSON.stringify([5_000, { model: "m1" }, null]));
  assert.deepEqual(projected, ["long"]);
});

test("A11: what keep makes is JSON, made of an answer; errors are the handler's", async () => {
  reports.length = 0;
  const server = make()
    .tool("throws", {}, async (ctx) => ctx.confirm("k", "?").keep(() => { throw new McpError(7, "no"); }))
    .tool("promise", {}, async (ctx) => ctx.confirm("k", "?").keep(async () => 1))
    .tool("bigint", {}, async (ctx) => ctx.confirm("k", "?").keep(() => 1n))
    .tool("optional", {}, async (ctx) => `${await ctx.confirm("k", "?", { optional: true }).keep((yes) => `kept ${yes}`)}`)
    .tool("late", {}, async (ctx) => {
      const ask = ctx.confirm("k", "?");
      await ask;
      return ask.keep(() => 1);
    });
  assert.equal((await play(server, "throws", {}, { k: "accept" })).error.code, 7);
  for (const name of ["promise", "bigint", "late"]) assert.equal((await play(server, name, {}, { k: "accept" })).error.code, -32603, name);
  assert.equal(reports.length, 3);
  assert.equal(text(await call(server, "optional", {}, {}, { capabilities: {} })), "kept undefined");
  assert.equal(text(await play(server, "optional", {}, { k: "decline" })), "kept false");
});
