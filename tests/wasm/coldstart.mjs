// From nothing to the first answer: in workerd (process, module, instance, request), and what of it is the engine's.
import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import { createRequire } from "node:module";

import { KEY_TEXT, bundle, here, plainConfig, reply, request, workerd } from "./lib.mjs";

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

// The first request is the tool call: it finds no instance and no engine. Up to then is the process's own start.
async function first(folder, config) {
  const begun = performance.now();
  let sent, answered;
  const probe = async (url) => {
    sent = performance.now();
    answered = await reply(await fetch(url, request("tools/call", { name: "greet", arguments: { greeting: "Hello" } })));
  };
  const worker = await workerd(folder, config, { env: { MRTR_KEYS: KEY_TEXT }, probe, pause: 1 });
  const took = [sent - begun, performance.now() - sent];
  await worker.stop();
  if (answered.result?.resultType !== "input_required") throw new Error(JSON.stringify(answered));
  return took;
}

for (const [name, file] of [["this package", "bench.worker.mrtr.mjs"], ["TypeScript SDK", "bench.worker.sdk.mjs"]]) {
  const times = [];
  for (let turn = 0; turn < 5; turn++) times.push(await first(bundle(join(here, file)), plainConfig));
  const [up, answer] = [0, 1].map((which) => median(times.map((time) => time[which])));
  console.log(`workerd, ${name}: listening after ${up.toFixed(0)} ms, its first answer (instance, engine, tool call) ${answer.toFixed(1)} ms later`);
}

// The parts of it that are ours, in a fresh Node each time.
const folder = join(dirname(createRequire(import.meta.url).resolve("mrtr/package.json")), "server");
const script = `
import { readFileSync } from "node:fs";
import { instantiate } from ${JSON.stringify(join(folder, "glue.js"))};
const bytes = readFileSync(${JSON.stringify(join(folder, "mrtr_bg.wasm"))});
let at = performance.now();
const module = new WebAssembly.Module(bytes);
const compiled = performance.now() - at;
at = performance.now();
const glue = instantiate(module);
new glue.Engine('{"name":"t","version":"1"}', Uint8Array.from([32, ...new Uint8Array(32)])).free();
console.log(compiled, performance.now() - at);
`;
const parts = Array.from({ length: 5 }, () =>
  execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }).split(" ").map(Number),
);
console.log(`Node: compiling ${median(parts.map(([one]) => one)).toFixed(1)} ms, instance and server ${median(parts.map(([, two]) => two)).toFixed(1)} ms`);
