// The types, and those of the examples, by the compiler's strictest settings.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

import { here } from "./lib.mjs";

const strict = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler", "--lib"];

const browser = ["es2023,dom,dom.iterable"];
const node = ["es2023", "--types", "node"];

// Node's types bring newer libraries with them, and know less of the browser.
for (const [file, ...libraries] of [
  ["types.ts", ...browser],
  ["types.ts", ...node],
  ["examples/worker/worker.ts", ...browser],
  ["examples/worker/worker.ts", ...browser, "--types", "node"],
]) {
  test(`${file} is as it says with ${libraries.join(" ")}`, () => {
    const compiler = join(here, "node_modules/.bin/tsc");
    try {
      execFileSync(compiler, [...strict, ...libraries, join(here, file)], { cwd: here, encoding: "utf8" });
    } catch (error) {
      throw new Error(error.stdout);
    }
  });
}
