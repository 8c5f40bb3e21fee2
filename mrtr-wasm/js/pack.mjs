// Puts the npm package together: glue without globals, compiled TypeScript, one entry a host and role.
//
//   node pack.mjs TOOLS SOURCES BUILT PACKAGE VERSION
//
// TOOLS holds node_modules; SOURCES is this folder; BUILT has a folder a role with what wasm-bindgen wrote and the
// optimised module; PACKAGE is written anew.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [tools, sources, built, out, version] = process.argv.slice(2);
const roles = { server: ["Engine", "Call"], full: ["Engine", "Call", "Dialer", "Trip"] };

/**
 * wasm-bindgen writes a module with one instance in global variables. A trapped instance has to be replaced, so here each
 * call of `instantiate` has variables of its own.
 */
function glue(text, classes) {
  const end = text.indexOf("let wasmModule, wasmInstance, wasm;");
  if (end < 0 || !text.includes("wasm.__wbindgen_start();", end)) throw new Error("wasm-bindgen writes something else than it did");
  const body = text
    .slice(0, end)
    .replaceAll(/^export (class|function) /gm, "$1 ")
    .replace(/^\/\* @ts-self-types.*\n/, "");
  if (/^export /m.test(body)) throw new Error("an export was left over");
  const begin = "const wasm = new WebAssembly.Instance(module, __wbg_get_imports()).exports;\nwasm.__wbindgen_start();";
  return `export function instantiate(module) {\n${typed(lean(body))}\n${begin}\nreturn { ${classes.join(", ")} };\n}\n`;
}

/** Without what no host of ours needs, and with what every call would repeat said once. */
function lean(body) {
  const memory = "wasm.__wbindgen_malloc, wasm.__wbindgen_realloc";
  const parts = [
    // All of them have it, and are told to give memory back by `free` alone.
    [/^if \(!\('encodeInto' in cachedTextEncoder\)\) \{\n[^]*?^\}\n/m, ""],
    [/^if \(Symbol\.dispose\) .*\n/gm, ""],
    [/^    if \(realloc === undefined\) \{\n[^]*?^    \}\n/m, ""],
    [new RegExp(`, ${memory}\\)`, "g"), ")"],
    [/passArray8ToWasm0\((.*), wasm\.__wbindgen_malloc\)/g, "passArray8ToWasm0($1)"],
    ["passArray8ToWasm0(arg, malloc) {", "passArray8ToWasm0(arg) {\n    const malloc = wasm.__wbindgen_malloc;"],
    ["passStringToWasm0(arg, malloc, realloc) {", "passStringToWasm0(arg) {\n    const { __wbindgen_malloc: malloc, __wbindgen_realloc: realloc } = wasm;"],
  ];
  for (const [what, instead] of parts) {
    const leaner = body.replace(what, instead);
    if (leaner === body) throw new Error(`wasm-bindgen writes no ${what} any more`);
    body = leaner;
  }
  return body;
}

/**
 * What is not of its type is written beside the memory that was got for it, and the instance traps or worse. Handlers
 * written in JavaScript have no compiler that would stop them, and pass on what clients sent.
 */
function typed(body) {
  const checks = {
    "passStringToWasm0(arg)": 'typeof arg !== "string") throw new TypeError(`a string is needed, not ${typeof arg}`',
    "passArray8ToWasm0(arg)": "!ArrayBuffer.isView(arg) || arg.BYTES_PER_ELEMENT !== 1) throw new TypeError(`a Uint8Array is needed, not ${typeof arg}`",
  };
  return Object.entries(checks).reduce((text, [head, check]) => {
    if (!text.includes(`function ${head} {`)) throw new Error(`wasm-bindgen writes no ${head} any more`);
    return text.replace(`function ${head} {`, () => `function ${head} {\n    if (${check});`);
  }, body);
}

function types(text, classes) {
  const end = text.indexOf("export type InitInput");
  const members = classes.map((name) => `  ${name}: typeof ${name};`).join("\n");
  // Not every compiler that the package meets knows `Symbol.dispose`, and nobody but this package frees what is here.
  return `${text.slice(0, end).replaceAll(/^ *\[Symbol\.dispose\]\(\): void;\n/gm, "")}
export interface Glue {
${members}
}
export declare function instantiate(module: import("./runtime.js").WasmModule): Glue;
`;
}

rmSync(out, { recursive: true, force: true });
const lib = join(built, "lib");
rmSync(lib, { recursive: true, force: true });
mkdirSync(lib, { recursive: true });
for (const name of readdirSync(sources)) if (/\.ts$|^tsconfig/.test(name)) cpSync(join(sources, name), join(lib, name));
const declared = readFileSync(join(built, "full/mrtr.d.ts"), "utf8");
writeFileSync(join(lib, "glue.d.ts"), types(declared, roles.full));
symlinkSync(join(tools, "node_modules"), join(lib, "node_modules"));
execFileSync(join(tools, "node_modules/.bin/tsc"), ["-p", lib, "--outDir", join(out, "lib")], { stdio: "inherit" });
cpSync(join(lib, "glue.d.ts"), join(out, "lib/glue.d.ts"));

const exported = {};
for (const [role, classes] of Object.entries(roles)) {
  const folder = join(out, role);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "glue.js"), glue(readFileSync(join(built, role, "mrtr.js"), "utf8"), classes));
  writeFileSync(join(folder, "glue.d.ts"), 'export { instantiate } from "../lib/glue.js";\n');
  cpSync(join(built, role, "optimised.wasm"), join(folder, "mrtr_bg.wasm"));
  writeFileSync(join(folder, "mrtr_bg.wasm.d.ts"), 'declare const module: import("../lib/runtime.js").WasmModule;\nexport default module;\n');
  const use = `import { use } from "../lib/runtime.js";\nimport { instantiate } from "./glue.js";\nuse(instantiate, ${role === "full"});\n`;
  const all = `export * from "../lib/entry.${role}.js";\n`;
  const entries = {
    // A worker's runtime compiles what it imports, before the worker starts.
    workerd: `${use}import { initSync } from "../lib/runtime.js";\nimport module from "./mrtr_bg.wasm";\ninitSync({ module });\n${all}`,
    node: `${use}import { readFileSync } from "node:fs";\nimport { initSync } from "../lib/runtime.js";\ninitSync({ module: new WebAssembly.Module(readFileSync(new URL("./mrtr_bg.wasm", import.meta.url))) });\n${all}export { nodeListener } from "../lib/node.js";\n`,
    browser: `${use}import { load } from "../lib/runtime.js";\n${all}/** Loads the engine; call it once before anything else. */\nexport function init(source) {\n  return load(source ?? new URL("./mrtr_bg.wasm", import.meta.url));\n}\n`,
    // For hosts that hand over a compiled module themselves: initSync({ module }).
    bare: `${use}${all}`,
  };
  for (const [name, text] of Object.entries(entries)) writeFileSync(join(folder, `${name}.js`), text);
  const more = {
    workerd: "",
    node: 'export { nodeListener, type NodeOptions } from "../lib/node.js";\n',
    browser:
      "/** Loads the engine; call it once before anything else. Without an argument it fetches the file beside this one. */\n" +
      'export declare function init(source?: Parameters<typeof import("../lib/runtime.js").load>[0]): Promise<void>;\n',
    bare: "",
  };
  for (const [name, text] of Object.entries(more)) writeFileSync(join(folder, `${name}.d.ts`), all + text);
  const entry = (name) => ({ types: `./${role}/${name}.d.ts`, default: `./${role}/${name}.js` });
  const path = role === "full" ? "." : `./${role}`;
  exported[path] = { workerd: entry("workerd"), node: entry("node"), default: entry("browser") };
  const under = role === "full" ? "." : `./${role}`;
  exported[`${under}/bare`] = entry("bare");
  exported[`${under}/browser`] = entry("browser");
  // A compiler that resolves as bundlers do knows no condition `node`, and so no listener.
  exported[`${under}/node`] = entry("node");
  exported[`${under}/mrtr_bg.wasm`] = { types: `./${role}/mrtr_bg.wasm.d.ts`, default: `./${role}/mrtr_bg.wasm` };
}

const root = join(sources, "../..");
cpSync(join(root, "mrtr-wasm/README.md"), join(out, "README.md"));
// The README speaks of them, and whoever has the package has no clone.
cpSync(join(root, "mrtr-wasm/examples"), join(out, "examples"), { recursive: true });
for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) cpSync(join(root, name), join(out, name));
writeFileSync(
  join(out, "package.json"),
  `${JSON.stringify(
    {
      name: "mrtr",
      version,
      description: "Multi round-trip requests for the Model Context Protocol: servers that ask in mid-request, on edge workers, in Node and in the browser",
      license: "MIT OR Apache-2.0",
      type: "module",
      sideEffects: ["./*/node.js", "./*/workerd.js", "./*/browser.js", "./*/bare.js"],
      engines: { node: ">=20" },
      exports: { ...exported, "./package.json": "./package.json" },
      // npm takes `LICENSE` along unasked, but neither of these.
      files: ["lib", "examples", "LICENSE-*", ...Object.keys(roles)],
    },
    null,
    2,
  )}\n`,
);
