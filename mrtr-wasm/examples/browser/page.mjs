// A page that hosts an MCP client: it calls tools, and shows their questions as forms.
import { McpClient, McpError, init } from "mrtr";

import { fields } from "./form.mjs";

const find = (id) => document.getElementById(id);
const dialog = find("question");
let client;
let tools = [];
let form;

await init();
find("url").value = new URLSearchParams(location.search).get("server") ?? "http://127.0.0.1:3000/mcp";

find("connect").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    client = new McpClient(find("url").value, { name: "mrtr-browser-example", title: "Tools that ask", version: "1.0.0" });
    tools = await client.listTools();
    find("tool").replaceChildren(...tools.map(({ name, title }) => new Option(title ?? name, name)));
    find("tools").hidden = false;
    choose();
    find("tool").focus();
  } catch (error) {
    show(error);
  }
});

find("tool").addEventListener("change", choose);

function choose() {
  const tool = tools.find(({ name }) => name === find("tool").value);
  find("about").textContent = tool?.description ?? "";
  form = fields(find("arguments"), { properties: {}, ...tool?.inputSchema });
}

find("call").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!form.check()) return;
  find("history").replaceChildren();
  find("result").textContent = "Calling …";
  try {
    const result = await client.callTool(find("tool").value, form.content(), { elicit: ask });
    find("result").textContent = result.content.map((block) => block.text ?? `(${block.type})`).join("\n");
  } catch (error) {
    show(error);
  }
  find("tool").focus();
});

function show(error) {
  find("result").textContent = error instanceof McpError ? `The server says: ${error.message}` : `${error.name}: ${error.message}`;
}

/** Shows one question and waits for what the person does: answer, decline, or dismiss it (Escape does that too). */
function ask(question) {
  const isUrl = question.kind === "url";
  // What a server says of itself is a claim, and what it asks for is said by whom (R-122).
  find("claim").textContent = `${question.server ? `“${question.server}”` : "The server"} (${new URL(client.url).host}) asks:`;
  find("question-title").textContent = question.params.message;
  find("problem").textContent = question.problem ?? "";
  find("accept").textContent = isUrl ? (question.before === "accept" ? "I am done" : "Open the page") : "Send";
  let shown;
  // Nothing but a page of the web is opened: `javascript:` would run as if it were ours.
  const strange = isUrl && !/^https?:\/\//i.test(question.params.url);
  find("accept").hidden = strange;
  if (strange) find("problem").textContent = "This is no address of a web page, and is not opened.";
  if (isUrl) {
    const url = document.createElement("p");
    url.className = "url";
    url.textContent = question.params.url;
    find("fields").replaceChildren(url);
  } else shown = fields(find("fields"), question.params.requestedSchema);
  dialog.showModal();
  if (shown === undefined || Object.keys(question.params.requestedSchema.properties).length === 0) find("accept").focus();
  else shown.focus();
  return new Promise((resolve) => {
    const listening = new AbortController();
    const answer = (given) => {
      listening.abort();
      dialog.close();
      const item = document.createElement("li");
      item.textContent = `${question.params.message} – ${{ accept: "answered", decline: "declined", cancel: "dismissed" }[given.action]}`;
      find("history").append(item);
      resolve(given);
    };
    const on = (target, event, hear) => target.addEventListener(event, hear, { signal: listening.signal });
    on(dialog.querySelector("form"), "submit", (event) => {
      event.preventDefault();
      if (strange || (shown !== undefined && !shown.check())) return;
      // Opened only now, with the person's consent (R-141); not again if it was (G-32).
      if (isUrl && question.before !== "accept") window.open(question.params.url, "_blank", "noopener,noreferrer");
      answer(isUrl ? { action: "accept" } : { action: "accept", content: shown.content() });
    });
    on(find("decline"), "click", () => answer({ action: "decline" }));
    on(find("cancel"), "click", () => answer({ action: "cancel" }));
    on(dialog, "cancel", (event) => {
      event.preventDefault();
      answer({ action: "cancel" });
    });
  });
}
