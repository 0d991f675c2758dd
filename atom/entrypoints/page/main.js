// Where the page's parts meet: fields, buttons, keys of the keyboard.

import { get } from "./api.js";
import { Chat } from "./chat.js";
import { byId, element } from "./dom.js";
import { EXAMPLES, WEATHER } from "./examples.js";
import { Options } from "./options.js";
import { Status } from "./status.js";
import { Transcript } from "./transcript.js";

const options = new Options();
const transcript = new Transcript(byId("transcript"));
// These leave the document when the first question is asked.
const [welcome, welcomeText, examples] = ["welcome", "welcome-text", "examples"].map(byId);
const question = byId("question");
const chat = new Chat({ transcript, options, onChange: showRunning, onLocked: askForKey });
let offered = "";

const status = new Status({ key: () => options.key, onServed: offer, onLocked: askForKey });
status.refresh();

function askForKey() {
  if (offered === "") welcomeText.textContent = "This server needs a key; there is a field for it.";
  options.askForKey();
}

/** Fit the page to what is served; again only when that has changed. */
function offer(served) {
  const text = JSON.stringify(served.chat);
  if (text === offered) return;
  offered = text;
  if (served.chat === null) {
    welcomeText.textContent =
      "This model has no chat template: it continues texts, at /v1/completions, but does not chat.";
    for (const field of byId("composer").elements) field.disabled = true;
    return;
  }
  options.offer(served.chat);
  const fitting = EXAMPLES.filter((example) => !example.needs || served.chat[example.needs]);
  welcomeText.textContent = "Ask something, or try one of these:";
  examples.replaceChildren(...fitting.map(exampleButton));
}

function exampleButton(example) {
  const button = element("button", { type: "button" }, example.question, element("small", {}, example.about));
  button.addEventListener("click", () => {
    options.setTools(example.tools);
    options.setThinking(example.thinking);
    ask(example.question);
  });
  return button;
}

async function ask(text) {
  text = text.trim();
  if (chat.isRunning || text === "") return;
  let fields;
  try {
    fields = options.fields();
  } catch (error) {
    showProblem(error.message);
    return;
  }
  showProblem("");
  welcome.remove();
  setQuestion("");
  const isKept = await chat.ask(text, fields);
  if (!isKept && question.value === "") setQuestion(text);
}

/** What keeps a question from being sent; it stays in the field. */
function showProblem(message) {
  byId("question-problem").textContent = message;
}

function setQuestion(text) {
  question.value = text;
  fit();
}

function showRunning() {
  byId("stop").hidden = !chat.isRunning;
  byId("send").hidden = chat.isRunning;
  status.refresh();
}

/** The field is as high as its text. */
function fit() {
  question.style.height = "auto";
  question.style.height = `${question.scrollHeight + 2}px`;
}

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  ask(question.value);
});
question.addEventListener("input", fit);
question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    ask(question.value);
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") chat.stop();
});
byId("stop").addEventListener("click", () => {
  chat.stop();
  question.focus();
});
byId("clear").addEventListener("click", () => {
  chat.clear();
  transcript.clear(welcome);
  showRunning();
  question.focus();
});
byId("tools-example").addEventListener("click", () => options.setTools(WEATHER));
byId("tools-clear").addEventListener("click", () => options.setTools([]));
byId("key").addEventListener("change", () => status.refresh());

// Links can not carry a key: where one is needed, the page fetches the document and opens what came.
for (const link of document.querySelectorAll("nav a")) {
  link.addEventListener("click", async (event) => {
    if (!options.key) return;
    event.preventDefault();
    const opened = window.open("", "_blank");
    try {
      const document = await (await get(link.getAttribute("href"), options.key)).blob();
      opened.location = URL.createObjectURL(document);
    } catch (error) {
      opened.document.title = "ATOM";
      opened.document.body.textContent = error.message;
    }
  });
}

// On a wide screen everything is in view from the start; on a narrow one the conversation is.
if (matchMedia("(min-width: 60rem)").matches) {
  for (const panel of document.querySelectorAll(".panel")) panel.open = true;
  question.focus();
}
