// The example worker, as its readers run it: bundled, in workerd, with its ledger in Durable Objects.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { McpClient } from "mrtr";

import { KEY_TEXT, bundle, here, plainConfig, reply, request, workerd } from "./lib.mjs";

const example = join(here, "examples/worker");

test("the example worker books a table, and its ledger answers a repeated retry", async () => {
  const config = readFileSync(join(example, "workerd.capnp"), "utf8");
  const worker = await workerd(bundle(join(example, "worker.ts")), config, { env: { MRTR_KEYS: KEY_TEXT } });
  try {
    const client = new McpClient(worker.url, { name: "c", version: "1" });
    const elicit = ({ key }) => ({ action: "accept", content: key === "when" ? { day: "2026-12-24", seating: "late", quiet: true } : {} });
    const result = await client.callTool("book", { people: 2 }, { elicit });
    assert.equal(result.content[0].text, "Booked for 2 on 2026-12-24, late seating, in a quiet corner.");

    const post = async (more) => reply(await fetch(worker.url, request("tools/call", { name: "book", arguments: { people: 4 }, ...more })));
    const one = await post({});
    const when = { action: "accept", content: { day: "2026-12-25", seating: "early" } };
    const two = await post({ requestState: one.result.requestState, inputResponses: { when } });
    const sure = { requestState: two.result.requestState, inputResponses: { sure: { action: "accept" } } };
    const [a, b] = await Promise.all([post(sure), post(sure)]);
    assert.equal(a.result.content[0].text, "Booked for 4 on 2026-12-25, early seating.");
    assert.deepEqual(a.result, b.result);
    assert.equal((await post({ ...sure, inputResponses: { sure: { action: "decline" } } })).error.message, "Invalid or expired requestState");
    for (let tries = 0; !worker.log().includes("booked: 2026-12-25") && tries < 200; tries++) await new Promise((go) => setTimeout(go, 25));
    assert.equal(worker.log().match(/booked: 2026-12-25/g)?.length, 1, worker.log());
    assert.equal((await fetch(worker.url.replace("/mcp", "/elsewhere"))).status, 404);
  } finally {
    await worker.stop();
  }
});

test("R-187: a client that leaves a stream ends its handler, with and without a signal of the request's", async () => {
  for (const flag of ["enable_request_signal", "disable_request_signal"]) {
    const config = plainConfig.replace("compatibilityDate", `compatibilityFlags = ["${flag}"],\n  compatibilityDate`);
    const worker = await workerd(bundle(join(here, "leave.worker.mjs")), config, { env: { MRTR_KEYS: KEY_TEXT } });
    try {
      const leave = new AbortController();
      const init = { ...request("tools/call", { name: "slow" }, { meta: { progressToken: 1 } }), signal: leave.signal };
      const reader = (await fetch(worker.url, init)).body.getReader();
      await reader.read();
      leave.abort();
      let left = "";
      for (let tries = 0; left !== "1" && tries < 100; tries++) {
        await new Promise((go) => setTimeout(go, 20));
        left = await (await fetch(worker.url)).text();
      }
      assert.equal(left, "1", flag);
    } finally {
      await worker.stop();
    }
  }
});

test("the example for Node asks before it deletes", async () => {
  const child = spawn(process.execPath, [join(here, "examples/node/server.mjs")], { env: { ...process.env, MRTR_KEYS: KEY_TEXT }, stdio: ["ignore", "pipe", "pipe"] });
  try {
    let log = "";
    child.stderr.on("data", (data) => (log += data));
    const url = await new Promise((resolve) => child.stdout.once("data", (data) => resolve(String(data).trim())));
    const client = new McpClient(url, { name: "c", version: "1" });
    const asked = [];
    for (const [action, said] of [["accept", "Deleted a.txt."], ["decline", "Nothing was deleted."]]) {
      const elicit = ({ params }) => (asked.push(params.message), { action, content: {} });
      assert.equal((await client.callTool("delete", { path: "a.txt" }, { elicit })).content[0].text, said);
    }
    assert.deepEqual(asked, ["Delete a.txt?", "Delete a.txt?"]);
    assert.equal(log.match(/would be deleted/g)?.length, 1, log);
  } finally {
    child.kill();
  }
});
