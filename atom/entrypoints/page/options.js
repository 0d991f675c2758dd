// The options beside the conversation: what they say, and whether it can be sent.

import { byId, element } from "./dom.js";

export class Options {
  constructor() {
    byId("tools").addEventListener("input", () => this.#showTools());
    byId("key").value = sessionStorage.getItem("key") ?? "";
    byId("key").addEventListener("input", () => sessionStorage.setItem("key", byId("key").value));
    for (const id of ["temperature", "max-tokens"]) {
      byId(id).addEventListener("input", (event) => mark(event.target, !event.target.validity.valid));
    }
  }

  get key() {
    return byId("key").value.trim();
  }

  /** Show the field for a key, and go there. */
  askForKey() {
    const panel = byId("key-panel");
    if (panel.hidden) {
      panel.hidden = false;
      panel.open = true;
      byId("key").focus();
    }
  }

  /** Offer only what the served model has. */
  offer(chat) {
    byId("thinking-field").hidden = !chat.thinking_switch;
    byId("tools-panel").hidden = !chat.tool_call_format;
    const effort = byId("effort");
    byId("effort-field").hidden = chat.reasoning_efforts.length === 0;
    effort.replaceChildren(effort.options[0], ...chat.reasoning_efforts.map((level) => element("option", {}, level)));
  }

  setTools(tools) {
    byId("tools").value = tools.length ? JSON.stringify(tools, null, 2) : "";
    this.#showTools();
  }

  setThinking(value) {
    if (!byId("thinking-field").hidden) byId("thinking").value = value;
  }

  /** The fields of a request that the options stand for. Throws an Error that says what is wrong with them. */
  fields() {
    const fields = {};
    for (const [id, name] of [["temperature", "temperature"], ["max-tokens", "max_tokens"]]) {
      const field = byId(id);
      if (!field.validity.valid) throw new Error(`${name}: ${field.validationMessage}`);
      if (field.value !== "") fields[name] = Number(field.value);
    }
    const thinking = byId("thinking-field").hidden ? "" : byId("thinking").value;
    if (thinking) fields.chat_template_kwargs = { enable_thinking: thinking === "on" };
    if (!byId("effort-field").hidden && byId("effort").value) fields.reasoning_effort = byId("effort").value;
    const tools = byId("tools-panel").hidden ? [] : readTools();
    if (tools.length) fields.tools = tools;
    return fields;
  }

  get systemPrompt() {
    return byId("system").value.trim();
  }

  #showTools() {
    let problem = "";
    let count = "";
    try {
      count = readTools().length || "";
    } catch (error) {
      problem = error.message;
    }
    byId("tools-problem").textContent = problem;
    byId("tools-count").textContent = count;
    mark(byId("tools"), problem !== "");
  }
}

/** The tools in the editor. Throws an Error that says what is wrong. */
function readTools() {
  const text = byId("tools").value.trim();
  if (!text) return [];
  let tools;
  try {
    tools = JSON.parse(text);
  } catch (error) {
    throw new Error(`Tools are no JSON: ${error.message}`);
  }
  if (!Array.isArray(tools)) throw new Error("Tools must be a JSON list.");
  for (const [place, tool] of tools.entries()) {
    if (!tool?.function?.name) throw new Error(`Tool ${place + 1} has no function.name.`);
  }
  return tools;
}

function mark(field, isWrong) {
  field.setAttribute("aria-invalid", String(isWrong));
}
