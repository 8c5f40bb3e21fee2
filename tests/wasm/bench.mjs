// Compares exchanges per second, in turns, so that what else the machine does meets both: `bench.mjs [node|workerd]`.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { KEY_TEXT, bundle, here, plainConfig, workerd } from "./lib.mjs";
import { load } from "./load.mjs";

async function onNode(which) {
  const child = spawn(process.execPath, [join(here, "bench.server.mjs"), which], { stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise((resolve) => child.stdout.once("data", (data) => resolve(String(data).trim())));
  return { url, pid: child.pid, stop: () => child.kill() };
}

const onWorkerd = (which) => workerd(bundle(join(here, `bench.worker.${which}.mjs`)), plainConfig, { env: { MRTR_KEYS: KEY_TEXT } });
const hosts = { node: onNode, workerd: onWorkerd };
/** `canned` does nothing: what it reaches is the ceiling of this machine, of its host and of the load generator. */
const kinds = ["mrtr", "sdk", "canned"];

/** Seconds of processor time that a process has used: of a machine that does other things too, the only steady figure. */
function used(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** How many times the SDK's processor time is ours, at least. Rates hang on what else the machine does: they are printed. */
const floors = { "node 1": 3, "node 32": 3, "workerd 1": 1.4, "workerd 32": 2 };
let wrong = 0;

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
const figures = {};
for (const host of process.argv.slice(2).length > 0 ? process.argv.slice(2) : ["node", "workerd"]) {
  const servers = {};
  for (const which of kinds) servers[which] = await hosts[host](which);
  try {
    for (const { url } of Object.values(servers)) await load(url, 4, 1_500);
    for (const connections of [1, 32]) {
      const rates = Object.fromEntries(kinds.map((which) => [which, []]));
      const work = Object.fromEntries(kinds.map((which) => [which, { seconds: 0, exchanges: 0 }]));
      for (let turn = 0; turn < 5; turn++) {
        for (const which of kinds) {
          const before = used(servers[which].pid);
          const { rate, exchanges } = await load(servers[which].url, connections, 1_500);
          rates[which].push(rate);
          work[which].seconds += used(servers[which].pid) - before;
          work[which].exchanges += exchanges;
        }
      }
      const [mrtr, sdk, canned] = kinds.map((which) => median(rates[which]));
      const [ours, theirs, nothing] = kinds.map((which) => (work[which].seconds / work[which].exchanges) * 1e6);
      figures[`${host} ${connections}`] = { mrtr, sdk, canned, ratio: mrtr / sdk, ceiling: canned / sdk, ours, theirs, nothing, work: theirs / ours };
      const round = (number) => number.toFixed(0);
      console.log(`${host}, ${connections} connection(s): mrtr ${round(mrtr)}/s, TypeScript SDK ${round(sdk)}/s, canned replies ${round(canned)}/s`);
      console.log(`    over the SDK: mrtr ${(mrtr / sdk).toFixed(2)}, of at most ${(canned / sdk).toFixed(2)}`);
      if (theirs / ours < floors[`${host} ${connections}`]) {
        console.log(`✗ ${host}, ${connections} connection(s): less than ${floors[`${host} ${connections}`]} times the SDK by processor time`);
        wrong++;
      }
      console.log(`    processor time an exchange: ${round(ours)} us, ${round(theirs)} us, ${round(nothing)} us; SDK over mrtr ${(theirs / ours).toFixed(2)}, of at most ${(theirs / nothing).toFixed(2)}`);
    }
  } finally {
    for (const server of Object.values(servers)) await server.stop();
  }
}
if (process.env.MRTR_BENCH_OUT) writeFileSync(process.env.MRTR_BENCH_OUT, JSON.stringify(figures));
process.exitCode = wrong === 0 ? 0 : 1;
