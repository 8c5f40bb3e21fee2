// The ceiling of the machine and of the load generator: reads the body, and answers with constants that any server of this
// tool would send. No protocol, no state, nothing checked.
const headers = { "content-type": "application/json" };
const reply = (result) => (id) => `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`;
const form = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const asked = reply({
  resultType: "input_required",
  inputRequests: { name: { method: "elicitation/create", params: { mode: "form", message: "What is your name?", requestedSchema: form } } },
  requestState: "x".repeat(240),
});
const greeted = reply({ resultType: "complete", content: [{ type: "text", text: "Hello, Ada!" }] });

/** The text of a reply to the text of a request. */
export function canned(text) {
  const { id, params } = JSON.parse(text);
  return (params?.requestState === undefined ? asked : greeted)(id);
}

export default {
  fetch: async (request) => (request.method === "POST" ? new Response(canned(await request.text()), { headers }) : new Response(null, { status: 405 })),
};
