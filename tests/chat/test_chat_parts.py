"""The terminal chat's parts: answers out of chunks, what is printed, commands, flags, what a turn leaves behind."""

from __future__ import annotations

import io
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from atom.chat.answer import Answer, Call
from atom.chat.client import ChatError, api_base
from atom.chat.commands import CommandError, run_command
from atom.chat.flags import parse_flags
from atom.chat.printers import PlainPrinter, TerminalPrinter, printable
from atom.chat.session import CANCELLED, Session, Settings
from atom.chat.tools_file import load_tools

TOOL = {"type": "function", "function": {"name": "get_weather"}}


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call_piece(index: int, arguments: str, name: str | None = None) -> dict[str, Any]:
    head = {"id": f"call_{index}", "type": "function"} if name else {}
    return {"index": index, **head, "function": {"name": name, "arguments": arguments}}


WEATHER = [
    chunk(role="assistant", content=""),
    chunk(reasoning_content="A tool ", reasoning="A tool "),
    chunk(reasoning="fits."),
    chunk(content="Let me look."),
    chunk(tool_calls=[call_piece(0, "", "get_weather")]),
    chunk(tool_calls=[call_piece(0, '{"city":')]),
    chunk(tool_calls=[call_piece(0, ' "Oslo"}')]),
    chunk("tool_calls"),
    {"choices": [], "usage": {"completion_tokens": 12, "ttft_s": 0.05, "tpot_s": 0.01}},
]
HELLO = [chunk(content="Hel"), chunk(content="lo."), chunk("stop")]


class FakeServer:
    """Plays lists of chunks, one a request; an exception in a list is raised there."""

    def __init__(self, *answers: list[Any]) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.num_closed = 0

    def stream(self, request: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
        self.requests.append(json.loads(json.dumps(request)))
        try:
            for item in self.answers.pop(0):
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self.num_closed += 1


def session_of(*answers: list[Any], **settings: Any) -> tuple[Session, FakeServer, io.StringIO]:
    server, out = FakeServer(*answers), io.StringIO()
    return Session(server, Settings("m", **settings), PlainPrinter(out, io.StringIO())), server, out


def test_an_answer_is_the_sum_of_its_chunks() -> None:
    answer = Answer()
    for item in WEATHER:
        answer.apply(item)
    assert (answer.thought, answer.text, answer.finish) == ("A tool fits.", "Let me look.", "tool_calls")
    assert answer.calls == {0: Call("call_0", "get_weather", '{"city": "Oslo"}')}
    message = answer.message()
    assert message is not None and message["reasoning_content"] == "A tool fits."
    assert message["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city": "Oslo"}'}


def test_a_call_that_was_cut_off_is_not_part_of_the_conversation() -> None:
    answer = Answer()
    for item in WEATHER[4:6]:
        answer.apply(item)
    assert answer.whole_calls() == [] and answer.message() is None


def test_a_call_is_whole_when_the_answer_ended_whatever_its_arguments_are() -> None:
    """Some formats let text pass that is no JSON; some servers send nothing for a call without arguments."""
    pieces = [call_piece(0, "city: Oslo", "f"), call_piece(1, '{"a": 1}', "g"), call_piece(2, "", "h")]
    asked = [chunk(tool_calls=[piece]) for piece in pieces]
    session, server, out = session_of([*asked, chunk("tool_calls")], HELLO)
    calls = session.ask("hi")
    assert [call.name for call in calls] == ["f", "g", "h"]
    values = [json.loads(line)["arguments"] for line in out.getvalue().splitlines()]
    assert values == ["city: Oslo", {"a": 1}, {}]
    session.give_results(calls, ["1", "2", "3"])
    assert [message["role"] for message in server.requests[1]["messages"]] == ["user", "assistant"] + ["tool"] * 3
    session, _, _ = session_of([*asked, chunk("length")])
    assert [call.name for call in session.ask("hi")] == ["g"]


def test_indexes_may_be_null_or_absent() -> None:
    answer = Answer()
    for name, index in (("f", {"index": None}), ("g", {})):
        piece = {**index, "function": {"name": name, "arguments": "{}"}}
        answer.apply({"choices": [{**index, "delta": {"tool_calls": [piece]}}]})
    assert [call.name for call in answer.whole_calls()] == ["f", "g"]


def test_a_turn_is_kept_and_goes_into_the_next_request() -> None:
    session, server, out = session_of(HELLO, HELLO, system="Be brief.", temperature=0.5, thinking=False)
    assert session.ask("hi") == [] and out.getvalue() == "Hello.\n"
    session.ask("again")
    roles = [(message["role"], message["content"]) for message in server.requests[1]["messages"]]
    assert roles == [("system", "Be brief."), ("user", "hi"), ("assistant", "Hello."), ("user", "again")]
    assert server.requests[0]["temperature"] == 0.5 and "max_tokens" not in server.requests[0]
    assert server.requests[0]["chat_template_kwargs"] == {"enable_thinking": False}


def test_a_failed_turn_leaves_nothing() -> None:
    session, server, _ = session_of([chunk(content="Hel"), ChatError("no", 500)], HELLO)
    with pytest.raises(ChatError):
        session.ask("first")
    session.ask("second")
    assert [message["content"] for message in server.requests[1]["messages"]] == ["second"]


def test_an_interrupt_ends_the_request_and_keeps_what_was_said() -> None:
    session, server, _ = session_of([chunk(content="Hel"), KeyboardInterrupt()], [KeyboardInterrupt()], HELLO)
    assert session.ask("first") == [] and server.num_closed == 1
    session.ask("second")
    session.ask("third")
    assert [message["content"] for message in server.requests[2]["messages"]] == ["first", "Hel", "third"]


def test_calls_are_answered_or_cancelled() -> None:
    session, server, _ = session_of(WEATHER, HELLO, WEATHER, HELLO, tools=[TOOL])
    calls = session.ask("weather?")
    assert [call.name for call in calls] == ["get_weather"] and server.requests[0]["tools"] == [TOOL]
    assert session.give_results(calls, ["18"]) == []
    assert server.requests[1]["messages"][-1] == {"role": "tool", "tool_call_id": "call_0", "content": "18"}
    session.cancel(session.ask("weather?"))
    session.ask("never mind")
    assert [message["content"] for message in server.requests[3]["messages"][-2:]] == [CANCELLED, "never mind"]


def test_thoughts_go_back_within_their_turn_only() -> None:
    session, server, _ = session_of(WEATHER, WEATHER, HELLO, HELLO)
    for _ in range(2):
        calls = session.ask("weather?")
        session.give_results(calls, ["18"]) if len(server.requests) > 1 else session.cancel(calls)
    session.ask("thanks")
    thoughts = [["reasoning_content" in message for message in request["messages"]] for request in server.requests]
    assert thoughts[2] == [False] * 4 + [True, False] and not any(thoughts[1]) and not any(thoughts[3])


def printed(answers: list[dict[str, Any]], colours: bool, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding, newline="")
    printer, answer = TerminalPrinter(out, colours), Answer()
    for item in answers:
        answer.apply(item)
        printer.update(answer)
    printer.finish(answer)
    return raw.getvalue().decode(encoding)


def test_a_terminal_shows_thought_answer_and_call_apart() -> None:
    text = printed(WEATHER, colours=False)
    box = '╭─ get_weather\n│ {"city": "Oslo"}\n╰─\n'
    assert text == f"A tool fits.\n\nLet me look.\n{box}12 tokens, first after 50 ms, 100 tok/s\n\n"
    assert "\x1b[2mA tool \x1b[0m" in printed(WEATHER, colours=True)
    assert '| {"city": "Oslo"}' in printed(WEATHER, colours=False, encoding="ascii")


def test_what_a_model_writes_can_not_steer_the_terminal() -> None:
    assert printable("a\x1b]0;title\x07b\x9b2Jc\rd\te\n") == "a]0;titleb2Jcd\te\n"
    text = printed([chunk(content="x\x1b[2Jy"), chunk(tool_calls=[call_piece(0, '"\x1b[H"', "f\x07")])], colours=False)
    assert "\x1b" not in text and "\x07" not in text and "x[2Jy" in text


def test_a_pipe_gets_the_answer_and_its_calls() -> None:
    out, err = io.StringIO(), io.StringIO()
    printer, answer = PlainPrinter(out, err), Answer()
    for item in WEATHER:
        answer.apply(item)
        printer.update(answer)
    printer.finish(answer)
    assert out.getvalue() == 'Let me look.\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n'
    assert err.getvalue() == "A tool fits.\n"


def test_commands(tmp_path: Path) -> None:
    session, _, _ = session_of(HELLO)
    session.ask("hi")
    assert run_command("/etc/hosts is a file", session) is None and run_command("hello", session) is None
    assert run_command("/system Be brief.", session) == "system: Be brief."
    assert "/save" in str(run_command("/help", session))
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([TOOL]))
    assert run_command(f"/tools {tools}", session) == "tools: get_weather"
    assert run_command("/thinking on", session) == "thinking: on"
    saved = tmp_path / "saved.json"
    run_command(f"/save {saved}", session)
    request = json.loads(saved.read_text())
    assert [message["role"] for message in request["messages"]] == ["system", "user", "assistant"]
    assert request["tools"] == [TOOL] and request["chat_template_kwargs"] == {"enable_thinking": True}
    wrong = ["/save", "/nonsense", "/thinking maybe", "/save ~nobody-here/x", "/tools ~nobody-here/x", "/save a\0b"]
    for command in (*wrong, f"/save {saved}", f"/tools {tmp_path / 'absent'}"):
        with pytest.raises(CommandError):
            run_command(command, session)
    run_command("/clear", session)
    run_command("/system -", session)
    run_command("/tools -", session)
    run_command("/thinking -", session)
    assert session.request() == {"model": "m", "messages": []}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "list of tools"),
        ("[", "no JSON"),
        ("[" * 100_000, "recursion"),
        ('[{"name": "f"}]', "tool 1"),
        ('[{"function": {"name": 1}}]', "tool 1"),
    ],
)
def test_a_tools_file_with_a_fault(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "tools.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=said):
        load_tools(str(path))


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("https://api.example/v1/", "https://api.example/v1"),
        ("https://api.example/openai/v1", "https://api.example/openai/v1"),
    ],
)
def test_addresses(url: str, base: str) -> None:
    assert api_base(url) == base


def test_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    options = parse_flags(["--max_tokens", "5", "--no-thinking"])
    assert (options.base_url, options.max_tokens, options.thinking) == ("http://127.0.0.1:8000/v1", 5, False)
    assert options.api_key == "from-environment" and parse_flags(["--api-key", "k"]).api_key == "k"


@pytest.mark.parametrize(
    "argv",
    [
        ["--base-url", "localhost:8000"],
        ["--temp", "1"],
        ["--temperature", "nan"],
        ["--max-tokens", "0"],
        ["--tools", "/"],
        ["--api-key", "two\nlines"],
        ["--api-key", "schlüssel"],
    ],
)
def test_flags_that_can_not_be(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse_flags(argv)
    said = capsys.readouterr().err
    assert stopped.value.code == 2 and argv[0] in said
    assert argv[0] != "--api-key" or argv[1] not in said


def test_a_key_of_the_environment(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-a-file\n")
    assert parse_flags([]).api_key == "from-a-file"
    monkeypatch.setenv("OPENAI_API_KEY", "schlüssel")
    with pytest.raises(SystemExit):
        parse_flags([])
    said = capsys.readouterr().err
    assert "OPENAI_API_KEY" in said and "schlüssel" not in said
