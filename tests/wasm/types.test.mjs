// The types, and those of the examples, by the compiler's strictest settings.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

import { here } from "./lib.mjs";

const strict = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler", "--lib", "es2023,dom,dom.iterable"];

// With Node's types, and without: those bring newer libraries with them.
for (const [file, ...more] of [["types.ts", "--types", "node"], ["types.ts"], ["examples/worker/worker.ts", "--types", "node"], ["examples/worker/worker.ts"]]) {
  test(`${file} is as it says ${more.join(" ")}`, () => {
    const compiler = join(here, "node_modules/.bin/tsc");
    try {
      execFileSync(compiler, [...strict, ...more, join(here, file)], { cwd: here, encoding: "utf8" });
    } catch (error) {
      throw new Error(error.stdout);
    }
  });
}
