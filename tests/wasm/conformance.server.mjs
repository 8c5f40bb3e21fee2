// Runs the conformance worker in workerd, prints its url and stays until it is stopped.
import { join } from "node:path";

import { KEY_TEXT, bundle, here, plainConfig, workerd } from "./lib.mjs";

const worker = await workerd(bundle(join(here, "conformance.worker.mjs")), plainConfig, { env: { MRTR_KEYS: KEY_TEXT } });
console.log(worker.url);
const stop = async () => {
  await worker.stop();
  process.exit(0);
};
process.on("SIGTERM", stop);
process.on("SIGINT", stop);
setInterval(() => {}, 60_000);
