// The TypeScript SDK as a client: `client.mjs http URL | stdio CMD...`.
//
// Calls `plan`, answers what it knows, and exits with 0 only on the right text after exactly two questions.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

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

function transport([kind, target, ...args]) {
  if (kind === 'http' && target) return new StreamableHTTPClientTransport(new URL(target));
  if (kind === 'stdio' && target) return new StdioClientTransport({ command: target, args });
  console.error('usage: client.mjs http URL | stdio CMD...');
  process.exit(2);
}

const client = new Client(
  { name: 'typescript-peer', version: '0' },
  { versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: { form: {} } } },
);
client.setRequestHandler('elicitation/create', async request => answer(request));
await client.connect(transport(process.argv.slice(2)));
const result = await client.callTool({ name: 'plan', arguments: { city: 'Lisbon' } });
const text = result.content?.[0]?.text;
console.log(JSON.stringify({ text, questions: asked, version: client.getNegotiatedProtocolVersion() }));
await client.close();
process.exit(text === 'Lisbon, 3 days, slow' && asked.join() === 'days,pace' ? 0 : 1);
