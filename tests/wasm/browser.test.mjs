// The example page in a real browser, by keyboard alone, against `mrtr serve`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";

import { McpServer, anonymous, nodeListener } from "mrtr/server";
import { chromium } from "playwright-core";

import { KEY, here } from "./lib.mjs";

function listening(command, ...args) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve) => {
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
      const found = /https?:\/\/\S+/.exec(text);
      if (found) resolve({ url: found[0], stop: () => child.kill() });
    });
  });
}

const skip = !(process.env.MRTR_PROGRAM && process.env.MRTR_CHROMIUM) && "MRTR_PROGRAM or MRTR_CHROMIUM is not set";

test("a person calls a tool, fills in its form by keyboard, declines once, and sees the result", { skip }, async () => {
  const page_ = await listening(process.execPath, join(here, "examples/browser/serve.mjs"));
  const origin = new URL(page_.url).origin;
  const server = await listening(process.env.MRTR_PROGRAM, "serve", "--listen", "127.0.0.1:0", "--allow-origin", origin);
  const browser = await chromium.launch({ executablePath: process.env.MRTR_CHROMIUM, args: ["--no-sandbox"] });
  const shots = process.env.MRTR_SHOTS ?? join(here, "shots");
  mkdirSync(shots, { recursive: true });
  try {
    const page = await browser.newPage({ viewport: { width: 900, height: 800 } });
    const faults = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    await page.goto(`${page_.url}?server=${encodeURIComponent(server.url)}`);
    const keys = page.keyboard;
    const focused = () => page.evaluate(() => document.activeElement?.labels?.[0]?.textContent ?? document.activeElement?.textContent ?? "");
    /** Goes on by Tab to what is called so. */
    const tabTo = async (name) => {
      for (let tries = 0; tries < 40; tries++) {
        if ((await focused()).startsWith(name)) return;
        await keys.press("Tab");
      }
      assert.fail(`no way to ${name}; it is at ${await focused()}`);
    };
    await page.waitForFunction(() => document.getElementById("url").value !== "");
    await tabTo("MCP server");
    await keys.press("Enter");
    await page.waitForSelector("#tools:not([hidden])");
    assert.equal(await focused(), "Tool");
    await keys.type("plan");
    await tabTo("city");
    await keys.type("Lisbon");
    await keys.press("Enter");

    await page.waitForSelector("dialog[open]");
    // a person decides, and sees who asks.
    assert.match(await page.textContent("#claim"), /mrtr-examples.*(127|localhost)/);
    assert.match(await page.textContent("#question-title"), /Lisbon/);
    // Sent empty: the field says why, and keeps the focus.
    await keys.press("Enter");
    const field = page.locator("dialog input").first();
    assert.equal(await field.getAttribute("aria-invalid"), "true");
    const described = (await field.getAttribute("aria-describedby")).split(" ").at(-1);
    assert.notEqual(await page.textContent(`#${described}`), "");
    await page.screenshot({ path: join(shots, "message.png") });
    await keys.type("3");
    await page.screenshot({ path: join(shots, "form.png") });
    await keys.press("Enter");

    await page.waitForFunction(() => /3/.test(document.getElementById("question-title").textContent) && document.querySelector("dialog[open]"));
    await page.screenshot({ path: join(shots, "second.png") });
    await tabTo("Decline");
    await keys.press("Enter");
    await page.waitForFunction(() => !document.querySelector("dialog[open]") && !/Calling/.test(document.getElementById("result").textContent));
    const declined = await page.textContent("#result");
    assert.equal(declined.trim(), "Nothing was planned.");
    assert.match(await page.textContent("#history"), /answered.*declined/s);
    await page.screenshot({ path: join(shots, "declined.png") });

    // Once more, to its end.
    await tabTo("Call");
    await keys.press("Enter");
    await page.waitForSelector("dialog[open]");
    await keys.type("2");
    await keys.press("Enter");
    await page.waitForFunction(() => /2/.test(document.getElementById("question-title").textContent) && document.querySelector("dialog[open]"));
    // A choice or a line of text, whatever is asked.
    await keys.press("ArrowDown");
    await keys.press("Tab");
    await tabTo("Send");
    await keys.press("Enter");
    await page.waitForFunction(() => !document.querySelector("dialog[open]") && !/Calling/.test(document.getElementById("result").textContent));
    assert.match(await page.textContent("#result"), /Lisbon/);
    assert.deepEqual(faults, []);
    await page.screenshot({ path: join(shots, "result.png") });
    // Dismissed by Escape, which is no decline.
    await tabTo("Call");
    await keys.press("Enter");
    await page.waitForSelector("dialog[open]");
    await keys.press("Escape");
    await page.waitForFunction(() => /dismissed/.test(document.getElementById("history").textContent));
  } finally {
    await browser.close();
    server.stop();
    page_.stop();
  }
});

test("R-134 R-141: a page calls the package's own server across origins, and opens no script", { skip: !process.env.MRTR_CHROMIUM && "MRTR_CHROMIUM is not set" }, async () => {
  const page_ = await listening(process.execPath, join(here, "examples/browser/serve.mjs"));
  const server = new McpServer({ name: "t", version: "1", keys: [KEY], origins: [new URL(page_.url).origin] });
  const ask = (url) => async (ctx) => (await ctx.elicitUrl("k", { message: "Open it?", url })).action;
  server.tool("script", {}, ask("javascript:document.title='ran'")).tool("web", {}, ask(`${page_.url}page.css`));
  const http = createServer(nodeListener(server, { principal: anonymous }));
  await new Promise((done) => http.listen(0, "127.0.0.1", done));
  const browser = await chromium.launch({ executablePath: process.env.MRTR_CHROMIUM, args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage();
    await page.goto(`${page_.url}?server=http://127.0.0.1:${http.address().port}/mcp`);
    await page.waitForFunction(() => document.getElementById("url").value !== "");
    await page.click("#connect button");
    for (const [tool, button, said] of [["script", "#cancel", "cancel"], ["web", "#accept", "accept"]]) {
      await page.selectOption("#tool", tool);
      await page.click("#call button");
      await page.waitForSelector("dialog[open]");
      assert.equal(await page.isVisible("#accept"), tool === "web");
      assert.equal(/is not opened/.test(await page.textContent("#problem")), tool === "script");
      await page.click(button);
      await page.waitForFunction((said) => document.getElementById("result").textContent === said, said);
    }
    assert.notEqual(await page.title(), "ran");
  } finally {
    await browser.close();
    http.closeAllConnections();
    http.close();
    page_.stop();
  }
});
