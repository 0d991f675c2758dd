// One streamed answer while it grows: its thought, its text, its calls. Knows nothing of the document.

const ENDS = ["stop", "tool_calls"]; // how an answer ends by itself; otherwise its last call may have been cut off

export class Answer {
  thought = "";
  text = "";
  calls = []; // {id, name, arguments}: text, whole once the answer is; JSON unless the model's format lets other text pass
  finish = null;
  usage = null;
  started = now();
  firstToken = null;
  thoughtEnd = null;

  /** Take one chunk in. */
  apply(chunk) {
    if (chunk.usage) this.usage = chunk.usage;
    for (const choice of chunk.choices ?? []) {
      const delta = choice.delta ?? {};
      this.#grow(delta.reasoning_content ?? delta.reasoning ?? "", delta.content ?? "", delta.tool_calls ?? []);
      this.finish = choice.finish_reason ?? this.finish;
    }
  }

  #grow(thought, text, calls) {
    if (!thought && !text && calls.length === 0) return;
    this.firstToken ??= now();
    if (this.thought && !thought) this.thoughtEnd ??= now();
    this.thought += thought;
    this.text += text;
    for (const piece of calls) {
      const call = (this.calls[piece.index] ??= { id: "", name: "", arguments: "" });
      call.id ||= piece.id ?? "";
      call.name ||= piece.function?.name ?? "";
      call.arguments += piece.function?.arguments ?? "";
    }
  }

  /** The answer as a message of the conversation, without calls that were cut off; null when nothing of it is left. */
  message() {
    const calls = this.calls.filter((call) => this.isWhole(call));
    if (!this.text && calls.length === 0) return null;
    return {
      role: "assistant",
      content: this.text || null,
      ...(this.thought ? { reasoning_content: this.thought } : {}),
      ...(calls.length ? { tool_calls: calls.map(asToolCall) } : {}),
    };
  }

  /** Whether a call was not cut off. */
  isWhole(call) {
    return ENDS.includes(this.finish) || isJson(call.arguments);
  }

  /** What there is to say about it in figures, as short texts. */
  figures() {
    const usage = this.usage;
    const parts = [];
    if (usage) parts.push(plural(usage.completion_tokens, "token"));
    if (usage?.ttft_s != null) parts.push(`first after ${milliseconds(usage.ttft_s)}`);
    if (usage?.tpot_s > 0) parts.push(`${(1 / usage.tpot_s).toFixed(0)} tok/s`);
    if (usage?.prompt_tokens_details?.cached_tokens) {
      parts.push(`${usage.prompt_tokens_details.cached_tokens} of ${usage.prompt_tokens} prompt tokens cached`);
    } else if (usage) {
      parts.push(plural(usage.prompt_tokens, "prompt token"));
    }
    if (this.finish === "length") parts.push("cut off at the token limit");
    return parts;
  }
}

/** Arguments for people: indented once they are whole, as they stand before. */
export function pretty(json) {
  return isJson(json) ? JSON.stringify(JSON.parse(json), null, 2) : json;
}

export function milliseconds(seconds) {
  const value = seconds * 1000;
  return value < 1000 ? `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms` : `${seconds.toFixed(1)} s`;
}

export function plural(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

function asToolCall(call) {
  return { id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } };
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function now() {
  return performance.now() / 1000;
}
