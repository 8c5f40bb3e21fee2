// The package's entries, each in a process of its own, for an entry decides how the engine is loaded.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
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

test("the package has its licences, and names no folder of the machine that made it", () => {
  const folder = join(require.resolve("mrtr/package.json"), "..");
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const name of ["LICENSE-APACHE", "LICENSE-MIT", "README.md"]) assert.ok(files.some((file) => file.name === name && (file.parentPath ?? file.path) === folder), name);
  for (const file of files) {
    const bytes = readFileSync(join(file.parentPath ?? file.path, file.name));
    const paths = [homedir(), here].filter((path) => path.length > 1);
    for (const path of [...paths, "/.cargo/", "/.rustup/", "sourceMappingURL"]) assert.ok(!bytes.includes(path), `${file.name}: ${path}`);
  }
});

test("every import of the package is there, for each condition", async () => {
  const { exports } = require("mrtr/package.json");
  const all = (entry) => (typeof entry === "string" ? [entry] : Object.values(entry).flatMap(all));
  for (const [name, entry] of Object.entries(exports)) for (const file of all(entry)) assert.ok(existsSync(join(require.resolve("mrtr/package.json"), "..", file)), `${name}: ${file}`);
  for (const role of ["mrtr", "mrtr/server"]) {
    assert.equal((await import(`${role}/node`)).nodeListener, (await import(role)).nodeListener);
    // Runtimes with conditions of their own take Node's entry, or the one that has to be loaded.
    const listens = (...conditions) => execFileSync(process.execPath, [...conditions.map((one) => `--conditions=${one}`), "-e", `import("${role}").then((all) => console.log(typeof all.nodeListener))`], { cwd: here, encoding: "utf8" }).trim();
    assert.equal(listens("bun", "deno", "worker", "browser"), "function");
  }
});

test("an engine that is not where it should be is named, and can be loaded after all", () => {
  const given = (status, type) => `await mrtr.init(Promise.resolve(new Response("<html>", { status: ${status}, headers: { "content-type": "${type}" } }))).catch((error) => said.push(error.code));`;
  const load = `const said = []; ${given(404, "text/plain")} ${given(200, "text/html; charset=utf-8")}
    if (String(said) !== "MRTR_CONFIG,MRTR_CONFIG") throw new Error(said);
    await mrtr.init(bytes);`;
  assert.deepEqual(run("mrtr/server/browser", "server", load), [500, "hi", "undefined"]);
});

test("CommonJS gets it by `require` where Node can do that, else Node's clear error", () => {
  const script = 'try { console.log(typeof require("mrtr/server").McpServer) } catch (error) { console.log(error.code) }';
  const said = execFileSync(process.execPath, ["--input-type=commonjs", "-e", script], { cwd: here, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  assert.equal(said, process.features.require_module ? "function" : "ERR_REQUIRE_ESM");
});

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
