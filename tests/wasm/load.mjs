// Exchanges per second of one server: `load(url, connections, ms)`. An exchange is a request, its question, the retry.
import { Agent, request as send } from "node:http";

import { request } from "./lib.mjs";

function post(agent, url, init) {
  return new Promise((resolve, reject) => {
    const out = send(url, { method: "POST", headers: { ...init.headers, "content-length": Buffer.byteLength(init.body) }, agent }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => resolve(Buffer.concat(chunks).toString()));
      response.on("error", reject);
    });
    out.on("error", reject);
    out.end(init.body);
  });
}

const STATE = /"requestState":("[^"]*")/;

async function exchange(agent, url) {
  const call = { name: "greet", arguments: { greeting: "Hello" } };
  const asked = STATE.exec(await post(agent, url, request("tools/call", call)));
  if (asked === null) throw new Error("not asked");
  const retry = { ...call, requestState: JSON.parse(asked[1]), inputResponses: { name: { action: "accept", content: { name: "Ada" } } } };
  const text = await post(agent, url, request("tools/call", retry));
  if (!text.includes("Hello, Ada!")) throw new Error(`not greeted: ${text}`);
}

export async function load(url, connections, ms, exchanges = Infinity) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const end = performance.now() + ms;
  let done = 0;
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (performance.now() < end && done < exchanges) {
        await exchange(agent, url);
        done++;
      }
    }),
  );
  agent.destroy();
  return { exchanges: done, rate: done / ((performance.now() - begun) / 1000) };
}
