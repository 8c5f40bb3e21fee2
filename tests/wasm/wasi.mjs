// Runs a test binary for wasm32-wasip1 in Node: `wasi.mjs PROGRAM.wasm ARGUMENTS…`. By `wasi`, its neighbour.
import { readFileSync } from "node:fs";
import { WASI } from "node:wasi";

// Where cargo runs it: the folder of the package, under its own name. What is below `/` alone is not found.
const here = process.cwd();
const [program, ...args] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args: [program, ...args], env: process.env, preopens: { [here]: here } });
const instance = await WebAssembly.instantiate(new WebAssembly.Module(readFileSync(program)), wasi.getImportObject());
// At once: what Node does at its end is not needed, and not always survived.
process.reallyExit(wasi.start(instance));
