"""Cases about requests: what is refused, and what of a conversation reaches the template."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator

from tests.entrypoints.cases.registry import MODEL, Given, case, ok
from tests.entrypoints.live import error_of


@case("B40", "A prompt that is too long is a 400 with both numbers, streamed or not; the next request is answered.")
def _(given: Given) -> None:
    limit = ok(given.model.get("/v1/models"))["data"][0]["max_model_len"]
    text = "word " * (2 * limit)
    length = ok(given.model.post("/tokenize", json={"prompt": text}))["count"]
    completion, chat = given.requests
    chat["body"]["messages"][0]["content"] = text
    for response in (given.ask(completion, prompt=text), given.ask(chat)):
        error = error_of(response)
        assert error["code"] == "context_length_exceeded" and str(limit) in error["message"]
    assert str(length) in error_of(given.ask(completion, prompt=text))["message"]
    assert ok(given.ask(completion, prompt="word"))


def _is_wrong(field: str, body: str) -> bool:
    """Whether the field is the wrong one. All have max_tokens; it is the wrong one where it is not 2."""
    return f'"{field}"' in body and (field != "max_tokens" or '"max_tokens":2' not in body)


@case("B44", "Values that are no number or outside their range are a 4xx that names the field; 1e-9 is temperature 0.")
def _(given: Given) -> None:
    *wrong, tiny = given.input["raw_bodies"]
    for body in wrong:
        field = next(key for key in ("temperature", "top_p", "n", "max_tokens") if _is_wrong(key, body))
        error = error_of(given.send_raw(given.input["path"], body))
        assert field in error["message"] or error["param"] == field, (body, error)
        assert given.model.get("/health").status_code == 200
    greedy = tiny.replace("1e-9", "0")
    answers = [ok(given.send_raw(given.input["path"], body))["choices"] for body in (tiny, greedy)]
    assert answers[0] == answers[1]


@case(
    "B47", "A turn that calls may have null, no or empty content; the call reaches the prompt, the word None doesn't."
)
def _(given: Given) -> None:
    prompts = set()
    for request in given.requests:
        ok(given.ask(request))
        ok(given.play(request, script="ok"))
        prompts.add(given.last_prompt())
    (prompt,) = prompts
    assert "get_weather" in prompt and "Ulm" in prompt and "None" not in prompt


@case("B48", "Arguments of an earlier call reach the template as a mapping, whether they came as text or as an object.")
def _(given: Given) -> None:
    request = given.requests[0]
    ok(given.ask(request))
    ok(given.play(request, script="ok"))
    as_text = given.last_prompt()
    function = request["body"]["messages"][1]["tool_calls"][0]["function"]
    function["arguments"] = json.loads(function["arguments"])
    ok(given.play(request, script="ok"))
    assert given.last_prompt() == as_text and "<parameter=limit>2" in as_text.replace("\n", "")


@case("B49", "Text parts are joined in order; no parts and empty content are answered; an image is refused.")
def _(given: Given) -> None:
    parts, nothing, image, empty = given.requests
    ok(given.play(parts, script="ok"))
    prompt = given.last_prompt()
    assert "SYS-1" in prompt and "PART-APART-B" in prompt and "type" not in prompt
    ok(given.ask(nothing))
    ok(given.ask(empty))
    assert "image" in error_of(given.ask(image))["message"]


@case("B50", "Developer and late system messages are answered; an unknown role and no messages at all are a 400.")
def _(given: Given) -> None:
    *right, unknown, none = given.requests
    for request in right:
        ok(given.ask(request))
        ok(given.play(request, script="ok"))
        assert all(message["content"] in given.last_prompt() for message in request["body"]["messages"])
    assert "wizard" in error_of(given.ask(unknown))["message"]
    assert "messages" in error_of(given.ask(none))["message"]


@case("B51", "An empty list of calls in an earlier turn is as if it were not there.")
def _(given: Given) -> None:
    request = given.requests[0]
    prompts = []
    for _ in range(2):
        ok(given.play(request, script="ok"))
        prompts.append(given.last_prompt())
        request["body"]["messages"][1].pop("tool_calls", None)
    assert prompts[0] == prompts[1]


@case(
    "B52",
    "A body that is no JSON object, or lacks what it needs, is a 400 in the API's shape. Content may not be absent.",
)
def _(given: Given) -> None:
    for path in given.input["paths"]:
        for body in given.input["raw_bodies"]:
            error_of(given.send_raw(path, body))
    assert given.model.get("/health").status_code == 200


@case("B53", "A body with another Content-Type is a 415.")
def _(given: Given) -> None:
    (body,) = given.input["raw_bodies"]
    assert "text/plain" in error_of(given.send_raw(given.input["path"], body, "text/plain"), 415)["message"]
    assert given.model.post(given.input["path"], content=body.replace("$MODEL", MODEL).encode()).status_code == 415


@case(
    "B54",
    "Half a surrogate pair is a 400, streamed or not, and its error can be encoded; a whole pair is one character.",
)
def _(given: Given) -> None:
    half, half_streamed, pair, half_name = given.input["raw_bodies"]
    for body in (half, half_streamed, half_name):
        error_of(given.send_raw(given.input["path"], body))
    ok(given.send_raw(given.input["path"], pair))


@case("B55", "Token ids outside the vocabulary and empty or mixed prompts are a 400 that names the field.")
def _(given: Given) -> None:
    fields = ("prompt", "prompt", "prompt", "stop_token_ids", "logit_bias", "prompt")
    for request, field in zip(given.requests, fields, strict=True):
        assert field in error_of(given.ask(request))["message"]
        ok(given.ask(request, prompt=[1, 2], stop_token_ids=None, logit_bias=None))


@case(
    "B56",
    "An unknown or empty model name is a 404 that lists those served, streamed too; null means the model there is.",
)
def _(given: Given) -> None:
    unknown, listed, null, empty = given.requests
    for request in (unknown, empty):
        for stream in (False, True):
            error = error_of(given.ask(request, stream=stream), 404)
            assert error["param"] == "model" and MODEL in error["message"] and error["code"] == "model_not_found"
    names = [entry["id"] for entry in ok(given.ask(listed))["data"]]
    assert ok(given.ask(unknown, model=names[0]))["model"] == names[0]
    assert ok(given.ask(null))["model"] == MODEL


@case("B57", "A prompt of megabytes is refused while `/health` is answered and another stream goes on.")
def _(given: Given) -> None:
    request = given.requests[0]
    request["body"]["messages"][0]["content"] = "word " * (8 * 2**20 // 5)
    # Counted and not timed. What a held loop prevents is prevented each time; a busy machine is not always in the way.
    for _ in range(5):
        turns = _turns_while(given, lambda: error_of(given.ask(request))["code"] == "context_length_exceeded")
        if min(turns.values()) > 10:
            return
    raise AssertionError(f"nothing else was done while the prompt was read: {turns}")


def _turns_while(given: Given, work: Callable[[], bool]) -> dict[str, int]:
    """How often `/health` was answered, and how many lines of a stream came, while `work` was done."""
    turns = {"health": 0, "stream": 0}
    working, done = threading.Event(), threading.Event()

    def watch(name: str, steps: Iterator[object]) -> None:
        for _ in steps:
            if done.is_set():
                break
            turns[name] += working.is_set()

    def health() -> Iterator[object]:
        while True:
            yield given.model.get("/health").raise_for_status()

    def stream() -> Iterator[object]:
        body = {"prompt": "x", "max_tokens": 4000, "ignore_eos": True, "stream": True}
        with given.model.stream("POST", "/v1/completions", json=body) as response:
            yield from response.iter_lines()

    threads = [threading.Thread(target=watch, args=of) for of in (("health", health()), ("stream", stream()))]
    for thread in threads:
        thread.start()
    try:
        working.set()
        assert work()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    return turns
