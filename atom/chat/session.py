"""The conversation: what was said so far, and the turn that is on its way.

Owns what of a turn is kept: all of it when it ends or is interrupted with something said, nothing when it fails. Knows
neither the terminal nor HTTP.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol

from atom.chat.answer import Answer, Call
from atom.chat.printers import Printer

CANCELLED = "The user cancelled this call."


class Server(Protocol):
    """What a session needs of a client."""

    def stream(self, request: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
        """The chunks of an answer; closing it ends the request."""


@dataclass(slots=True)
class Settings:
    """What goes into every request. thinking: None leaves it to the model."""

    model: str
    system: str = ""
    tools: list[dict[str, Any]] = field(default_factory=list)
    temperature: float | None = None
    max_tokens: int | None = None
    thinking: bool | None = None


class Session:
    """One conversation with one server."""

    def __init__(self, server: Server, settings: Settings, printer: Printer) -> None:
        self.settings = settings
        self._server = server
        self._printer = printer
        self._messages: list[dict[str, Any]] = []
        self.was_interrupted = False  # the last answer

    def clear(self) -> None:
        """Forget what was said."""
        self._messages.clear()

    def request(self, added: list[dict[str, Any]] | None = None) -> dict[str, Any]:
        """The request that asks for the next answer, `added` being said first."""
        settings = self.settings
        system = [{"role": "system", "content": settings.system}] if settings.system else []
        request: dict[str, Any] = {
            "model": settings.model,
            "messages": [*system, *_without_old_thoughts([*self._messages, *(added or ())])],
        }
        if settings.tools:
            request["tools"] = settings.tools
        if settings.temperature is not None:
            request["temperature"] = settings.temperature
        if settings.max_tokens is not None:
            request["max_tokens"] = settings.max_tokens
        if settings.thinking is not None:
            request["chat_template_kwargs"] = {"enable_thinking": settings.thinking}
        return request

    def ask(self, text: str) -> list[Call]:
        """Say something and print the answer. Returns the calls whose results the model waits for.

        Raises ChatError, and then nothing was said. An interrupt ends the answer, not the session.
        """
        return self._run([{"role": "user", "content": text}])

    def give_results(self, calls: list[Call], results: list[str]) -> list[Call]:
        """Answer calls, in order; as `ask`."""
        return self._run(_results(calls, results))

    def cancel(self, calls: list[Call]) -> None:
        """Leave calls without a result; the model learns it with the next question."""
        self._messages += _results(calls, [CANCELLED] * len(calls))

    def _run(self, added: list[dict[str, Any]]) -> list[Call]:
        answer, note = Answer(), ""
        self.was_interrupted = False
        try:
            with closing(self._server.stream(self.request(added))) as chunks:
                for chunk in chunks:
                    answer.apply(chunk)
                    self._printer.update(answer)
        except KeyboardInterrupt:
            note, self.was_interrupted = "interrupted", True
        except Exception:
            if answer.thought or answer.text or answer.calls:
                self._printer.finish(answer, "not part of the conversation")
            raise
        self._printer.finish(answer, note)
        message = answer.message()
        if message is None:
            return []
        self._messages += [*added, message]
        calls = answer.whole_calls()
        if note and calls:
            self.cancel(calls)
            return []
        return calls


def _without_old_thoughts(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages, with the thoughts of this turn only: models go on from these, and servers refuse older ones."""
    turn = max((place for place, message in enumerate(messages) if message["role"] == "user"), default=0)
    return [
        {name: value for name, value in message.items() if name != "reasoning_content" or place > turn}
        for place, message in enumerate(messages)
    ]


def _results(calls: list[Call], results: list[str]) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool_call_id": call.id, "content": result}
        for call, result in zip(calls, results, strict=True)
    ]
