import { McpServer, anonymous } from "mrtr/server";

import { offer } from "./conformance.fixtures.mjs";

const server = offer(
  new McpServer({
    name: "mrtr-conformance-worker",
    version: "1.0.0",
    keys: (env) => [env.MRTR_KEYS],
    // What a page of another origin may not do is tried by the suite.
    loopback: true,
    changes: true,
    cache: { ttlMs: 60_000, public: true },
  }),
);
export default { fetch: (request, env) => server.fetch(request, { principal: anonymous, env }) };
