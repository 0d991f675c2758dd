"""Cases about what of the model's text becomes content, reasoning and calls, and about stop strings."""

from __future__ import annotations

from atom.entrypoints.scripted.script import Script
from tests.entrypoints.cases.registry import Given, case, chat_answer, ok
from tests.entrypoints.live import stream_json

CLOSES_WITHOUT_OPENING = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: </think>{% endif %}"
)


@case(
    "B17",
    "With `tool_choice: none` a call is dropped and the text around it stays, whole and streamed.",
    differs="Without any tools the call's text stays in the answer as it was written: a request that declares no tools"
    " has no call to suppress, and may be asking what a call looks like (rule D2 of the formats).",
)
def _(given: Given) -> None:
    text = given.input["scripted_model_output"]
    before, after = text.partition("<tool_call>")[0], text.partition("</tool_call>")[2]
    for stream in (False, True):
        answer = chat_answer(given.play(stream=stream))
        assert answer == {"content": before + after, "reasoning": "", "calls": [], "finish_reason": "stop"}
        answer = chat_answer(given.play(stream=stream, tools=None, tool_choice=None))
        assert answer == {"content": text, "reasoning": "", "calls": [], "finish_reason": "stop"}


@case(
    "B21",
    "With thinking switched off the answer is content, also for a template that closes a thought it never opened.",
    scripts=[Script(id="B21 closes", text="The sky is blue.", chat_template=CLOSES_WITHOUT_OPENING, dialect="think")],
)
def _(given: Given) -> None:
    for stream in (False, True):
        for script in ("B21", "B21 closes"):
            answer = chat_answer(given.play(script=script, stream=stream))
            assert (answer["content"], answer["reasoning"]) == (given.input["scripted_model_output"], "")


@case("B22", "A thought that the limit cuts stays a thought: no content, `length`, and every token counted.")
def _(given: Given) -> None:
    whole = given.play()
    answer = chat_answer(whole)
    assert answer == {"content": "", "reasoning": "s", "calls": [], "finish_reason": "length"}  # a token is a byte here
    assert ok(whole)["usage"]["completion_tokens"] == 8
    assert chat_answer(given.play(stream=True)) == answer
    longer = chat_answer(given.play(max_tokens=20))
    assert longer["reasoning"] == given.input["scripted_model_output"].removeprefix("<think>")[:13]
    assert longer["content"] == "" and longer["finish_reason"] == "length"


@case("B23", "A stop string is looked for in the answer, not in the thought (decision 0020), whole and streamed.")
def _(given: Given) -> None:
    for stream in (False, True):
        answer = chat_answer(given.play(stream=stream))
        assert answer["reasoning"] == "Maybe 42, let me add again."
        assert (answer["content"], answer["finish_reason"]) == ("It is ", "stop")


@case("B25", "A thought of an earlier turn reaches a template that reads it, and changes nothing for one that doesn't.")
def _(given: Given) -> None:
    ok(given.play(script="ok"))
    assert "NOTE-7731" in given.last_prompt()
    ok(given.play(script="plain template"))
    assert "NOTE-7731" not in given.last_prompt()
    request = given.requests[0]
    with_thought = ok(given.ask(request))["usage"]["prompt_tokens"]
    del request["body"]["messages"][1]["reasoning_content"]
    assert with_thought > ok(given.ask(request))["usage"]["prompt_tokens"]


@case(
    "B33",
    "Nothing of a stop string that spans tokens is sent; streamed and whole text are equal.",
    scripts=[Script(id="B33", text=" green blue yellow", chunk=3)],
)
def _(given: Given) -> None:
    streamed, whole = given.requests
    (choice,) = ok(given.play(whole))["choices"]
    assert (choice["text"], choice["finish_reason"]) == (" gr", "stop")
    choices = [chunk["choices"][0] for chunk in stream_json(given.play(streamed))]
    assert "".join(choice["text"] for choice in choices) == " gr"
    assert choices[-1]["finish_reason"] == "stop"


@case("B35", "A stop string that nothing resembles delays nothing: the chunks are those of the request without it.")
def _(given: Given) -> None:
    with_stop, without = (
        [chunk["choices"][0]["delta"].get("content") for chunk in stream_json(given.play(script="B35", stop=stop))]
        for stop in (given.requests[0]["body"]["stop"], None)
    )
    assert with_stop == without and len(with_stop) > 10
    assert chat_answer(given.ask(given.requests[0])) == chat_answer(given.ask(given.requests[0], stop=None))


@case("B36", "An empty stop string is a 400 that names `stop`; `[]` and null mean none; a string is a list of one.")
def _(given: Given) -> None:
    answers = [given.ask(request) for request in given.requests]
    assert [answer.status_code for answer in answers] == [400, 400, 200, 200, 400, 200, 200]
    for answer in answers:
        if answer.status_code == 400:
            assert "stop" in answer.json()["error"]["param"]
    free, also_free = answers[2].json()["choices"][0], answers[3].json()["choices"][0]
    assert free == also_free and free["text"]
    request = given.requests[5]
    assert ok(given.ask(request))["choices"] == ok(given.ask(request, stop=["three"]))["choices"]
    assert ok(given.ask(request, stop=[str(number) for number in range(16)]))
