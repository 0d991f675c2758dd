"""`atom chat`: a conversation with a model behind an OpenAI-compatible server.

Owns the order of things: which model, then question and answer until the user leaves, or one question from a pipe.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from atom.chat.client import ChatClient, ChatError
from atom.chat.commands import CommandError, run_command
from atom.chat.flags import parse_flags
from atom.chat.printers import PlainPrinter, Printer, terminal_printer
from atom.chat.session import Session, Settings

if TYPE_CHECKING:
    from atom.chat.line_input import LineInput

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> None:
    """The command. Exits with 0, 1 when the server does not answer as it should, 2 for wrong flags, 130 for Ctrl-C."""
    options = parse_flags(argv)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a text stream of this interpreter
    client = ChatClient(options.base_url, options.api_key)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    printer: Printer = terminal_printer() if is_terminal else PlainPrinter(sys.stdout, sys.stderr)
    settings = Settings(
        model=options.model or "",
        system=options.system or "",
        tools=options.tools or [],
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        thinking=options.thinking,
    )
    session = Session(client, settings, printer)
    try:
        _choose_model(client, settings)
        if is_terminal:
            _converse(session, printer, options.base_url)
        else:
            _answer_pipe(session)
    except ChatError as error:
        printer.error(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader has left; the interpreter must not try to flush what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _choose_model(client: ChatClient, settings: Settings) -> None:
    """The model of the flags, when the server lists it or lists nothing; without the flag, the first in the list."""
    try:
        names = client.models()
    except ChatError as error:
        if settings.model and error.status in (404, 405):
            return  # a server without a list
        raise
    if not settings.model:
        if not names:
            raise ChatError("The server lists no model; give --model.")
        settings.model = names[0]
    elif names and settings.model not in names:
        raise ChatError(f"The model {settings.model!r} is not served here. Served: {', '.join(names)}.", 404)


def _answer_pipe(session: Session) -> None:
    """One question, one answer. Calls are printed; nobody is there to answer them."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="strict")  # a plain locale lets bytes that are no text through
    try:
        text = sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ChatError(f"standard input is no text in {error.encoding}") from None
    if not text.strip():
        raise ChatError("nothing was asked: standard input is empty")
    session.ask(text.removesuffix("\n"))
    if session.was_interrupted:
        raise KeyboardInterrupt


def _converse(session: Session, printer: Printer, url: str) -> None:
    from atom.chat.line_input import LineInput

    lines = LineInput()
    printer.note(f"{session.settings.model} at {url}. /help lists commands, Ctrl-C interrupts, Ctrl-D leaves.")
    while True:
        try:
            text = lines.ask("> ").strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if not text:
            continue
        try:
            said = run_command(text, session)
            if said is None:
                _turn(text, session, lines)
            else:
                printer.note(said)
        except (ChatError, CommandError) as error:
            printer.error(str(error))
        except KeyboardInterrupt:
            printer.note("interrupted")


def _turn(text: str, session: Session, lines: LineInput) -> None:
    """A question, and results for the calls that follow it, as long as there are calls."""
    calls = session.ask(text)
    while calls:
        try:
            results = [lines.ask(f"result of {call.name}> ", is_remembered=False) for call in calls]
        except (KeyboardInterrupt, EOFError):
            session.cancel(calls)
            return
        calls = session.give_results(calls, results)
