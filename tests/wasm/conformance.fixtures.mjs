// The fixtures that the official conformance suite asks a server for.
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQI12P4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC";
const WAV = "UklGRiUAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const text = (text) => ({ type: "text", text });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const form = (message, name, type = "string") => ({ message, schema: { type: "object", properties: { [name]: { type } }, required: [name] } });
const sampling = (prompt, maxTokens) => ({ messages: [{ role: "user", content: text(prompt) }], maxTokens });
const said = (sampled) => sampled.content?.text ?? "";
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export function offer(server) {
  const tool = (name, handler, more = {}) => server.tool(name, { description: name, ...more }, handler);
  tool("test_simple_text", () => "This is a simple text response for testing.");
  tool("test_image_content", () => ({ content: [image] }));
  tool("test_audio_content", () => ({ content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }] }));
  const embedded = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
  tool("test_embedded_resource", () => ({ content: [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")] }));
  tool("test_multiple_content_types", () => ({
    content: [text("Multiple content types test:"), image, embedded("test://mixed-content-resource", "application/json", '{"test":"data"}')],
  }));
  tool("test_error_handling", () => ({ content: [text("This tool intentionally returns an error for testing")], isError: true }));
  tool("test_tool_with_progress", async (ctx) => {
    for (const step of [0, 50, 100]) {
      ctx.progress(step, 100, "working");
      await pause(50);
    }
    return "Progress was reported.";
  });
  tool("test_logging_tool", (ctx) => {
    ctx.log("info", "begun");
    ctx.log("warning", "almost over");
    return "It was logged, if anybody wanted to know.";
  });
  tool("test_missing_capability", async (ctx) => said(await ctx.sample("say", sampling("Say something.", 20))), { requires: ["sampling"] });
  tool("test_trigger_tool_change", () => (server.notify("tools"), "The tools have changed."));
  tool("test_trigger_prompt_change", () => (server.notify("prompts"), "The prompts have changed."));
  tool("json_schema_2020_12_tool", (_, args) => JSON.stringify(args), {
    inputSchema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: { address: { $anchor: "addressDef", type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
      properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" }, contactMethod: { type: "string", enum: ["phone", "email"] }, phone: { type: "string" }, email: { type: "string" } },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    },
  });
  tool("test_header_parameter", (_, args) => JSON.stringify(args), {
    inputSchema: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
  });

  const askName = async (ctx) => {
    const answer = await ctx.elicit("user_name", form("What is your name?", "name"));
    return answer.action === "accept" ? `Hello, ${answer.content.name}!` : "Hello, whoever you are!";
  };
  const confirm = async (ctx) => {
    const answer = await ctx.elicit("confirm", form("Please confirm", "ok", "boolean"));
    return `state-ok: ${answer.action === "accept" ? (answer.content.ok ? "confirmed" : "refused") : "not answered"}`;
  };
  tool("test_input_required_result_elicitation", askName);
  tool("test_streaming_elicitation", (ctx) => (ctx.progress(1), askName(ctx)));
  tool("test_input_required_result_sampling", async (ctx) => said(await ctx.sample("capital_question", sampling("What is the capital of France?", 100))));
  tool("test_input_required_result_list_roots", async (ctx) => `${(await ctx.roots("client_roots")).length} roots`);
  tool("test_input_required_result_request_state", confirm);
  tool("test_input_required_result_tampered_state", confirm);
  tool("test_input_required_result_multiple_inputs", async (ctx) => {
    const [name, greeting, roots] = await Promise.all([
      ctx.elicit("user_name", form("What is your name?", "name")),
      ctx.sample("greeting", sampling("Write a greeting.", 50)),
      ctx.roots("client_roots"),
    ]);
    return `${said(greeting)} ${name.content?.name ?? "nobody"}, ${roots.length} roots`;
  });
  tool("test_input_required_result_multi_round", async (ctx) => {
    const name = await ctx.elicit("step1", form("What is your name?", "name"));
    const color = await ctx.elicit("step2", form("What is your favorite color?", "color"));
    if (name.action !== "accept" || color.action !== "accept") return "Not everything was answered.";
    return `${name.content.name} likes ${color.content.color}.`;
  });
  tool("test_input_required_result_capabilities", async (ctx) => {
    const [name, greeting] = await Promise.all([
      ctx.elicit("user_name", form("What is your name?", "name"), { optional: true }),
      ctx.sample("greeting", sampling("Write a greeting.", 50), { optional: true }),
    ]);
    return `name: ${name.action !== "unavailable"}, greeting: ${greeting !== undefined}`;
  });

  server.resource("test://static-text", { name: "static-text", description: "A text.", mimeType: "text/plain" }, () => "This is the content of the static text resource.");
  server.resource("test://static-binary", { name: "static-binary", description: "An image.", mimeType: "image/png" }, (ctx) => ({
    contents: [{ uri: ctx.target, mimeType: "image/png", blob: PNG }],
  }));
  server.resourceTemplate("test://template/{id}/data", { name: "template", mimeType: "application/json" }, (ctx) => {
    const id = ctx.part("id");
    const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
    return { contents: [{ uri: ctx.target, mimeType: "application/json", text }] };
  });

  const user = (content) => ({ role: "user", content });
  server.prompt("test_simple_prompt", { description: "A text." }, () => "This is a simple prompt for testing.");
  server.prompt(
    "test_prompt_with_arguments",
    { description: "Two arguments.", arguments: [{ name: "arg1", required: true, completions: ["test", "testing"] }, { name: "arg2", required: true }] },
    (_, { arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  );
  server.prompt("test_prompt_with_embedded_resource", { description: "A resource.", arguments: [{ name: "resourceUri", required: true }] }, (_, { resourceUri }) => ({
    messages: [user(embedded(resourceUri, "text/plain", "Embedded resource content for testing.")), user(text("Please process the embedded resource above."))],
  }));
  server.prompt("test_prompt_with_image", { description: "An image." }, () => ({ messages: [user(image), user(text("Please analyze the image above."))] }));
  server.prompt("test_input_required_result_prompt", { description: "Asks for a context first." }, async (ctx) => {
    const answer = await ctx.elicit("user_context", form("What context should the prompt use?", "context"));
    return `Use this context: ${answer.action === "accept" ? answer.content.context : "none"}`;
  });
  return server;
}
