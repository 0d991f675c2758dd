// What is served and how busy it is: asks /status while the page is looked at, and shows the figures.

import { get } from "./api.js";
import { milliseconds } from "./answer.js";
import { byId, element } from "./dom.js";
import { Rates } from "./rates.js";

const INTERVAL = 2000; // milliseconds between two questions
const STATES = {
  ok: "ready",
  draining: "shutting down",
  dead: "engine stopped",
  gone: "not reachable",
  locked: "needs a key",
};

export class Status {
  #rates = new Rates();
  #timer = null;
  #facts = "";

  /** `key`: gives the key to ask with. `onServed`: called with each answer; `onLocked`: when a key is missing. */
  constructor({ key, onServed, onLocked }) {
    this.key = key;
    this.onServed = onServed;
    this.onLocked = onLocked;
    document.addEventListener("visibilitychange", () => this.refresh());
  }

  /** Ask now, and then every now and then; but not while nobody looks, nor again with a key that was refused. */
  async refresh() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    const isLocked = (await this.#ask()) === "locked";
    clearTimeout(this.#timer);
    if (!isLocked) this.#timer = setTimeout(() => this.refresh(), INTERVAL);
  }

  async #ask() {
    try {
      const status = await (await get("status", this.key())).json();
      this.#rates.add(performance.now() / 1000, status.load);
      showState(status.state);
      this.#showLoad(status.load);
      this.#showFacts(status);
      this.onServed(status);
      return status.state;
    } catch (error) {
      const state = error.status === 401 ? "locked" : "gone";
      showState(state);
      if (state === "locked") this.onLocked();
      return state;
    }
  }

  #showLoad(load) {
    const used = load.kv_cache_blocks_total ? load.kv_cache_blocks_used / load.kv_cache_blocks_total : 0;
    show("running", load.requests_running);
    show("waiting", load.requests_waiting);
    show("kv", (used * 100).toFixed(used > 0 && used < 0.1 ? 1 : 0), "%");
    byId("gauge-kv-meter").value = used;
    show("prompt", perSecond(this.#rates.perSecond("prompt_tokens")), "tok/s");
    show("generation", perSecond(this.#rates.perSecond("generation_tokens")), "tok/s");
    show("ttft", ...duration(this.#rates.mean("time_to_first_token")));
    show("tpot", ...duration(this.#rates.mean("inter_token_latency")));
  }

  #showFacts(status) {
    const facts = factsOf(status);
    const text = JSON.stringify(facts);
    if (text === this.#facts) return;
    this.#facts = text;
    byId("model-name").textContent = status.models[0];
    document.title = `${status.models[0]} · ATOM`;
    byId("served-panel").hidden = false;
    byId("facts").replaceChildren(
      ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
    );
  }
}

function factsOf(status) {
  const { chat } = status;
  return [
    [status.models.length > 1 ? "Models" : "Model", status.models.join(", ")],
    ["Architecture", status.architecture],
    ["Device", `${status.device}, ${status.dtype}`],
    ["Context", `${status.max_model_len.toLocaleString("en")} tokens`],
    ["Tool calls", chat?.tool_call_format ?? "none"],
    ["Reasoning", chat?.reasoning_dialect ?? "none"],
    ["Thinking switch", chat?.thinking_switch ?? "none"],
    ...(chat?.reasoning_efforts.length ? [["Efforts", chat.reasoning_efforts.join(", ")]] : []),
    ...kernelFacts(status.kernels),
    ["Version", status.version],
  ];
}

/** One fact when a single backend does everything, else one a backend. */
function kernelFacts(kernels) {
  const byBackend = grouped(kernels);
  if (byBackend.size <= 1) return [["Kernels", [...byBackend.keys()][0] ?? "none"]];
  return [...byBackend].map(([backend, operations]) => [`Kernels, ${backend}`, operations.join(", ")]);
}

function grouped(kernels) {
  const groups = new Map();
  for (const operation of Object.keys(kernels).sort()) {
    groups.set(kernels[operation], [...(groups.get(kernels[operation]) ?? []), operation]);
  }
  return groups;
}

function showState(state) {
  const field = byId("state");
  if (field.dataset.state === state) return;
  field.dataset.state = state;
  field.textContent = STATES[state];
  document.querySelector(".gauges").dataset.stale = String(state === "gone" || state === "locked");
}

function show(name, value, unit = "") {
  byId(`gauge-${name}`).replaceChildren(String(value ?? "–"), ...(unit && value != null ? [element("small", {}, unit)] : []));
}

function perSecond(rate) {
  if (rate === null) return null;
  return rate >= 10 || rate === 0 ? rate.toFixed(0) : rate.toFixed(1);
}

function duration(seconds) {
  return seconds === null ? [null] : milliseconds(seconds).split(" ");
}
