// Says how large a package is, and what its modules import; with `--sizes`, holds it against a baseline.
//
//   node sizes.mjs TOOLS PACKAGE BASELINE WAY [--sizes | --sizes=write]
//
// The baseline has an entry for each WAY of building, `small` and `plain`.
// The JavaScript is what a bundler makes of the worker's entry: one minified file.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const [tools, folder, baseline, way, mode = ""] = process.argv.slice(2);
const esbuild = createRequire(join(tools, "package.json"))("esbuild");
const found = {};
let wrong = 0;
for (const role of ["server", "full"]) {
  const bytes = readFileSync(join(folder, role, "mrtr_bg.wasm"));
  const foreign = WebAssembly.Module.imports(new WebAssembly.Module(bytes)).filter(({ module }) => module !== "./mrtr_bg.js");
  for (const { module, name } of foreign) {
    console.error(`✗ ${role}: the module imports ${name} from ${JSON.stringify(module)}, which no host has`);
    wrong++;
  }
  const bundle = esbuild.buildSync({
    entryPoints: [join(folder, role, "workerd.js")],
    bundle: true,
    minify: true,
    format: "esm",
    external: ["*.wasm"],
    write: false,
    conditions: ["workerd"],
  });
  const text = bundle.outputFiles[0].contents;
  found[role] = {
    wasm: bytes.length,
    wasmGzip: gzipSync(bytes, { level: 9 }).length,
    js: text.length,
    jsGzip: gzipSync(text, { level: 9 }).length,
  };
  const { wasm, wasmGzip, js, jsGzip } = found[role];
  console.error(`${role}: WebAssembly ${wasm} bytes (${wasmGzip} gzipped), JavaScript ${js} bytes (${jsGzip} gzipped)`);
}
const before = JSON.parse(readFileSync(baseline, "utf8"));
if (mode === "--sizes=write") writeFileSync(baseline, `${JSON.stringify({ ...before, [way]: found }, null, 2)}\n`);
else if (mode === "--sizes") {
  if (before[way] === undefined) throw new Error(`${baseline} has no sizes for the way ${way}`);
  for (const [role, sizes] of Object.entries(before[way])) {
    for (const name of ["wasmGzip", "jsGzip"]) {
      const [was, is] = [sizes[name], found[role][name]];
      if (is > was * 1.03) {
        console.error(`✗ ${role}: ${name} is ${is}, more than 3 % over ${was}`);
        wrong++;
      }
    }
  }
}
process.exitCode = wrong === 0 ? 0 : 1;
