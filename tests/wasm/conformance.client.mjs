// What the official conformance suite asks of a client: `conformance.client.mjs URL`, with the scenario's name in
// MCP_CONFORMANCE_SCENARIO and, for some, data in MCP_CONFORMANCE_CONTEXT.
import { McpClient } from "mrtr";

const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const client = new McpClient(process.argv[2], {
  name: "mrtr-conformance-client",
  version: "1.0.0",
  capabilities: { elicitation: { form: {} } },
});

/** Arguments with something for every required property. */
function sample({ inputSchema: { required = [], properties = {} } }) {
  const values = { integer: 1, number: 1, boolean: true, array: [], object: {} };
  return Object.fromEntries(required.map((name) => [name, values[properties[name]?.type] ?? "x"]));
}

switch (scenario) {
  case "tools_call":
    await client.listTools();
    await client.callTool("add_numbers", { a: 5, b: 3 });
    break;
  case "sep-2322-client-request-state": {
    await client.listTools();
    const elicit = async () => {
      // A call between the rounds carries nothing of this one.
      await client.callTool("test_mrtr_unrelated");
      return { action: "accept", content: { confirmed: true } };
    };
    for (const name of ["test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"]) {
      await client.callTool(name, {}, { elicit });
    }
    break;
  }
  case "http-standard-headers": {
    for (const tool of await client.listTools()) await client.callTool(tool.name, sample(tool));
    for (const { uri } of (await client.request("resources/list")).resources) await client.readResource(uri);
    for (const { name } of (await client.request("prompts/list")).prompts) await client.getPrompt(name);
    break;
  }
  case "http-custom-headers":
    await client.listTools();
    for (const { name, arguments: args } of context.toolCalls ?? []) await client.callTool(name, args);
    break;
  case "http-invalid-tool-headers":
    for (const tool of await client.listTools()) await client.callTool(tool.name, sample(tool));
    break;
  case "json-schema-2020-12-preservation": {
    const tool = (await client.listTools()).find(({ name }) => name === "json_schema_2020_12_tool");
    await client.callTool("json_schema_echo", { schema: tool.inputSchema });
    break;
  }
  default:
    await client.request("server/discover");
    await client.listTools();
}
