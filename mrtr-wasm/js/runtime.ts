/** The WebAssembly module, its instance, and what happens when that breaks. */
import type { Glue } from "./glue.js";
import { ConfigError } from "./errors.js";

export type { Glue } from "./glue.js";

/** `WebAssembly.Module` where the compiler knows it: Node's types do not, without those of the browser. */
export type WasmModule = typeof globalThis extends { WebAssembly: { Module: { prototype: infer M } } } ? M : object;

let make: ((module: WasmModule) => Glue) | undefined;
let complete = false;
let module: WasmModule | undefined;
let instance: Glue | undefined;
let loading: Promise<void> | undefined;

/** @internal Called by each entry with the glue that goes with its module. Who imports both has the one with both roles. */
export function use(instantiate: (module: WasmModule) => Glue, both: boolean): void {
  if (make !== undefined && (complete || !both)) return;
  if (instance !== undefined) throw new ConfigError("import the entry with both roles before you use the server's");
  make = instantiate;
  module = undefined;
  complete = both;
}

/**
 * Starts the engine from a compiled module: what a worker imports as `./mrtr_bg.wasm`. The entries for Node and for
 * workers have done it already.
 */
export function initSync(options: { module: WasmModule }): void {
  module ??= options.module;
}

/**
 * Loads the engine in a browser. Without an argument it fetches the file beside this one; bundlers put it there. Calling
 * it again does nothing.
 */
export function load(source: URL | string | Request | ArrayBuffer | ArrayBufferView | WasmModule | Promise<Response>): Promise<void> {
  return (loading ??= compile(source).then(
    (compiled) => initSync({ module: compiled }),
    (error: unknown) => {
      loading = undefined;
      throw error;
    },
  ));
}

async function compile(source: Parameters<typeof load>[0]): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source as BufferSource);
  const response = await (source instanceof Promise ? source : fetch(source));
  if (!response.ok) throw new ConfigError(`the engine could not be fetched: ${response.status} ${response.url}`);
  const type = response.headers.get("content-type");
  // Servers of single pages give theirs for whatever is not there.
  if (type?.startsWith("text/html")) throw new ConfigError(`the engine could not be fetched: ${response.url} is a page`);
  if (type?.startsWith("application/wasm")) {
    return WebAssembly.compileStreaming(response);
  }
  return WebAssembly.compile(await response.arrayBuffer());
}

/** @internal Whether an engine can be had now. */
export function isLoaded(): boolean {
  return module !== undefined && make !== undefined;
}

/** @internal The instance that lives now. */
export function glue(): Glue {
  if (instance === undefined) {
    if (module === undefined || make === undefined) {
      throw new ConfigError("the engine is not loaded: await init() first");
    }
    instance = make(module);
  }
  return instance;
}

/**
 * @internal Whether an error is a trap. Its instance is not used again: what it was about to change may be half done.
 */
export function trapped(error: unknown, dead: Glue): boolean {
  if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) return false;
  if (instance === dead) instance = undefined;
  return true;
}
