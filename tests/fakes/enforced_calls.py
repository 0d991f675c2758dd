"""Enforced calls by a model that knows nothing: atom-tiny's shape with weights of zero, so that all tokens are alike.

Every call goes through the engine, its sampler and its masks; what comes out is read by the pipeline, as a whole and
token by token. Used by the tests with a few calls a format, and by benchmarks/structured.py with 200.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jsonschema
from atom_spec.formats import FORMATS, FormatSpec

from atom.entrypoints.openai.answer_grammar.answers import Speech, Wanted
from atom.entrypoints.openai.answer_grammar.calls import ToolSchema
from atom.entrypoints.openai.answer_grammar.made import make
from atom.entrypoints.openai.events import ContentDelta, Event, ReasoningDelta, ToolCallArguments, ToolCallStart
from atom.entrypoints.openai.marker_tokens import marker_token_ids
from atom.entrypoints.openai.pipeline import AnswerPipeline, TextStages
from atom.entrypoints.openai.tool_parser.stream import Tool
from atom.model_engine.llm_engine import LLMEngine
from atom.sampling_params import AnswerGrammar, SamplingParams
from atom.text.detokenizer import Detokenizer

NAMES = ("get_weather", "search", "write_file", "now", "mcp__mail-box__list")
KEYS = ("city", "days", "content", "path", "query", "top_k", "max-items", "_id")
PLACE = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 6}, "floor": {"type": "integer"}}}


@dataclass(frozen=True, slots=True)
class Way:
    """A format in one variant."""

    spec: FormatSpec
    variant: str | None

    @property
    def name(self) -> str:
        return self.spec.name if self.variant is None else f"{self.spec.name}-{self.variant}"

    def speech(self, end_texts: tuple[str, ...]) -> Speech:
        """How it answers without a thought: one of random words never ends."""
        inside = self.spec.writing_of(self.variant).starts_inside_content
        return Speech(self.spec, self.variant, None, False, inside, end_texts)


WAYS = tuple(Way(spec, variant) for spec in FORMATS.values() for variant in spec.variants or (None,))


def random_schema(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    """One value's schema: of all kinds that a tool may have, with bounds on what has no end by itself."""
    text = {"type": "string", "maxLength": rng.randint(0, 12)}
    kinds: list[dict[str, Any]] = [
        text,
        text,
        {"type": "integer"},
        {"type": "integer", "minimum": -3, "maximum": rng.randint(0, 500)},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "string", "enum": ["red", "0042", "true", "a <b> & c"]},
        {"type": "string", "pattern": "^[a-z]{2,5}-[0-9]+$", "maxLength": 9},
        {"type": "string", "format": rng.choice(["date", "ipv4", "uuid", "date-time"])},
        {"type": ["string", "null"], "maxLength": 5},
        {"anyOf": [{"type": "integer", "minimum": 10, "maximum": 99}, {"type": "string", "maxLength": 4}]},
        {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        {"type": ["number", "null"]},
        {"enum": ["x", 7, None, False]},
        {"$ref": "#/$defs/Place"},
    ]
    if depth < 2:
        inner = random_schema(rng, depth + 1)
        kinds += [
            {"type": "array", "items": inner, "maxItems": 3},
            {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 1, "maxItems": 2},
            random_object(rng, depth + 1),
        ]
    return rng.choice(kinds)


def random_object(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    """An object with up to four members, some of which must be there."""
    keys = rng.sample(KEYS, rng.randint(0 if depth == 0 else 1, 4))
    required = [key for key in keys if rng.random() < 0.5]
    return {"type": "object", "properties": {key: random_schema(rng, depth) for key in keys}, "required": required}


def random_tools(rng: random.Random) -> list[ToolSchema]:
    names = rng.sample(NAMES, rng.randint(1, 3))
    schemas = [{**random_object(rng), "$defs": {"Place": PLACE}} for _ in names]
    return [
        ToolSchema(f"tools[{place}]", name, schema)
        for place, (name, schema) in enumerate(zip(names, schemas, strict=True))
    ]


@dataclass(slots=True)
class Trial:
    """One enforced answer. problems: what is wrong with it; empty when nothing is."""

    way: Way
    tools: list[ToolSchema]
    text: str = ""
    finish_reason: str = ""
    num_calls: int = 0
    problems: list[str] = field(default_factory=list)


def run_trials(engine: LLMEngine, way: Way, number: int, seed: int = 0, max_tokens: int = 900) -> Iterator[Trial]:
    """Enforced calls, as many as `number`, each over tools of its own."""
    rng = random.Random(f"{seed} {way.name}")
    end_ids = engine.config.eos_token_ids
    ends = tuple(text for text in map(engine.tokenizer.id_to_token, end_ids) if text)
    shown = marker_token_ids(engine.tokenizer, way.spec, None).difference(end_ids)
    trials, sampling = [], []
    for _ in range(number):
        tools = random_tools(rng)
        wanted = Wanted(tuple(tools), must_call=True, parallel=rng.random() < 0.3)
        grammar = AnswerGrammar(make(way.speech(ends), wanted), tuple(sorted(shown)))
        trials.append(Trial(way, tools))
        sampling.append(SamplingParams(max_tokens=max_tokens, seed=rng.getrandbits(32), grammar=grammar))
    answers = engine.generate([[1, 2, 3]] * number, sampling)
    for trial, answer in zip(trials, answers, strict=True):
        trial.finish_reason = answer["finish_reason"]
        check(trial, engine, answer["token_ids"], shown)
        yield trial


def check(trial: Trial, engine: LLMEngine, token_ids: list[int], shown: frozenset[int]) -> None:
    """Read the answer both ways, and hold its calls to their schemas."""

    def pipeline() -> AnswerPipeline:
        tools = [Tool(tool.name, tool.parameters) for tool in trial.tools]
        stages = TextStages(spec=trial.way.spec, tools=tools, id_factory=lambda: "id")
        return AnswerPipeline(Detokenizer(engine.tokenizer, True, shown_special_ids=shown), stages)

    whole, streamed = pipeline(), pipeline()
    events = whole.feed(token_ids) + whole.finish()
    pieces = [event for token_id in token_ids for event in streamed.feed([token_id])] + streamed.finish()
    trial.text = engine.tokenizer.decode(token_ids, skip_special_tokens=False)
    if folded(events) != folded(pieces):
        trial.problems.append("streamed and whole differ")
    content, calls = folded(events)
    trial.num_calls = len(calls)
    if content.strip("\n"):
        trial.problems.append(f"text beside the calls: {content!r}")
    if not calls:
        trial.problems.append("no call")
    schemas = {tool.name: tool.parameters for tool in trial.tools}
    for name, arguments in calls:
        try:
            value = json.loads(arguments)
            if trial.finish_reason == "stop":
                jsonschema.Draft202012Validator(
                    schemas[name], format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
                ).validate(value)
        except (ValueError, KeyError, jsonschema.ValidationError) as error:
            trial.problems.append(f"{name} {arguments}: {str(error).splitlines()[0]}")


def folded(events: list[Event]) -> tuple[str, list[tuple[str, str]]]:
    """The answer's text, and its calls as name and arguments."""
    content, calls = "", []
    for event in events:
        if isinstance(event, ContentDelta | ReasoningDelta):
            content += event.text
        elif isinstance(event, ToolCallStart):
            calls.append((event.name, ""))
        elif isinstance(event, ToolCallArguments):
            calls[-1] = (calls[-1][0], calls[-1][1] + event.text)
    return content, calls
