"""Steps as a server's are: prompts of any length come and go, chunks, every way of sampling."""

from __future__ import annotations

import random
from typing import Any

from atom.sampling_params import SamplingParams
from tests.models.drive import Driver, Running

_MOST_TOKENS = 20


def run_random_steps(driver: Driver, seed: int, num_steps: int, lengths: tuple[int, ...]) -> None:
    """Up to the runner's sequences and tokens a step; prompts have one of `lengths`."""
    config, rng = driver.runner.config, random.Random(seed)
    live: list[Running] = []
    for _ in range(num_steps):
        wanted = rng.choice([1, 2, 3, 5, 8, 9, config.max_num_seqs])
        left = config.max_num_batched_tokens - len(live)
        while len(live) < min(wanted, config.max_num_seqs) and left > max(lengths):
            prompt = [rng.randrange(100) for _ in range(rng.choice(lengths))]
            live.append(driver.add(prompt, any_params(rng), seed=rng.randrange(1000)))
            left -= len(prompt)
        driver.step(live, rng.choice([1 << 20, 7, 32]))
        for one in [one for one in live if len(one.output) > rng.randrange(1, _MOST_TOKENS)]:
            live.remove(one)
            driver.release(one)


def any_params(rng: random.Random) -> SamplingParams:
    """Greedy in a third of all cases."""
    given: dict[str, Any] = {"max_tokens": 1024, "ignore_eos": True, "temperature": rng.choice([0.0, 0.7, 1.0])}
    for name, value in (
        ("top_p", 0.9), ("top_k", 20), ("min_p", 0.1), ("presence_penalty", 0.5), ("logprobs", 2), ("seed", 3),
        ("logit_bias", {1: 2.0}),
    ):  # fmt: skip
        if rng.random() < 0.2:
            given[name] = value
    if rng.random() < 0.05:
        given["prompt_logprobs"] = 1
    return SamplingParams(**given)
