// The types, and those of the examples, by the compiler's strictest settings.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";

import { here } from "./lib.mjs";

const strict = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--verbatimModuleSyntax", "--isolatedModules", "--skipLibCheck", "false", "--target", "es2022"];
const bundler = ["--module", "es2022", "--moduleResolution", "bundler", "--lib"];
const node16 = ["--module", "node16", "--lib"];

const browser = ["es2023,dom,dom.iterable"];
const node = ["es2023", "--types", "node"];

// Node's types bring newer libraries with them, and know less of the browser.
function compile(file, libraries) {
  try {
    execFileSync(join(here, "node_modules/.bin/tsc"), [...strict, ...libraries, join(here, file)], { cwd: here, encoding: "utf8" });
  } catch (error) {
    throw new Error(error.stdout);
  }
}

for (const [file, ...libraries] of [
  ["types.ts", ...bundler, ...browser],
  ["types.ts", ...bundler, ...node],
  ["types.ts", ...node16, ...node],
  ["types.node.ts", ...bundler, ...browser, "--types", "node"],
  ["types.node.ts", ...node16, ...node],
  ["examples/worker/worker.ts", ...bundler, ...browser],
  ["examples/worker/worker.ts", ...bundler, ...browser, "--types", "node"],
  ["examples/worker/worker.ts", ...bundler, ...browser, "--customConditions", "workerd"],
]) {
  test(`${file} is as it says with ${libraries.join(" ")}`, () => compile(file, libraries));
}

/** What the README leaves to its reader. */
const reader = `
import type * as mrtr from "mrtr";
declare const authorization: string, id: string, client: mrtr.McpClient, server: mrtr.McpServer;
declare const showForm: (form: object) => Promise<mrtr.Answer>, offerToOpen: (url: string) => Promise<mrtr.Answer>;
declare const verify: (authorization: string | undefined) => Promise<string | undefined>;
declare const db: { put(id: string, bytes: Uint8Array): Promise<void>; get(id: string): Promise<Uint8Array> };
`;

for (const [name, libraries] of [["bundler", bundler], ["node16", node16]]) {
  test(`every whole block of TypeScript in the README compiles with ${name}`, () => {
    const text = readFileSync(join(createRequire(import.meta.url).resolve("mrtr/package.json"), "../README.md"), "utf8");
    const blocks = [...text.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, block]) => block).filter((block) => !block.includes("…"));
    assert.ok(blocks.length >= 4);
    for (const [at, block] of blocks.entries()) {
      const [imports, rest] = [block.match(/^import .*$/gm) ?? [], block.replaceAll(/^import .*$/gm, "")];
      const file = `readme-${name}-${at}.mts`;
      writeFileSync(join(here, file), block.includes("export default") ? block : `${reader}${imports.join("\n")}\nexport async function block() {\n${rest}}\n`);
      compile(file, [...libraries, ...browser, "--types", "node"]);
      rmSync(join(here, file));
    }
  });
}
