// The types, and those of the examples, by the compiler's strictest settings.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

import { here } from "./lib.mjs";

const strict = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler", "--lib", "es2023,dom,dom.iterable", "--types", "node"];

for (const file of ["types.ts", "examples/worker/worker.ts"]) {
  test(`${file} is as it says`, () => {
    const compiler = join(here, "node_modules/.bin/tsc");
    try {
      execFileSync(compiler, [...strict, join(here, file)], { cwd: here, encoding: "utf8" });
    } catch (error) {
      throw new Error(error.stdout);
    }
  });
}
