// Runs a test binary for wasm32-wasip1 in Node: `wasi.mjs PROGRAM.wasm ARGUMENTS…`. For cargo's `runner`.
import { readFileSync } from "node:fs";
import { WASI } from "node:wasi";

const [program, ...args] = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args: [program, ...args], env: process.env, preopens: { "/": "/", ".": process.cwd() } });
const instance = await WebAssembly.instantiate(new WebAssembly.Module(readFileSync(program)), wasi.getImportObject());
process.exitCode = wasi.start(instance);
