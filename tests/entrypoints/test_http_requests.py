"""What a request may say: every line of the API page's section on requests, over a live server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from atom.entrypoints.scripted.script import Script
from atom.entrypoints.scripted.serving import ScriptedServing
from atom.sampling_params import SamplingParams
from tests.entrypoints.live import MODEL, LiveServer, error_of, running, script, scripted, stream_json

CONTEXT = 1000
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    scripts = [Script(id="hello", text="Hello there."), Script(id="long", text="word " * 300)]
    serving = scripted(*scripts, max_model_len=CONTEXT)
    serving.served_model_names = (MODEL, "org/other")
    with running(serving) as live:
        live.client.headers["x-script-id"] = "hello"
        yield live


def last_sampling(server: LiveServer) -> SamplingParams:
    assert isinstance(server.serving, ScriptedServing)
    return server.serving.scripted_engine.requests[-1].sampling


@pytest.mark.parametrize("body", [{"unheard_of": 1}, {"stream_options": {"x": 1}}, {"metadata": {"a": {"b": 1}}}])
def test_unknown_fields_are_ignored(server: LiveServer, body: dict[str, Any]) -> None:
    assert server.chat(**body).status_code == 200
    message = {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {}}], "extra": 1}
    assert server.post("/v1/chat/completions", {"messages": [message], **body}).status_code == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tool_choice", {"type": "function", "function": {"name": "get_weather"}, "more": 1}),
        ("tool_choice", {"type": "function", "function": {"name": "get_weather", "more": 1}}),
        ("response_format", {"type": "text", "more": 1}),
    ],
)
def test_unknown_fields_are_errors_where_a_wrong_key_is_a_bug(server: LiveServer, field: str, value: Any) -> None:
    assert field in str(error_of(server.chat(tools=[WEATHER], **{field: value}))["param"])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_tokens", "1"),
        ("max_tokens", 1.5),
        ("max_tokens", True),
        ("temperature", "0.5"),
        ("stream", "yes"),
        ("stream", 1),
        ("n", "2"),
        ("stop", 7),
        ("seed", "x"),
        ("logit_bias", [1]),
        ("tools", {}),
        ("chat_template_kwargs", "x"),
    ],
)
def test_wrong_types_are_refused(server: LiveServer, field: str, value: Any) -> None:
    assert field in error_of(server.chat(**{field: value}))["message"]


def test_a_whole_float_is_an_integer(server: LiveServer) -> None:
    assert server.chat(max_tokens=3.0, n=1.0).json()["usage"]["completion_tokens"] == 3


def test_null_means_absent(server: LiveServer) -> None:
    fields = ["model", "max_tokens", "temperature", "top_p", "seed", "stop", "n", "stream", "tools", "tool_choice"]
    fields += ["logprobs", "logit_bias", "response_format", "stream_options", "user", "max_completion_tokens"]
    given = server.chat(**dict.fromkeys(fields))
    assert given.status_code == 200
    assert last_sampling(server).max_tokens == 256
    assert server.complete(**dict.fromkeys(["logprobs", "echo", "best_of", "suffix", "model"])).status_code == 200


@pytest.mark.parametrize("name", [MODEL, "org/other", None])
def test_served_names_are_accepted_and_shown(server: LiveServer, name: str | None) -> None:
    assert server.chat(model=name).json()["model"] == (name or MODEL)
    assert server.complete(model=name).json()["model"] == (name or MODEL)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["nope", ""])
def test_another_name_is_404_and_lists_the_names(server: LiveServer, path: str, stream: bool, name: str) -> None:
    prompt = {"messages": [{"role": "user", "content": "x"}]} if "chat" in path else {"prompt": "x"}
    error = error_of(server.post(path, {"model": name, "stream": stream, **prompt}), 404)
    assert (error["code"], error["param"]) == ("model_not_found", "model")
    assert MODEL in error["message"] and "org/other" in error["message"]


def test_max_tokens_defaults_to_256_and_max_completion_tokens_wins(server: LiveServer) -> None:
    usage = server.chat(headers=script("long")).json()["usage"]
    assert usage["completion_tokens"] == 256
    assert server.chat(max_tokens=9, max_completion_tokens=4).json()["usage"]["completion_tokens"] == 4
    assert server.complete(headers=script("long")).json()["usage"]["completion_tokens"] == 256


def test_max_tokens_beyond_the_context_is_clamped(server: LiveServer) -> None:
    body = server.complete("x" * 990, max_tokens=128_000, headers=script("long")).json()
    assert body["usage"]["completion_tokens"] == 10
    assert body["choices"][0]["finish_reason"] == "length"
    assert server.chat(max_tokens=1_000_000, min_tokens=5000).status_code == 200


def test_a_prompt_that_does_not_fit_is_refused_with_both_numbers(server: LiveServer) -> None:
    for response in (server.complete("x" * 1000), server.complete([5] * 1200), server.chat("y" * 2000)):
        error = error_of(response)
        assert error["code"] == "context_length_exceeded"
        assert str(CONTEXT) in error["message"]
    assert "1200" in error_of(server.complete([5] * 1200))["message"]
    assert server.complete("x" * 1000, max_tokens=0, echo=True).status_code == 200


def test_a_prompt_far_too_long_is_not_tokenized_as_a_whole(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    original = server.serving.tokenizer.encode

    def encode(text: str, add_special_tokens: bool = True) -> list[int]:
        encoded.append(len(text))
        return original(text, add_special_tokens)

    monkeypatch.setattr(server.serving.tokenizer, "encode", encode)
    for response in (server.complete("x" * 500_000), server.chat("x" * 500_000)):
        error = error_of(response)
        assert error["code"] == "context_length_exceeded"
        about = re.search(r"about (\d+) tokens", error["message"])
        assert about and abs(int(about[1]) - 500_000) < 1000
    assert max(encoded) == 16 * CONTEXT


def test_all_sampling_parameters_reach_the_engine(server: LiveServer) -> None:
    given = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 7,
        "min_p": 0.1,
        "presence_penalty": 0.5,
        "frequency_penalty": -0.5,
        "repetition_penalty": 1.1,
        "seed": -(2**63),
        "min_tokens": 2,
        "ignore_eos": True,
        "skip_special_tokens": False,
        "include_stop_str_in_output": True,
    }
    more = {"logit_bias": {"65": -5.5}, "stop": ["zz"], "stop_token_ids": [66], "max_tokens": 5}
    for post in (server.chat, server.complete):
        assert post(**given, **more).status_code == 200
        sampling = last_sampling(server)
        assert {name: getattr(sampling, name) for name in given} == given
        assert sampling.logit_bias == {65: -5.5}
        assert (sampling.stop_list, tuple(sampling.stop_token_ids)) == (("zz",), (66,))


def test_defaults_come_from_the_request_then_the_model_then_the_table(server: LiveServer) -> None:
    server.serving.sampling_defaults = {"temperature": 0.1, "top_k": 3}
    try:
        server.complete(temperature=0.7)
        sampling = last_sampling(server)
        assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.7, 3, 1.0)
    finally:
        server.serving.sampling_defaults = {}
    server.complete()
    assert last_sampling(server).temperature == 1.0


def test_a_tiny_temperature_is_greedy(server: LiveServer) -> None:
    server.complete(temperature=1e-9)
    assert last_sampling(server).is_greedy


def test_n_samples_have_seeds_of_their_own(server: LiveServer) -> None:
    body = server.complete(["a", "b"], n=2, seed=2**63 - 1, max_tokens=2).json()
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
    assert isinstance(server.serving, ScriptedServing)
    requests = list(server.serving.scripted_engine.requests)[-4:]
    seeds = {tuple(request.prompt_token_ids): set() for request in requests}
    for request in requests:
        seeds[tuple(request.prompt_token_ids)].add(request.sampling.seed)
    assert list(seeds.values()) == [{2**63 - 1, -(2**63)}] * 2
    server.chat(n=2)
    assert last_sampling(server).seed is None


@pytest.mark.parametrize("stop", ["there", ["xx", "there"], ["there"] + [f"s{i}" for i in range(15)]])
def test_stop_strings_end_the_answer_and_are_not_returned(server: LiveServer, stop: Any) -> None:
    choice = server.chat(stop=stop).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Hello ", "stop")
    streamed = stream_json(server.chat(stop=stop, stream=True))
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in streamed) == "Hello "
    assert server.complete(stop=stop, include_stop_str_in_output=True).json()["choices"][0]["text"] == "Hello there"


@pytest.mark.parametrize("stop", [None, []])
def test_no_stop_strings(server: LiveServer, stop: Any) -> None:
    assert server.complete(stop=stop).json()["choices"][0]["text"] == "Hello there."


@pytest.mark.parametrize("stop", ["", [""], ["a", ""], [f"s{i}" for i in range(17)], "s" * 1025, ["s" * 1025]])
def test_stop_strings_that_are_refused(server: LiveServer, stop: Any) -> None:
    assert "stop" in error_of(server.complete(stop=stop))["message"]


def test_a_named_tool_must_be_declared(server: LiveServer) -> None:
    choice = {"type": "function", "function": {"name": "nope"}}
    error = error_of(server.chat(tools=[WEATHER], tool_choice=choice))
    assert error["param"] == "tool_choice" and "get_weather" in error["message"]


UNSUPPORTED = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}


@pytest.mark.parametrize("stream", [False, True])
def test_a_schema_that_can_not_be_enforced_is_refused_by_its_keyword(server: LiveServer, stream: bool) -> None:
    output = {"type": "json_schema", "json_schema": {"name": "x", "schema": UNSUPPORTED}}
    error = error_of(server.chat(response_format=output, stream=stream))
    assert error["param"] == "response_format" and "uniqueItems" in error["message"]
    tool = {"type": "function", "function": {"name": "f", "parameters": UNSUPPORTED}}
    error = error_of(server.chat(tools=[WEATHER, tool], tool_choice="required", stream=stream))
    assert error["param"] == "tools" and "uniqueItems" in error["message"] and "tools[1], 'f'" in error["message"]
    assert server.chat(tools=[tool]).status_code == 200  # nothing is promised of it
    tool["function"]["strict"] = True  # type: ignore[index]  # a literal of nested dicts
    assert "uniqueItems" in error_of(server.chat(tools=[tool], stream=stream))["message"]


@pytest.mark.parametrize(
    "schema", [{"type": "strin"}, {"properties": 5}, {"type": "string", "pattern": "("}, {"enum": []}]
)
def test_an_invalid_schema_is_refused(server: LiveServer, schema: dict[str, Any]) -> None:
    output = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert error_of(server.chat(response_format=output))["param"] == "response_format"


def test_a_call_that_must_come_needs_a_tool_and_an_end(server: LiveServer) -> None:
    assert error_of(server.chat(tool_choice="required"))["param"] == "tool_choice"
    assert error_of(server.chat(tools=[WEATHER], tool_choice="required", ignore_eos=True))["param"] == "ignore_eos"


def test_text_format_and_auto_are_accepted(server: LiveServer) -> None:
    assert server.chat(tools=[WEATHER], tool_choice="auto", response_format={"type": "text"}).status_code == 200


def test_fields_without_effect_by_contract(server: LiveServer) -> None:
    fields: dict[str, Any] = {"user": "u", "metadata": {"a": "b"}, "store": True, "service_tier": "auto"}
    fields |= {"prompt_cache_key": "k", "safety_identifier": "s", "verbosity": "low"}
    assert server.chat(**fields).status_code == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("audio", {"voice": "x"}),
        ("modalities", ["audio"]),
        ("prediction", {"type": "content", "content": "x"}),
        ("web_search_options", {}),
    ],
)
def test_what_we_do_not_do_is_refused_by_name(server: LiveServer, field: str, value: Any) -> None:
    assert field in error_of(server.chat(**{field: value}))["message"]


@pytest.mark.parametrize(("field", "value"), [("suffix", "x"), ("best_of", 3)])
def test_what_completions_do_not_do(server: LiveServer, field: str, value: Any) -> None:
    assert field in error_of(server.complete(**{field: value}))["message"]
    assert server.complete(n=2, best_of=2).status_code == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("top_p", 0),
        ("top_p", 1.5),
        ("top_k", -2),
        ("min_p", 1.1),
        ("presence_penalty", 2.5),
        ("frequency_penalty", -2.5),
        ("repetition_penalty", 0),
        ("max_tokens", -1),
        ("max_tokens", 10_000_000),
        ("max_completion_tokens", 10_000_000),
        ("n", 0),
        ("n", 1000),
        ("seed", 2**63),
        ("logit_bias", {"65": 101}),
        ("logit_bias", {"x": 1}),
        ("logit_bias", {"999999": 1}),
        ("stop_token_ids", [999_999]),
        ("stop_token_ids", [-1]),
        ("min_tokens", -1),
    ],
)
def test_values_out_of_range(server: LiveServer, field: str, value: Any) -> None:
    for post in (server.chat, server.complete):
        assert field in error_of(post(**{field: value}))["message"]


@pytest.mark.parametrize(("post", "count"), [("chat", 21), ("complete", 21)])
def test_at_most_twenty_alternatives(server: LiveServer, post: str, count: int) -> None:
    fields = {"logprobs": True, "top_logprobs": count} if post == "chat" else {"logprobs": count}
    assert "logprobs" in error_of(getattr(server, post)(**fields))["message"]
    assert "logprobs" in error_of(server.chat(top_logprobs=2))["message"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-1e999"])
def test_numbers_that_are_not_finite(server: LiveServer, number: str) -> None:
    body = f'{{"prompt": "hi", "temperature": {number}}}'
    headers = {"content-type": "application/json"}
    error = error_of(server.client.post("/v1/completions", content=body, headers=headers))
    assert "temperature" in error["message"]


@pytest.mark.parametrize("prompt", [[1, 2, 999_999], [-5], [], [[]], [[1], []], [1, "a"], [True], 5, {}, [[1.5]]])
def test_prompts_that_are_refused(server: LiveServer, prompt: Any) -> None:
    assert "prompt" in error_of(server.complete(prompt))["message"]


@pytest.mark.parametrize(
    ("prompt", "num_choices", "num_tokens"),
    [
        ("alpha", 1, 5),
        (["alpha", "beta"], 2, 9),
        (["alpha"], 1, 5),
        ([[1, 2, 3], [4, 5]], 2, 5),
        ([1, 2, 3], 1, 3),
        ([""], 1, 1),
        ("", 1, 1),
    ],
)
def test_prompts_of_every_form(server: LiveServer, prompt: Any, num_choices: int, num_tokens: int) -> None:
    body = server.complete(prompt, max_tokens=3).json()
    assert [choice["index"] for choice in body["choices"]] == list(range(num_choices))
    assert body["usage"]["prompt_tokens"] == num_tokens
    assert body["usage"]["completion_tokens"] == 3 * num_choices


def test_ids_reach_the_engine_verbatim(server: LiveServer) -> None:
    server.complete([256, 65, 257])
    assert isinstance(server.serving, ScriptedServing)
    assert server.serving.scripted_engine.requests[-1].prompt_token_ids == [256, 65, 257]


def test_json_nested_beyond_reason(server: LiveServer) -> None:
    headers = {"content-type": "application/json"}
    for depth in (1000, 200_000):
        body = '{"prompt": "x", "metadata": {"a": ' + "[" * depth + "]" * depth + "}}"
        error_of(server.client.post("/v1/completions", content=body, headers=headers))
