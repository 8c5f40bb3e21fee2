// The ledger's store in Durable Objects: one object an entry's name, so that entries spread, and each is linearizable.
//
// Not Workers KV: its reads may be a minute old and it has no compare-and-set, so that two copies of a retry would both
// find the state unused.
import { type LedgerStore, same } from "mrtr/server";

/** The parts of the runtime's types that are used here; a project with `@cloudflare/workers-types` has all of them. */
export interface LedgerNamespace {
  idFromName(name: string): unknown;
  get(id: unknown): { fetch(url: string, init: RequestInit): Promise<Response> };
}
interface State {
  storage: {
    get(key: string): Promise<Uint8Array | undefined>;
    put(key: string, value: Uint8Array): Promise<void>;
    deleteAll(): Promise<void>;
    setAlarm(at: number): Promise<void>;
  };
}

/** One entry. */
export class Ledger {
  constructor(private readonly state: State) {}

  async fetch(request: Request): Promise<Response> {
    if (request.method === "GET") return reply(200, await this.state.storage.get("entry"));
    const { expected, next, expires } = (await request.json()) as {
      expected: string | null;
      next: string | null;
      expires: number;
    };
    // From here to the put nobody else has a turn: an object delivers no other request while its storage works, and
    // nothing else is awaited.
    const current = await this.state.storage.get("entry");
    if (!same(current, decode(expected))) return reply(409, current);
    const bytes = decode(next);
    if (bytes === undefined) await this.state.storage.deleteAll();
    else {
      await this.state.storage.put("entry", bytes);
      await this.state.storage.setAlarm(expires);
    }
    return reply(204, undefined);
  }

  async alarm(): Promise<void> {
    await this.state.storage.deleteAll();
  }
}

/** The store that asks these objects. */
export function durableLedger(namespace: () => LedgerNamespace | undefined): LedgerStore {
  const entry = (key: string) => {
    const objects = namespace();
    if (objects === undefined) throw new Error("the binding LEDGER is missing");
    return objects.get(objects.idFromName(key));
  };
  return {
    async get(key) {
      return current(await entry(key).fetch("https://ledger/", { method: "GET" }));
    },
    async compareAndSet(key, expected, next, expires) {
      const body = JSON.stringify({ expected: encode(expected), next: encode(next), expires });
      const response = await entry(key).fetch("https://ledger/", { method: "PUT", body });
      return response.status === 409 ? { current: await current(response) } : true;
    },
  };
}

function reply(status: number, bytes: Uint8Array | undefined): Response {
  const headers = { "x-there": bytes === undefined ? "no" : "yes" };
  return new Response(status === 204 ? null : ((bytes ?? null) as BodyInit | null), { status, headers });
}

async function current(response: Response): Promise<Uint8Array | undefined> {
  if (response.status !== 200 && response.status !== 409) throw new Error(`the ledger answers ${response.status}`);
  return response.headers.get("x-there") === "yes" ? new Uint8Array(await response.arrayBuffer()) : undefined;
}

function encode(bytes: Uint8Array | undefined): string | null {
  return bytes === undefined ? null : btoa(String.fromCharCode(...bytes));
}

function decode(text: string | null): Uint8Array | undefined {
  return text === null ? undefined : Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
