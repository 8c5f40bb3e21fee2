// The package's entries, each in a process of its own, for an entry decides how the engine is loaded.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { here } from "./lib.mjs";

const require = createRequire(import.meta.url);
const module = (role) => join(require.resolve("mrtr/package.json"), `../${role}/mrtr_bg.wasm`);

/** What a server says before its engine is loaded and after, in a process that has this script's `load`. */
function run(entry, role, load) {
  const script = `
    import { readFileSync } from "node:fs";
    import * as mrtr from ${JSON.stringify(entry)};
    import { call } from ${JSON.stringify(pathToFileURL(join(here, "lib.mjs")).href)};
    const bytes = readFileSync(${JSON.stringify(module(role))});
    const server = new mrtr.McpServer({ name: "t", version: "1", keys: [new Uint8Array(32).fill(7)], report: () => {} }).tool("t", {}, () => "hi");
    const early = await server.fetch(new Request("http://mcp.test/mcp", { method: "POST", body: "{}" }), { principal: "ada" });
    ${load}
    const { result } = await call(server, "t");
    console.log(JSON.stringify([early.status, result.content[0].text, typeof mrtr.McpClient]));`;
  return JSON.parse(execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: here, encoding: "utf8" }));
}

const client = { server: "undefined", full: "function" };

for (const [role, entry] of [["server", "mrtr/server"], ["full", "mrtr"]]) {
  test(`${entry}/bare: the module is handed over, and only then there is a server`, () => {
    assert.deepEqual(run(`${entry}/bare`, role, "mrtr.initSync({ module: new WebAssembly.Module(bytes) });"), [500, "hi", client[role]]);
  });

  test(`${entry} through a bundler for browsers`, () => {
    const folder = mkdtempSync(join(here, "bundled-"));
    try {
      const outfile = join(folder, "page.mjs");
      require("esbuild").buildSync({ stdin: { contents: `export * from "${entry}"`, resolveDir: here }, bundle: true, minify: true, format: "esm", platform: "browser", outfile, logLevel: "error" });
      assert.deepEqual(run(pathToFileURL(outfile).href, role, "await Promise.all([mrtr.init(bytes), mrtr.init(bytes)]);"), [500, "hi", client[role]]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
