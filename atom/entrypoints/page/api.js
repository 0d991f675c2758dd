// How the page speaks to its server: keys, errors, streams. Knows nothing of the document.

import { FrameReader } from "./frames.js";

/** What the server refused, or that it could not be reached (status 0). The message is for people. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function call(path, options, key) {
  const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server can not be reached.", 0);
  }
  if (!response.ok) throw new ApiError(await errorText(response), response.status);
  return response;
}

async function errorText(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `The server answered with status ${response.status}.`;
  }
}

export async function get(path, key, signal) {
  return call(path, { signal }, key);
}

/** The chunks of a streamed answer. Leaving the loop, or aborting the signal, ends the request at the server. */
export async function* streamChat(request, key, signal) {
  const headers = { "Content-Type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify(request), signal };
  const response = await call("v1/chat/completions", options, key);
  const reader = new FrameReader();
  const pieces = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await read(pieces);
      if (done) throw new ApiError("The stream ended before the answer did.", 0);
      for (const frame of reader.feed(value)) {
        if (frame === "[DONE]") return;
        const chunk = JSON.parse(frame);
        if (chunk.error) throw new ApiError(chunk.error.message, 200);
        yield chunk;
      }
    }
  } finally {
    pieces.cancel().catch(() => {});
  }
}

async function read(pieces) {
  try {
    return await pieces.read();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The connection to the server broke.", 0);
  }
}
