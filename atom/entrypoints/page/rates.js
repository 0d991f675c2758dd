// Rates and means out of totals that only grow. Knows nothing of the document.

const RATE_WINDOW = 6; // seconds over which tokens a second are taken
const MEAN_WINDOW = 60; // seconds over which latencies are averaged

export class Rates {
  #samples = [];

  /** Take the totals of one moment in; `time` in seconds. */
  add(time, load) {
    // Totals that fall are another server's: what came before is no base for them.
    const last = this.#samples.at(-1);
    if (last && load.prompt_tokens < last.load.prompt_tokens) this.#samples = [];
    this.#samples.push({ time, load });
    while (this.#samples.length > 2 && this.#samples[1].time < time - MEAN_WINDOW) this.#samples.shift();
  }

  /** Growth of a counter a second; null before there are two moments. */
  perSecond(name) {
    const last = this.#samples.at(-1);
    const first = this.#samples.find((sample) => sample.time >= last?.time - RATE_WINDOW);
    if (!last || first === last) return null;
    return (last.load[name] - first.load[name]) / (last.time - first.time);
  }

  /** Mean of the durations that were observed lately, in seconds; null without any. */
  mean(name) {
    const last = this.#samples.at(-1);
    const first = this.#samples[0];
    if (!last || last === first) return null;
    const count = last.load[name].count - first.load[name].count;
    return count > 0 ? (last.load[name].seconds - first.load[name].seconds) / count : null;
  }
}
