"""Cases about the shape of streams and about what usage says."""

from __future__ import annotations

from atom.entrypoints.scripted.script import Script
from conformance.http.streams import check_stream
from tests.entrypoints.cases.registry import Given, case, chat_answer, ok
from tests.entrypoints.live import frames_of, stream_json

OPERATIONS = {"/v1/chat/completions": "createChatCompletion", "/v1/completions": "createCompletion"}


@case("B26", "Usage comes only when it is asked for: one chunk without choices, last before `[DONE]`.")
def _(given: Given) -> None:
    for request, wanted in zip(given.requests, (False, True, False, True), strict=True):
        chunks = stream_json(given.ask(request))
        assert [chunk["choices"] == [] for chunk in chunks] == [False] * (len(chunks) - 1) + [wanted]
        if wanted:
            usage = chunks[-1]["usage"]
            assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0
            assert chunks[-2]["choices"][0]["finish_reason"] is not None
        else:
            assert all(chunk.get("usage") is None and len(chunk["choices"]) == 1 for chunk in chunks)


@case("B27", "A choice begins with its role, which is not said again.")
def _(given: Given) -> None:
    first, *rest = [chunk["choices"][0]["delta"] for chunk in stream_json(given.ask(given.requests[0]))]
    assert first == {"role": "assistant", "content": ""}
    assert rest and all("role" not in delta for delta in rest)


@case("B28", "All chunks of an answer have one id, one `created`, one model; another answer has another id.")
def _(given: Given) -> None:
    ids = set()
    for _ in range(2):
        chunks = stream_json(given.ask(given.requests[0]))
        assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
        assert chunks[0]["object"] == "chat.completion.chunk" and chunks[0]["id"].startswith("chatcmpl-")
        ids.add(chunks[0]["id"])
    assert len(ids) == 2


@case(
    "B29", "Every event is one line of data; `[DONE]` comes once, at the end; the connection serves the next request."
)
def _(given: Given) -> None:
    for request in given.requests:
        response = given.ask(request)
        assert response.headers["content-type"].startswith("text/event-stream")
        assert frames_of(response)[-1] == "[DONE]" and response.text.endswith("data: [DONE]\n\n")
        check_stream(OPERATIONS[request["path"]], response.text, request["body"])
        first = response.extensions["network_stream"].get_extra_info("client_addr")
        again = given.model.get("/health").extensions["network_stream"].get_extra_info("client_addr")
        assert first == again is not None


@case(
    "B30",
    "A failure inside a stream is an error frame, nothing after it; the server goes on.",
    scripts=[Script(id="B30", text="abcdef", fault_after=3)],
)
def _(given: Given) -> None:
    *chunks, error = frames_of(given.play())
    assert '"finish_reason":"' not in "".join(chunks) and '"content":"' in "".join(chunks)
    assert error.startswith('{"error":') and "Traceback" not in error and '"code"' in error
    assert given.scripted.client.get("/health").status_code == 200
    assert chat_answer(given.play(script="ok"))["content"] == "fine"


@case("B31", "A streamed completion: finish_reason null until the last text chunk, then usage that adds up.")
def _(given: Given) -> None:
    *chunks, usage = stream_json(given.ask(given.requests[0]))
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons[:-1] == [None] * (len(reasons) - 1) and reasons[-1] in ("length", "stop")
    assert usage["usage"]["total_tokens"] == usage["usage"]["prompt_tokens"] + usage["usage"]["completion_tokens"]
    assert all(chunk["object"] == "text_completion" and chunk["id"].startswith("cmpl-") for chunk in [*chunks, usage])


@case("B32", "`tool_calls` is on a delta only when there is a call in it.")
def _(given: Given) -> None:
    deltas = [chunk["choices"][0]["delta"] for chunk in stream_json(given.ask(given.requests[0]))]
    deltas += [chunk["choices"][0]["delta"] for chunk in stream_json(given.play(script="B17", max_tokens=500))]
    assert all(delta["tool_calls"] for delta in deltas if "tool_calls" in delta)
    assert any("tool_calls" in delta for delta in deltas), "there was a call"


@case("B38", "A prompt of token ids that ends inside a character is not echoed.")
def _(given: Given) -> None:
    ids = ok(given.model.post("/tokenize", json={"prompt": "Plain text then \U0001f9ed"}))["tokens"]
    assert len(ids) - len(ok(given.model.post("/tokenize", json={"prompt": "Plain text then "}))["tokens"]) >= 3
    chunks = stream_json(given.ask(given.requests[0], prompt=ids[:-1]))
    text = "".join(chunk["choices"][0]["text"] for chunk in chunks)
    assert "Plain" not in text and text.count("\ufffd") <= 1
    whole = ok(given.ask(given.requests[0], prompt=ids[:-1], stream=False))["choices"][0]["text"]
    assert whole == text


@case("B39", "`max_completion_tokens` limits a chat answer, and wins over `max_tokens`.")
def _(given: Given) -> None:
    for request in given.requests:
        answer = ok(given.ask(request))
        assert answer["usage"]["completion_tokens"] == 5
        assert answer["choices"][0]["finish_reason"] == "length"


@case("B41", "`length` when the limit ended it, `stop` when the model did; no tokens at all are `length` with no text.")
def _(given: Given) -> None:
    cut, ended, one = (ok(given.ask(request))["choices"][0] for request in given.requests)
    assert cut["finish_reason"] == "length" and one["finish_reason"] in ("length", "stop")
    assert ended["finish_reason"] in ("length", "stop")
    (stopped,) = ok(given.play(given.requests[0], script="ok", ignore_eos=False, max_tokens=64))["choices"]
    assert stopped["finish_reason"] == "stop"
    (nothing,) = ok(given.ask(given.requests[2], max_tokens=0))["choices"]
    assert (nothing["text"], nothing["finish_reason"]) == ("", "length")


@case("B42", "`n` and several prompts: sample j of prompt i is choice i·n+j, each with one finish_reason.")
def _(given: Given) -> None:
    chat, streamed, whole = given.requests
    for request, num in ((chat, 2), (streamed, 4)):
        response = given.ask(request)
        check_stream(OPERATIONS[request["path"]], response.text, request["body"])
        assert {choice["index"] for chunk in stream_json(response) for choice in chunk["choices"]} == set(range(num))
    answer = ok(given.ask(whole))
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    texts = [choice["text"] for choice in answer["choices"]]
    alone = [ok(given.ask(whole, prompt=prompt, n=1)) for prompt in whole["body"]["prompt"]]
    assert texts == [text for one in alone for text in [one["choices"][0]["text"]] * 2]  # temperature 0
    assert answer["usage"]["prompt_tokens"] == sum(one["usage"]["prompt_tokens"] for one in alone)
    assert answer["usage"]["completion_tokens"] == 2 * sum(one["usage"]["completion_tokens"] for one in alone)
