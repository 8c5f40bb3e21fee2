// The TypeScript SDK as a server: `server.mjs http | stdio`.
//
// Tool `plan` asks for the days, then, naming them, for the pace. `http` listens on a free loopback port and prints the URL.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';

import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, acceptedContent, createMcpHandler, createRequestStateCodec, inputRequired } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod/v4';

const codec = createRequestStateCodec({ key: randomBytes(32) });

const question = {
  days: ({ city }) => ({ message: `How many days in ${city}?`, schema: { type: 'integer' } }),
  pace: ({ days }) => ({
    message: `At which pace do you want to spend ${days} days?`,
    schema: { type: 'string', enum: ['slow', 'fast'] },
  }),
};

async function ask(key, trip) {
  const { message, schema } = question[key](trip);
  const requestedSchema = { type: 'object', properties: { [key]: schema }, required: [key] };
  return inputRequired({
    inputRequests: { [key]: inputRequired.elicit({ message, requestedSchema }) },
    requestState: await codec.mint(trip),
  });
}

async function plan({ city }, ctx) {
  const answered = key => acceptedContent(ctx.mcpReq.inputResponses, key)?.[key];
  const trip = ctx.mcpReq.requestState() ?? { city };
  trip.days ??= answered('days');
  if (trip.days === undefined) return ask('days', trip);
  const pace = answered('pace');
  if (pace === undefined) return ask('pace', trip);
  return { content: [{ type: 'text', text: `${trip.city}, ${trip.days} days, ${pace}` }] };
}

// The SDK wants a fresh server for each request.
function build() {
  const server = new McpServer(
    { name: 'typescript-peer', version: '0' },
    { capabilities: { tools: {} }, requestState: { verify: codec.verify } },
  );
  server.registerTool('plan', { description: 'Plans a trip, asking twice', inputSchema: z.object({ city: z.string() }) }, plan);
  return server;
}

const transport = process.argv[2];
if (transport === 'stdio') {
  serveStdio(build);
} else if (transport === 'http') {
  const server = createServer(toNodeHandler(createMcpHandler(build)));
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
} else {
  console.error('usage: server.mjs http | stdio');
  process.exit(2);
}
