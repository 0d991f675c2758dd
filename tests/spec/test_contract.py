"""The HTTP contract and what derives from it say the same."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from atom_spec import anthropic, openai, ops, responses
from atom_spec.metrics import METRICS
from atom_spec.routes import ROUTES

from atom.model_engine.messages import EngineStats

CONTRACT: dict[str, Any] = yaml.safe_load((Path(__file__).parents[2] / "spec/openapi.yaml").read_text())
SCHEMAS: dict[str, Any] = CONTRACT["components"]["schemas"]


def errors(name: str, value: Any) -> list[str]:
    schema = {"$ref": f"#/components/schemas/{name}", "components": CONTRACT["components"]}
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(value)]


def on_the_wire(value: msgspec.Struct) -> Any:
    return json.loads(msgspec.json.encode(value))


def test_every_schema_is_valid_json_schema() -> None:
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_operation_has_one_route() -> None:
    declared = {(method.upper(), path) for path, item in CONTRACT["paths"].items() for method in item}
    assert {(route.method, route.path) for route in ROUTES} == declared
    assert len({route.operation_id for route in ROUTES}) == len(ROUTES)
    open_paths = [route.path for route in ROUTES if not route.auth]
    assert open_paths == ["/health", "/", "/", "/assets/{name}", "/assets/{name}"]
    assert [route.path for route in ROUTES if route.streams] == [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/messages",
        "/v1/responses",
    ]
    for route in ROUTES:
        if route.request is not None:
            assert hasattr(importlib.import_module(f"atom_spec.{route.module}"), route.request)


USAGE = openai.Usage(
    prompt_tokens=3,
    completion_tokens=2,
    total_tokens=5,
    prompt_tokens_details=openai.PromptTokensDetails(cached_tokens=0),
    ttft_s=0.1,
)
CALL = openai.ToolCall(id="call_1", function=openai.ToolCallFunction(name="f", arguments="{}"))
COMMON: dict[str, Any] = {"id": "x", "created": 1, "model": "m"}


@pytest.mark.parametrize(
    "answer",
    [
        openai.ErrorResponse(error=openai.ErrorBody(message="no", type="invalid_request_error", param=None, code=None)),
        openai.ChatCompletion(
            **COMMON,
            choices=[
                openai.ChatChoice(
                    index=0,
                    message=openai.ChatAnswer(content=None, reasoning="r", reasoning_content="r", tool_calls=[CALL]),
                    finish_reason="tool_calls",
                    logprobs=None,
                )
            ],
            usage=USAGE,
        ),
        openai.ChatCompletionChunk(
            **COMMON,
            choices=[
                openai.ChatChunkChoice(
                    index=0, delta=openai.ChatDelta(role="assistant", content=""), finish_reason=None
                )
            ],
        ),
        openai.ChatCompletionChunk(**COMMON, choices=[], usage=USAGE),
        openai.Completion(
            **COMMON,
            choices=[
                openai.CompletionChoice(
                    index=0,
                    text="t",
                    finish_reason="length",
                    logprobs=openai.CompletionLogprobs(
                        tokens=["t"], token_logprobs=[None], top_logprobs=[None], text_offset=[0]
                    ),
                )
            ],
            usage=USAGE,
        ),
        openai.CompletionChunk(
            **COMMON, choices=[openai.CompletionChunkChoice(index=0, text="t", finish_reason=None, logprobs=None)]
        ),
        openai.ModelList(data=[openai.Model(id="m", created=1, owned_by="atom", max_model_len=9)]),
        ops.Health(),
        ops.TokenizeResponse(tokens=[1], count=1, max_model_len=2),
        ops.ProfileResponse(message="Profiling started"),
    ],
    ids=lambda answer: type(answer).__name__,
)
def test_answers_encode_to_what_the_contract_promises(answer: msgspec.Struct) -> None:
    assert errors(type(answer).__name__, on_the_wire(answer)) == []


def test_absent_fields_of_an_answer_are_left_out() -> None:
    delta = openai.ChatDelta(content="a")
    assert msgspec.json.encode(delta) == b'{"content":"a"}'
    chunk = openai.ChatCompletionChunk(**COMMON, choices=[], usage=None)
    assert on_the_wire(chunk) == {**COMMON, "object": "chat.completion.chunk", "choices": [], "usage": None}


def test_event_schemas_tell_good_events_from_bad_ones() -> None:
    good = json.dumps(on_the_wire(openai.ChatCompletionChunk(**COMMON, choices=[])))
    for data in (good, "[DONE]"):
        assert errors("ChatCompletionEvent", {"event": "message", "data": data}) == []
    assert errors("ChatCompletionEvent", {"event": "ping", "data": good})
    assert errors("ChatCompletionEvent", {"event": "message"})
    # contentSchema is an annotation for jsonschema and an assertion for schemathesis, so what it points to must exist.
    for name in ("ChatCompletionEvent", "CompletionEvent"):
        options = SCHEMAS[name]["properties"]["data"]["anyOf"][1:]
        targets = [option["contentSchema"]["$ref"].rsplit("/", 1)[1] for option in options]
        assert targets[1] == "ErrorResponse"
        assert targets[0] in SCHEMAS


def test_what_the_contract_forbids_the_structs_forbid() -> None:
    closed = {name for name, schema in SCHEMAS.items() if schema.get("additionalProperties") is False}
    structs = [
        value
        for module in (openai, anthropic, responses)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct)
    ]
    assert {s.__name__ for s in structs if s.__struct_config__.forbid_unknown_fields} == closed
    assert closed == {
        "NamedToolChoice",
        "NamedFunction",
        "TextFormat",
        "JsonObjectFormat",
        "JsonSchemaFormat",
        "JsonSchemaSpec",
        "AutoToolChoice",
        "AnyToolChoice",
        "OneToolChoice",
        "NoToolChoice",
        "OutputFormat",
        "FunctionChoice",
        "PlainText",
        "AnyJson",
        "JsonOfSchema",
    }


def test_the_tables_defaults() -> None:
    defaults = openai.DEFAULTS["ChatCompletionRequest"]
    assert (defaults["max_tokens"], defaults["temperature"], defaults["n"], defaults["stream"]) == (256, 1.0, 1, False)
    assert openai.ChatCompletionRequest().max_tokens is None


def test_engine_metrics_read_fields_that_exist() -> None:
    for metric in METRICS:
        assert set(metric.engine) <= set(EngineStats.__struct_fields__), metric.name
