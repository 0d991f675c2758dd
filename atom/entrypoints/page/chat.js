// The conversation: what was said so far, and the one answer that may be on its way.

import { Answer } from "./answer.js";
import { streamChat } from "./api.js";
import { copyText, curlCommand } from "./curl.js";
import { element } from "./dom.js";
import { NO_RESULT } from "./transcript.js";

export class Chat {
  #messages = [];
  #abort = null;
  #pending = null; // calls that wait for results: {calls, form}

  /** `onChange`: called when an answer begins or ends. `onLocked`: when a key is missing or wrong. */
  constructor({ transcript, options, onChange, onLocked }) {
    this.transcript = transcript;
    this.options = options;
    this.onChange = onChange;
    this.onLocked = onLocked;
  }

  get isRunning() {
    return this.#abort !== null;
  }

  /** End the answer that is on its way; what has come of it stays in the conversation. */
  stop() {
    this.#abort?.abort();
  }

  clear() {
    this.stop();
    this.#messages = [];
    this.#pending = null;
  }

  /** Say something; `fields`: the options. Resolves to false when it did not become part of the conversation. */
  async ask(text, fields) {
    const pending = this.#pending;
    const results = pending ? resultsOf(pending.calls, pending.form.values()) : [];
    pending?.form.settle();
    this.#pending = null;
    this.#messages.push(...results);
    this.transcript.question(text);
    return this.#run([{ role: "user", content: text }], fields);
  }

  /** Give the results of the calls that wait. They stay open when the request fails. */
  async #giveResults(values, pending) {
    if (this.isRunning) return;
    let fields;
    try {
      fields = this.options.fields();
    } catch (error) {
      pending.form.say(error.message);
      return;
    }
    pending.form.lock(true);
    this.#pending = null;
    if (await this.#run(resultsOf(pending.calls, values), fields)) {
      pending.form.settle();
    } else {
      pending.form.lock(false);
      this.#pending = pending;
    }
  }

  /** Send the conversation with `added`, and take the answer in. Nothing of it is kept when it fails. */
  async #run(added, fields) {
    const system = this.options.systemPrompt;
    const messages = [...(system ? [{ role: "system", content: system }] : []), ...this.#messages, ...added];
    const request = { messages, ...fields, stream: true, stream_options: { include_usage: true } };
    const kept = this.#messages;
    const view = this.transcript.answer("Model");
    const answer = new Answer();
    const outcome = await this.#stream(request, answer, view);
    this.onChange();
    if (this.#messages !== kept) return true; // a new chat was begun meanwhile, and all of this one is gone
    const message = outcome.error ? null : answer.message();
    if (message) this.#messages.push(...added, message);
    view.finish(answer, { ...outcome, actions: [this.#curlButton(request)] });
    if (message?.tool_calls) {
      // Nobody wants the calls of an answer that was stopped; but templates want a result for each.
      if (outcome.note) this.#messages.push(...resultsOf(message.tool_calls, []));
      else this.#askForResults(view, answer, message.tool_calls);
    }
    return message !== null;
  }

  async #stream(request, answer, view) {
    const abort = (this.#abort = new AbortController());
    this.onChange();
    try {
      for await (const chunk of streamChat(request, this.options.key, abort.signal)) {
        answer.apply(chunk);
        if (answer.firstToken !== null) view.update(answer);
      }
      return {};
    } catch (error) {
      if (abort.signal.aborted) return { note: "stopped" };
      if (error.status === 401) this.onLocked();
      return { error: error.message, note: "not part of the conversation" };
    } finally {
      if (this.#abort === abort) this.#abort = null;
    }
  }

  #askForResults(view, answer, calls) {
    const pending = { calls, form: null };
    pending.form = view.askForResults(answer, (values) => this.#giveResults(values, pending));
    this.#pending = pending;
  }

  #curlButton(request) {
    const url = new URL("v1/chat/completions", document.baseURI).href;
    const button = element("button", { type: "button", class: "link copy" }, "Copy as curl");
    button.addEventListener("click", async () => {
      const isCopied = await copyText(curlCommand(url, request, this.options.key !== ""));
      button.textContent = isCopied ? "Copied" : "The browser refused";
      setTimeout(() => { button.textContent = "Copy as curl"; }, 1500);
    });
    return button;
  }
}

function resultsOf(calls, values) {
  return calls.map((call, place) => ({ role: "tool", tool_call_id: call.id, content: values[place] || NO_RESULT }));
}
