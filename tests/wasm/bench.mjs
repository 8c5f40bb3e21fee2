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

const hosts = {
  node: { mrtr: () => onNode("mrtr"), sdk: () => onNode("sdk") },
  workerd: {
    mrtr: () => workerd(bundle(join(here, "bench.worker.mrtr.mjs")), plainConfig, { env: { MRTR_KEYS: KEY_TEXT } }),
    sdk: () => workerd(bundle(join(here, "bench.worker.sdk.mjs")), plainConfig, { env: { MRTR_KEYS: KEY_TEXT } }),
  },
};

/** Seconds of processor time that a process has used: of a machine that does other things too, the only steady figure. */
function used(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
const figures = {};
for (const host of process.argv.slice(2).length > 0 ? process.argv.slice(2) : ["node", "workerd"]) {
  const servers = { mrtr: await hosts[host].mrtr(), sdk: await hosts[host].sdk() };
  try {
    for (const { url } of Object.values(servers)) await load(url, 4, 1_500);
    for (const connections of [1, 32]) {
      const rates = { mrtr: [], sdk: [] };
      const work = { mrtr: { seconds: 0, exchanges: 0 }, sdk: { seconds: 0, exchanges: 0 } };
      for (let turn = 0; turn < 5; turn++) {
        for (const which of ["mrtr", "sdk"]) {
          const before = used(servers[which].pid);
          const { rate, exchanges } = await load(servers[which].url, connections, 1_500);
          rates[which].push(rate);
          work[which].seconds += used(servers[which].pid) - before;
          work[which].exchanges += exchanges;
        }
      }
      const [mrtr, sdk] = [median(rates.mrtr), median(rates.sdk)];
      const [ours, theirs] = ["mrtr", "sdk"].map((which) => (work[which].seconds / work[which].exchanges) * 1e6);
      figures[`${host} ${connections}`] = { mrtr, sdk, ratio: mrtr / sdk, ours, theirs, work: theirs / ours };
      console.log(`${host}, ${connections} connection(s): mrtr ${mrtr.toFixed(0)}/s, TypeScript SDK ${sdk.toFixed(0)}/s, ratio ${(mrtr / sdk).toFixed(2)}`);
      console.log(`    processor time an exchange: ${ours.toFixed(0)} us, ${theirs.toFixed(0)} us, ratio ${(theirs / ours).toFixed(2)}`);
    }
  } finally {
    for (const server of Object.values(servers)) await server.stop();
  }
}
if (process.env.MRTR_BENCH_OUT) writeFileSync(process.env.MRTR_BENCH_OUT, JSON.stringify(figures));
