"""What a grammar costs: output tokens a second at 16 sequences, the first and the next request of a schema, and whether
every enforced call is right.

The shipped model on the CPU, in this process. Plain and enforced runs alternate, and the rows are medians of ratios, so
that a busy machine moves both alike. `STRUCTURED_CALLS=200` makes that many enforced calls a format instead, of random
schemas and a model that knows nothing (minutes); `STRUCTURED_FORMATS=qwen,glm` picks formats, to do it in pieces.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from typing import Any

from atom_spec.formats import FORMATS

from atom.entrypoints.openai.answer_grammar.answers import Speech, Wanted
from atom.entrypoints.openai.answer_grammar.calls import ToolSchema
from atom.entrypoints.openai.answer_grammar.made import make
from atom.model_engine.grammars import Grammars
from atom.model_engine.llm_engine import LLMEngine
from atom.sampling_params import AnswerGrammar, SamplingParams
from atom.tokenizer import Tokenizer

MODEL = "atom-tiny"
CONCURRENT = 16
TOKENS = 128
ROUNDS = 25
# An answer that does not end before the token limit, of the kinds of values that real ones have.
_ITEM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 24},
        "size": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 4},
        "kind": {"enum": ["small", "large"]},
    },
    "required": ["name", "size", "tags", "kind"],
    "additionalProperties": False,
}
LONG = {"type": "array", "items": _ITEM, "minItems": 400}
PLAIN = Speech(FORMATS["qwen"], None, None, False, False, ("<|im_end|>",))


def run() -> list[dict[str, Any]]:
    """The rows."""
    number = int(os.environ.get("STRUCTURED_CALLS", "0"))
    formats = [name for name in os.environ.get("STRUCTURED_FORMATS", "").split(",") if name]
    return _calls(number, formats or list(FORMATS)) if number else [*_throughput(), *_requests()]


def _throughput() -> list[dict[str, Any]]:
    grammar = AnswerGrammar(make(PLAIN, Wanted(json=LONG)))
    prompts = [f"Item {number}: a list of things" for number in range(CONCURRENT)]
    with LLMEngine(MODEL, max_model_len=512, kv_cache_memory="64M", enable_prefix_caching=False) as engine:

        def rate(**fields: Any) -> float:
            started = time.perf_counter()
            sampling = [SamplingParams(max_tokens=TOKENS, seed=seed, **fields) for seed in range(CONCURRENT)]
            answers = engine.generate(prompts, sampling)
            return sum(answer["num_tokens_output"] for answer in answers) / (time.perf_counter() - started)

        rate(ignore_eos=True), rate(grammar=grammar)
        pairs = [(rate(ignore_eos=True), rate(grammar=grammar)) for _ in range(ROUNDS)]
    plain, enforced = (statistics.median(values) for values in zip(*pairs, strict=True))
    lost = statistics.median(1 - with_grammar / without for without, with_grammar in pairs)
    return [
        {"name": f"output tokens/s, {CONCURRENT} sequences, free", "value": plain, "unit": "tok/s"},
        {"name": f"output tokens/s, {CONCURRENT} sequences, enforced JSON", "value": enforced, "unit": "tok/s"},
        {"name": "lost to enforced JSON", "value": 100 * lost, "unit": "%", "bar": "<= 5"},
    ]


def _requests() -> list[dict[str, Any]]:
    """Everything that a request with a schema costs more than one without: in both processes, up to the first mask."""
    from atom.config import Config

    config = Config.resolve(MODEL)
    tokenizer = Tokenizer.load(config.model_path)
    grammars = Grammars(lambda: tokenizer, config.hf.vocab_size, config.eos_token_ids)
    grammars.prepare(AnswerGrammar('start: "a"')).result()
    first, following = [], []
    for number in range(20):
        schema = {**_ITEM, "properties": {**_ITEM["properties"], f"own{number}": {"type": "string"}}}  # type: ignore[dict-item]  # values of one Any dict
        tool = ToolSchema("tools[0]", "order", schema)
        for wanted in (Wanted(json=schema), Wanted((tool,), must_call=True)):
            started = time.perf_counter()
            grammar = AnswerGrammar(make(PLAIN, wanted))
            _first_mask(grammars, grammar)
            first.append(1000 * (time.perf_counter() - started))
            started = time.perf_counter()
            _first_mask(grammars, grammar)
            following.append(1000 * (time.perf_counter() - started))
    grammars.shutdown()
    return [
        {"name": "first request of a schema, added", "value": statistics.median(first), "unit": "ms", "bar": "< 50"},
        {"name": "next request of it, added", "value": statistics.median(following), "unit": "ms", "bar": "< 5"},
    ]


def _first_mask(grammars: Grammars, grammar: AnswerGrammar) -> None:
    grammars.prepare(grammar).result()
    compiled = grammars.compiled(grammar)
    matcher = grammars.take(compiled)
    matcher.compute_bitmask()
    grammars.give_back(compiled, matcher)


def _calls(number: int, formats: Sequence[str]) -> list[dict[str, Any]]:
    from tests.fakes.enforced_calls import WAYS, run_trials

    rows = []
    with LLMEngine(MODEL, load_dummy="zero", max_model_len=1024, kv_cache_memory="256M", max_num_seqs=128) as engine:
        for name in formats:
            ways = [way for way in WAYS if way.spec.name == name]
            shares = [number // len(ways) + (place < number % len(ways)) for place in range(len(ways))]
            trials = [
                trial
                for way, share in zip(ways, shares, strict=True)
                for trial in run_trials(engine, way, share, seed=7)
            ]
            right = sum(not trial.problems and trial.finish_reason == "stop" for trial in trials)
            rows.append({"name": f"{name}: enforced calls that are right", "value": right, "unit": f"of {number}"})
    return rows
