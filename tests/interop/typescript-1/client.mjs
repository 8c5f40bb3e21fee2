// The TypeScript SDK 1.x as a client: `client.mjs http URL | stdio CMD...`.
//
// Calls `plan`, answers what it knows while the call is open, and exits with 0 only on the right text after exactly two
// questions. Over HTTP it ends its session, and then wants the server not to know it any more.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const asked = [];

// The pace is told only to a server that has understood the first answer.
function answer({ params }) {
  const properties = params.requestedSchema?.properties ?? {};
  if ('days' in properties) {
    asked.push('days');
    return { action: 'accept', content: { days: 3 } };
  }
  if ('pace' in properties) {
    asked.push('pace');
    if (params.message.includes('3')) return { action: 'accept', content: { pace: 'slow' } };
  } else {
    asked.push('unknown');
  }
  return { action: 'decline' };
}

function open([kind, target, ...args]) {
  if (kind === 'http' && target) return new StreamableHTTPClientTransport(new URL(target));
  if (kind === 'stdio' && target) return new StdioClientTransport({ command: target, args });
  console.error('usage: client.mjs http URL | stdio CMD...');
  process.exit(2);
}

// The SDK tells the revision only to its transport.
let version;
const transport = open(process.argv.slice(2));
const inherited = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = settled => {
  version = settled;
  inherited?.(settled);
};

const client = new Client({ name: 'typescript-1-peer', version: '0' }, { capabilities: { elicitation: { form: {} } } });
client.setRequestHandler(ElicitRequestSchema, async request => answer(request));
await client.connect(transport);
const result = await client.callTool({ name: 'plan', arguments: { city: 'Lisbon' } });
const text = result.content?.[0]?.text;
let gone = true;
if (transport instanceof StreamableHTTPClientTransport) {
  const headers = { 'Mcp-Session-Id': transport.sessionId, 'MCP-Protocol-Version': version };
  await transport.terminateSession();
  const late = await fetch(process.argv[3], { method: 'DELETE', headers });
  gone = late.status === 404;
}
console.log(JSON.stringify({ text, questions: asked, version }));
await client.close();
process.exit(gone && text === 'Lisbon, 3 days, slow' && asked.join() === 'days,pace' ? 0 : 1);
