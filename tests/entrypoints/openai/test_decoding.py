"""Decoding agrees with the contract: what spec/openapi.yaml calls valid is accepted, everything else is a clear 400."""

from __future__ import annotations

import importlib.resources
import json
from typing import Any

import jsonschema
import msgspec
import pytest
from atom_spec import ops
from atom_spec.openai import ChatCompletionRequest, CompletionRequest, UserMessage
from hypothesis import given, settings
from hypothesis import strategies as st

from atom.entrypoints.openai.decoding import MAX_DEPTH, RequestDecodeError, decode

CONTRACT: dict[str, Any] = json.loads(importlib.resources.files("atom_spec").joinpath("openapi.json").read_text())
MESSAGES = [{"role": "user", "content": "hi"}]


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = {"$ref": f"#/components/schemas/{name}", "components": CONTRACT["components"]}
    return jsonschema.Draft202012Validator(schema)


def chat(**fields: Any) -> ChatCompletionRequest:
    return decode(ChatCompletionRequest, json.dumps({"messages": MESSAGES, **fields}).encode())


def error_of(model: type[msgspec.Struct], body: bytes | str) -> RequestDecodeError:
    with pytest.raises(RequestDecodeError) as caught:
        decode(model, body.encode() if isinstance(body, str) else body)
    return caught.value


# Values of every JSON kind, at the borders of what the fields take.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 25),
    st.sampled_from([2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 129, 128, 10**30]),
    st.floats(-3, 3, allow_nan=False).map(lambda x: round(x, 2)),
    st.sampled_from([1.0, 2.0, -0.0, 1e2, 0.5, 1e300, 20.0, 100.5]),
    st.sampled_from(["", "1", "yes", "auto", "none", "high", "function", "text", "x" * 200, "héß😀", "\x00"]),
)
PARTS = st.sampled_from(
    [
        {"type": "text", "text": "a"},
        {"type": "text"},
        {"type": "image_url", "image_url": {"url": "data:,x"}},
        {"type": "refusal", "refusal": "no"},
        {"type": "input_audio", "input_audio": {}},
        {"text": "a"},
        "a",
        {},
    ]
)
FUNCTION = {"name": "f", "arguments": "{}"}
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "wizard", None, 3]),
        "content": st.one_of(SCALARS, st.lists(PARTS, max_size=3)),
        "name": SCALARS,
        "reasoning_content": SCALARS,
        "tool_call_id": SCALARS,
        "tool_calls": st.sampled_from(
            [
                None,
                [],
                [{"id": "c", "type": "function", "function": FUNCTION}],
                [{"function": {"name": "f", "arguments": {}}}],
                [{"type": "custom", "function": FUNCTION}],
                [{"id": "c"}],
                {},
                [1],
                [{"function": {"name": 1}}],
            ]
        ),
        "unknown": SCALARS,
    },
)
SPECIAL = {
    "tools": [
        [],
        [{"type": "function", "function": {"name": "f"}}],
        [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": None, "more": 1}}],
        [{"function": {"name": "a.b-c:d/e_0"}}],
        [{"type": "function", "function": {"name": "a b"}}],
        [{"type": "web_search"}],
        [{"type": "function", "function": {}}],
        {},
    ],
    "tool_choice": [
        "auto",
        "required",
        "any",
        {"type": "function", "function": {"name": "f"}},
        {"type": "function", "function": {"name": "f", "x": 1}},
        {"type": "function", "function": {"name": "f"}, "x": 1},
        {"function": {"name": "f"}},
        {"type": "function", "function": {"name": ""}},
        {"type": "allowed_tools"},
    ],
    "response_format": [
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_object", "schema": {}},
        {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
        {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": True, "description": None}},
        {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "extra": 1}},
        {"type": "json_schema", "json_schema": {"name": "n"}},
        {"type": "json_schema"},
        {"type": "xml"},
        {},
    ],
    "logit_bias": [{}, {"5": 1}, {"5": -100.0}, {"5": 101}, {"a": 1}, {"-1": 1}, {"5": "1"}, {"12345678901": 1}, []],
    "stop": ["a", ["a"], ["a"] * 16, ["a"] * 17, [""], [1], []],
    "stop_token_ids": [[], [1], [1.0], [-1], ["1"], [2**31], [0] * 65],
    "stream_options": [{}, {"include_usage": True, "x": 1}, {"include_usage": 1}, {"continuous_usage_stats": None}],
    "thinking": [{"type": "enabled"}, {"type": "disabled", "budget_tokens": 5}, {"type": "on"}, {}],
    "modalities": [["text"], ["text", "audio"], []],
    "prompt": [MESSAGES, []],
}
CHAT_FIELDS = sorted(CONTRACT["components"]["schemas"]["ChatCompletionRequest"]["properties"])
PROMPTS = st.one_of(
    SCALARS,
    st.lists(st.one_of(SCALARS, st.lists(SCALARS, max_size=2)), max_size=3),
    st.lists(st.integers(0, 5), max_size=3),
    st.lists(st.sampled_from(["", "a"]), max_size=3),
    st.lists(st.lists(st.sampled_from([0, 1, 2.0]), max_size=2), max_size=2),
)


def values_of(field: str) -> st.SearchStrategy[Any]:
    if field == "messages":
        return st.lists(MESSAGE, max_size=2)
    return st.one_of(SCALARS, st.sampled_from(SPECIAL[field])) if field in SPECIAL else SCALARS


def bodies(fields: list[str], base: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    changes = st.lists(st.sampled_from(fields), max_size=2, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: values_of(name) for name in names})
    )
    return changes.map(lambda change: base | change)


def agree(name: str, model: type[msgspec.Struct], body: dict[str, Any]) -> None:
    """Decoding accepts the body exactly when the contract's schema does; null and absent decode alike."""
    if not validator(name).is_valid(body):
        error = error_of(model, json.dumps(body))
        assert error.message
        return
    decoded = decode(model, json.dumps(body).encode())
    without_nulls = {key: value for key, value in body.items() if value is not None}
    assert decode(model, json.dumps(without_nulls).encode()) == decoded


@given(bodies(CHAT_FIELDS, {"messages": MESSAGES}))
@settings(max_examples=400, deadline=None)
def test_chat_requests_are_accepted_exactly_when_the_schema_accepts_them(body: dict[str, Any]) -> None:
    agree("ChatCompletionRequest", ChatCompletionRequest, body)


@given(st.fixed_dictionaries({"prompt": PROMPTS}, optional={"logit_bias": values_of("logit_bias"), "suffix": SCALARS}))
@settings(max_examples=300, deadline=None)
def test_completion_requests_are_accepted_exactly_when_the_schema_accepts_them(body: dict[str, Any]) -> None:
    agree("CompletionRequest", CompletionRequest, body)


@given(st.fixed_dictionaries({}, optional={"tokens": st.lists(SCALARS, max_size=3), "model": SCALARS}))
@settings(max_examples=100, deadline=None)
def test_detokenize_requests_are_accepted_exactly_when_the_schema_accepts_them(body: dict[str, Any]) -> None:
    agree("DetokenizeRequest", ops.DetokenizeRequest, body)


@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda s: s.encode("utf-8", "surrogatepass"))))
@settings(max_examples=300, deadline=None)
def test_no_bytes_raise_anything_else(body: bytes) -> None:
    try:
        decode(ChatCompletionRequest, body)
    except RequestDecodeError as error:
        assert str(error) == error.message
        error.message.encode()


@pytest.mark.parametrize(
    ("field", "value", "param"),
    [
        ("max_tokens", "1", "max_tokens"),
        ("max_tokens", True, "max_tokens"),
        ("max_tokens", 1.5, "max_tokens"),
        ("stream", "yes", "stream"),
        ("stream", 1, "stream"),
        ("temperature", "hot", "temperature"),
        ("temperature", -1, "temperature"),
        ("temperature", 2.5, "temperature"),
        ("top_p", 0, "top_p"),
        ("n", 0, "n"),
        ("seed", 2**63, "seed"),
        ("stop", "", "stop"),
        ("audio", {"voice": "x"}, "audio"),
        ("prediction", {}, "prediction"),
        ("web_search_options", {}, "web_search_options"),
        ("modalities", ["audio"], "modalities[0]"),
        ("functions", [], "functions"),
        ("top_logprobs", 2, "top_logprobs"),
        ("logit_bias", {"x": 1}, "logit_bias"),
        ("logit_bias", {"1": 1000}, "logit_bias"),
        ("tool_choice", {"type": "function", "function": {"name": "f", "zz": 1}}, "tool_choice.function.zz"),
        ("response_format", {"type": "yaml"}, "response_format.type"),
        ("messages", [], "messages"),
        ("messages", [{"role": "wizard", "content": "x"}], "messages[0].role"),
        ("messages", [MESSAGES[0], {"role": "user"}], "messages[1].content"),
        ("messages", [{"role": "user", "content": [{"type": "text", "text": 3}]}], "messages[0].content[0].text"),
        ("prompt", MESSAGES, "prompt"),
    ],
)
def test_errors_name_the_field(field: str, value: Any, param: str) -> None:
    error = error_of(ChatCompletionRequest, json.dumps({"messages": MESSAGES, field: value}))
    assert error.param == param
    assert error.message.startswith(param)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ('{"messages":[{"role":"user","content":"x"}],"temperature":NaN}', "temperature"),
        ('{"messages":[{"role":"user","content":"x"}],"top_p": -Infinity}', "top_p"),
        ('{"messages":[{"role":"user","content":"x"}],"temperature":1e999}', "temperature"),
        ('{"messages":[{"role":"user","content":"bad \\ud83d end"}]}', None),
        ('{"messages":[{"role":"user","content":"\\udc00"}]}', None),
        ('{"model":"\\ud800","messages":[]}', None),
        (b'{"messages":[{"role":"user","content":"\xed\xa0\x80"}]}', None),
        ("{", None),
        ("", None),
        ("[]", None),
        ("null", None),
        ("42", None),
        ('{"model":"x"}', "messages"),
        ('{"messages":"hi"}', "messages"),
        ('{"messages":[42]}', "messages[0]"),
    ],
)
def test_what_is_no_request_is_refused(body: bytes | str, param: str | None) -> None:
    assert error_of(ChatCompletionRequest, body).param == param


def test_a_whole_float_is_an_integer_everywhere() -> None:
    request = chat(max_tokens=16.0, seed=1e3, stop_token_ids=[1.0, 2], temperature=1)
    assert (request.max_tokens, request.seed, request.stop_token_ids, request.temperature) == (16, 1000, [1, 2], 1.0)
    assert type(request.max_tokens) is int
    completion = decode(CompletionRequest, b'{"prompt": [[1.0, 2], [3]], "logit_bias": {"7": 1}}')
    assert completion.prompt == [[1, 2], [3]]


def test_free_form_objects_come_back_as_they_are() -> None:
    parameters = {"type": "object", "properties": {"x": {"minimum": 1.0, "default": None}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    for max_tokens in (3, 3.0):
        request = chat(tools=tools, max_tokens=max_tokens)
        assert request.tools is not None
        found = request.tools[0].function.parameters
        assert found == parameters
        assert type(found["properties"]["x"]["minimum"]) is float


def test_surrogate_pairs_and_unknown_fields_are_fine() -> None:
    body = '{"messages":[{"role":"user","content":"\\ud83d\\ude00","cache_control":{"a":[1]}}],"brand_new":{"x":1}}'
    request = decode(ChatCompletionRequest, body.encode())
    assert request.messages is not None
    assert request.messages[0] == UserMessage(content="😀")


@pytest.mark.parametrize("where", ["metadata", "brand_new"])
def test_nesting_has_a_limit(where: str) -> None:
    def body(depth: int) -> bytes:
        nested = '{"a":' * depth + "1" + "}" * depth
        return f'{{"messages":[{{"role":"user","content":"x"}}],"{where}":{nested}}}'.encode()

    decode(ChatCompletionRequest, body(MAX_DEPTH - 1))
    assert "nested" in error_of(ChatCompletionRequest, body(MAX_DEPTH)).message
    assert "nested" in error_of(ChatCompletionRequest, body(100_000)).message


def test_brackets_in_texts_are_not_nesting() -> None:
    assert chat(user='[{"\\' * 500).user == '[{"\\' * 500
    many = decode(CompletionRequest, json.dumps({"prompt": [[1, 2]] * 500}).encode())
    assert len(many.prompt) == 500


def test_messages_stay_short_whatever_was_sent() -> None:
    error = error_of(ChatCompletionRequest, json.dumps({"messages": [{"role": "x" * 100_000, "content": ""}]}))
    assert len(error.message) < 1000


def test_best_of_must_be_n() -> None:
    assert error_of(CompletionRequest, '{"prompt":"x","best_of":2}').param == "best_of"
    assert decode(CompletionRequest, b'{"prompt":"x","best_of":2,"n":2}').n == 2
    assert error_of(CompletionRequest, json.dumps({"prompt": ["a"] * 1025})).param == "prompt"
