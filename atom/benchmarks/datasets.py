"""The prompts of a run, from one of five kinds of datasets.

Owns the files' layouts and which of their rows become requests. Does not know how requests are sent. The same seed
gives the same requests, and the first ones do not depend on how many are asked for.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from atom.benchmarks.hf_dataset import DatasetError, conversation_of, read_hf_rows
from atom.benchmarks.prompts import PromptWriter, RandomText, SampleRequest

# The bounds that are usual for ShareGPT: shorter turns measure nothing, longer ones do not fit every model.
MIN_TOKENS = 4
MAX_PROMPT_TOKENS = 1024
MAX_TOTAL_TOKENS = 2048
BURSTGPT_MODEL = "GPT-4"
SONNET_INSTRUCTION = "Choose as many of the following lines as you can and write them down again:\n"
_BATCH = 64
# Uniform lengths between ratio * length and length: float noise must not move the lower end down by one.
_EPSILON = 1e-9


def sample_requests(options: argparse.Namespace, writer: PromptWriter, number: int) -> list[SampleRequest]:
    """Up to `number` requests by the flags; fewer where the dataset has fewer. Raises DatasetError."""
    requests = list(islice(_SAMPLERS[options.dataset_name](options, writer), number))
    if not requests:
        raise DatasetError(f"{options.dataset_path or options.dataset_name}: no row of it can be used as a request")
    return requests


def sharegpt_requests(options: argparse.Namespace, writer: PromptWriter) -> Iterator[SampleRequest]:
    """The first two turns of each conversation of a ShareGPT file, shuffled."""
    rows = _read_json(Path(options.dataset_path))
    if not isinstance(rows, list):
        raise DatasetError(f"{options.dataset_path}: a ShareGPT file holds a JSON array of conversations")
    pairs = (conversation_of(rows[i]) for i in _shuffled(len(rows), options.seed))
    for request in _from_pairs(pairs, writer, options.sharegpt_output_len):
        if request.prompt_len <= MAX_PROMPT_TOKENS and request.prompt_len + request.output_len <= MAX_TOTAL_TOKENS:
            yield request


def hf_requests(options: argparse.Namespace, writer: PromptWriter) -> Iterator[SampleRequest]:
    """The first two turns of each row of a dataset that the datasets library reads."""
    rows = read_hf_rows(options.dataset_path, options.hf_subset, options.hf_split, options.seed)
    yield from _from_pairs(map(conversation_of, rows), writer, options.hf_output_len)


def _from_pairs(
    pairs: Iterable[tuple[str, str] | None], writer: PromptWriter, output_len: int | None
) -> Iterator[SampleRequest]:
    """Question and recorded answer to requests. output_len: in place of the recorded answer's length."""
    for pair in pairs:
        if pair is None:
            continue
        # Of the turns themselves, without a template around them.
        question_len, answer_len = map(len, writer.tokenizer.encode_batch(pair, add_special_tokens=False))
        if question_len >= MIN_TOKENS and (output_len or answer_len >= MIN_TOKENS):
            yield SampleRequest(*writer.write(pair[0]), output_len or answer_len)


def burstgpt_requests(options: argparse.Namespace, writer: PromptWriter) -> Iterator[SampleRequest]:
    """Random text with the lengths of a BurstGPT trace's rows for GPT-4 that have an answer, shuffled; then again."""
    lengths = _read_burstgpt(Path(options.dataset_path))
    order = [lengths[i] for i in _shuffled(len(lengths), options.seed)]
    text = RandomText(writer, options.seed)
    index = 0
    while order:
        batch = [order[(index + i) % len(order)] for i in range(_BATCH)]
        prompts = text.texts([prompt_len for prompt_len, _ in batch], first_index=index)
        for prompt, (asked_len, output_len) in zip(prompts, batch, strict=True):
            yield SampleRequest(*writer.write(prompt), output_len, asked_len)
        index += _BATCH


def _read_burstgpt(path: Path) -> list[tuple[int, int]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["Model"] == BURSTGPT_MODEL]
            lengths = [(int(float(row["Request tokens"])), int(float(row["Response tokens"]))) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(
            f"{path} is no BurstGPT trace, a CSV file with the columns Model, Request tokens and Response tokens"
            f" ({type(error).__name__}: {error})"
        ) from error
    return [(max(request, 1), response) for request, response in lengths if response > 0]


def sonnet_requests(options: argparse.Namespace, writer: PromptWriter) -> Iterator[SampleRequest]:
    """An instruction, the file's first lines up to the prefix length, and random lines up to the input length."""
    lines = [line for line in _read_text(Path(options.dataset_path)).splitlines() if line.strip()]
    if not lines:
        raise DatasetError(f"{options.dataset_path} has no line of text")
    generator = np.random.default_rng(options.seed)
    base = writer.write(SONNET_INSTRUCTION)[1]
    if base > options.sonnet_input_len:
        raise DatasetError(f"--sonnet-input-len must be at least {base}, the length of the instruction alone")
    prefix: list[str] = []
    for line in lines:
        if writer.write(_sonnet([*prefix, line]))[1] > options.sonnet_prefix_len:
            break
        prefix.append(line)
    tokens_a_line = (writer.write(_sonnet(lines))[1] - base) / len(lines)
    while True:
        chosen = list(prefix)
        room = options.sonnet_input_len - writer.write(_sonnet(chosen))[1]
        chosen += [lines[i] for i in generator.integers(len(lines), size=max(round(room / tokens_a_line), 0) + 1)]
        while len(chosen) > len(prefix) and writer.write(_sonnet(chosen))[1] > options.sonnet_input_len:
            chosen.pop()
        yield SampleRequest(*writer.write(_sonnet(chosen)), options.sonnet_output_len)


def _sonnet(lines: list[str]) -> str:
    return SONNET_INSTRUCTION + "\n".join(lines)


def random_requests(options: argparse.Namespace, writer: PromptWriter) -> Iterator[SampleRequest]:
    """Random text of random lengths, each prompt the prefix and then exactly the length drawn."""
    text = RandomText(writer, options.seed)
    generator = np.random.default_rng((options.seed, 2))
    prefix_len = options.random_prefix_len
    prefix = text.prefix(prefix_len)
    index = 0
    while True:
        lengths = [
            (
                prefix_len + draw_length(options.random_input_len, options.random_range_ratio, generator),
                draw_length(options.random_output_len, options.random_range_ratio, generator),
            )
            for _ in range(min(_BATCH, options.num_prompts + options.num_warmups))
        ]
        prompts = text.texts([prompt_len for prompt_len, _ in lengths], prefix, index)
        for prompt, (asked_len, output_len) in zip(prompts, lengths, strict=True):
            yield SampleRequest(*writer.write(prompt), output_len, asked_len)
        index += len(lengths)


def draw_length(length: int, ratio: float, generator: np.random.Generator) -> int:
    """A whole number, uniform from `ratio` * `length`, but at least 1, to `length`, both included."""
    low = max(math.floor(length * ratio + _EPSILON), 1)
    return int(generator.integers(low, length, endpoint=True))


def _shuffled(number: int, seed: int) -> list[int]:
    order: list[int] = np.random.default_rng(seed).permutation(number).tolist()
    return order


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} can not be read: {error}") from error


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read_text(path))
    except ValueError as error:
        raise DatasetError(f"{path} is not valid JSON: {error}") from error


_SAMPLERS: Mapping[str, Callable[[argparse.Namespace, PromptWriter], Iterator[SampleRequest]]] = {
    "sharegpt": sharegpt_requests,
    "burstgpt": burstgpt_requests,
    "sonnet": sonnet_requests,
    "random": random_requests,
    "hf": hf_requests,
}
