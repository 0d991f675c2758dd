// Server-sent events out of text that arrives in pieces of any size. Knows nothing of what an event holds.

export class FrameReader {
  #rest = "";

  /** The data of every event that this piece completes, in order; comments and other fields are left out. */
  feed(piece) {
    const events = (this.#rest + piece).replaceAll("\r\n", "\n").split("\n\n");
    this.#rest = events.pop();
    return events.map(dataOf).filter((data) => data !== null);
  }
}

function dataOf(event) {
  const lines = event.split("\n").filter((line) => line.startsWith("data:"));
  return lines.length === 0 ? null : lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
}
