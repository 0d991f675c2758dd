// What was said, on the page: turns, thoughts, calls, results. Text of a model becomes text nodes and nothing else.

import { plural, pretty } from "./answer.js";
import { element } from "./dom.js";

export const NO_RESULT = "No result was given."; // what a call gets that nobody answers

export class Transcript {
  #root;
  #isAtEnd = true;

  constructor(root) {
    this.#root = root;
    root.addEventListener("scroll", () => this.#look());
    document.addEventListener("scroll", () => this.#look());
  }

  clear(welcome) {
    this.#root.replaceChildren(welcome);
  }

  question(text) {
    this.#add(element("article", { class: "turn user" }, speaker("You"), element("div", { class: "text" }, text)));
  }

  /** A turn that grows with its answer. */
  answer(model) {
    const turn = element("article", { class: "turn assistant", "aria-busy": "true" }, speaker(model));
    this.#add(turn);
    return new AnswerView(turn, () => this.#follow());
  }

  #add(turn) {
    this.#root.append(turn);
    this.#follow(true);
  }

  /** Keep the end in view, unless the reader has scrolled away from it. */
  #follow(always = false) {
    if (always) this.#isAtEnd = true;
    const box = this.#scroller();
    if (this.#isAtEnd) box.scrollTop = box.scrollHeight;
  }

  /** What scrolls: the conversation on a wide screen, the whole page on a narrow one. */
  #scroller() {
    return getComputedStyle(this.#root).overflowY === "visible" ? document.scrollingElement : this.#root;
  }

  #look() {
    const box = this.#scroller();
    this.#isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
  }
}

class AnswerView {
  #turn;
  #follow;
  #thought = null;
  #text = null;
  #calls = [];
  #waiting = element("div", { class: "answer text streaming" });

  constructor(turn, follow) {
    this.#turn = turn;
    this.#follow = follow;
    turn.append(this.#waiting);
  }

  /** Show what has come since the last time. */
  update(answer) {
    this.#waiting.remove();
    if (answer.thought) this.#growThought(answer);
    if (answer.text) {
      this.#text ??= new GrowingText(this.#append(element("div", { class: "answer text" })));
      this.#text.show(answer.text);
    }
    answer.calls.forEach((call, place) => {
      this.#calls[place] ??= new CallView(this.#append(element("section", { class: "call" })));
      this.#calls[place].show(call);
    });
    this.#mark(answer);
    this.#follow();
  }

  #growThought(answer) {
    if (this.#thought === null) {
      const text = element("div", { class: "text" });
      const summary = element("summary", {}, "Thought");
      this.#append(element("details", { class: "thought", open: "" }, summary, text));
      this.#thought = { text: new GrowingText(text), summary };
    }
    this.#thought.text.show(answer.thought);
    if (answer.thoughtEnd !== null) {
      const seconds = answer.thoughtEnd - answer.firstToken;
      this.#thought.summary.textContent = `Thought for ${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
    }
  }

  /** The cursor stands where the next text will be. */
  #mark(answer) {
    this.#thought?.text.mark(!answer.text && answer.calls.length === 0);
    this.#text?.mark(answer.calls.length === 0);
    this.#calls.forEach((view, place) => view.mark(place === this.#calls.length - 1));
  }

  /** The answer is over: `note` says how when it did not end by itself, `actions` are its buttons. */
  finish(answer, { note = "", error = "", actions = [] } = {}) {
    this.#waiting.remove();
    this.#turn.setAttribute("aria-busy", "false");
    this.#thought?.text.mark(false);
    this.#text?.mark(false);
    this.#calls.forEach((view, place) => view.finish(answer.calls[place]));
    if (error) this.#append(element("p", { class: "error", role: "alert" }, error));
    const figures = note ? [note] : answer.figures();
    this.#append(element("footer", { class: "figures" }, ...figures.map((text) => element("span", {}, text)), ...actions));
    this.#follow();
  }

  /** Ask for the results of the answer's whole calls. `send` is called with them, in order, when they are given. */
  askForResults(answer, send) {
    const asking = this.#calls.filter((_, place) => answer.isWhole(answer.calls[place]));
    const fields = asking.map((view) => view.askForResult());
    const values = () => fields.map((field) => field.value.trim());
    const button = element("button", { type: "submit", class: "primary" }, `Send ${fields.length > 1 ? "results" : "result"}`);
    const note = element("small", {}, `The model waits for ${plural(fields.length, "result")}.`);
    const form = element("form", { class: "results", onsubmit: (event) => { event.preventDefault(); send(values()); } }, button, note);
    const check = () => { button.disabled = values().includes(""); };
    fields.forEach((field) => {
      field.addEventListener("input", check);
      field.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing || values().includes("")) return;
        event.preventDefault();
        send(values());
      });
    });
    check();
    this.#turn.querySelector(".figures").before(form);
    fields[0].focus({ preventScroll: true });
    this.#follow();
    return {
      values,
      say: (text) => { note.textContent = text; },
      lock: (isLocked) => { for (const field of [...fields, button]) field.disabled = isLocked; },
      settle: () => { form.remove(); asking.forEach((view) => view.showResult()); },
    };
  }

  #append(child) {
    this.#turn.append(child);
    return child;
  }
}

class CallView {
  #box;
  #name = element("span", { class: "name" });
  #id = element("span", { class: "id" });
  #arguments = element("pre", { "aria-label": "Arguments" });
  #text = new GrowingText(this.#arguments);
  #field = null;

  constructor(box) {
    this.#box = box;
    box.append(element("header", {}, element("span", { class: "kind" }, "calls"), this.#name, this.#id), this.#arguments);
  }

  show(call) {
    this.#name.textContent = call.name;
    this.#id.textContent = call.id;
    this.#box.setAttribute("aria-label", `Call of ${call.name}`);
    this.#text.show(call.arguments);
  }

  mark(isLast) {
    this.#text.mark(isLast);
  }

  finish(call) {
    this.#text.mark(false);
    this.#arguments.textContent = pretty(call.arguments);
  }

  askForResult() {
    this.#field = element("textarea", { rows: "1", placeholder: '{"temperature": 18}', spellcheck: "false" });
    const label = element("label", {}, `Result of ${this.#name.textContent}`, this.#field);
    this.#box.append(element("div", { class: "result" }, label));
    return this.#field;
  }

  showResult() {
    const text = element("div", { class: "text" }, this.#field.value.trim() || NO_RESULT);
    this.#box.querySelector(".result").replaceChildren(element("span", { class: "label" }, "Result"), text);
  }
}

/** An element whose text only grows: each time the new end is added, whatever its length so far. */
class GrowingText {
  #box;
  #node = document.createTextNode("");

  constructor(box) {
    this.#box = box;
    box.append(this.#node);
  }

  show(text) {
    if (text.length > this.#node.length) this.#node.appendData(text.slice(this.#node.length));
  }

  mark(isStreaming) {
    this.#box.classList.toggle("streaming", isStreaming);
  }
}

function speaker(name) {
  return element("span", { class: "speaker" }, name);
}
