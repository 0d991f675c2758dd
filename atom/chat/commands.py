"""What begins with a slash: commands of the terminal chat.

Owns their names, texts and effects on the session. Anything else that begins with a slash, such as a path, is said to
the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from atom.chat.session import Session
from atom.chat.tools_file import load_tools, tool_names

HELP = """\
/system TEXT      the system prompt from here on; /system alone shows it, /system - removes it
/tools FILE       offer the tools of a JSON file; /tools alone names them, /tools - removes them
/thinking on|off  whether the model thinks first; /thinking - leaves it to the model
/clear            begin a new conversation
/save FILE        write the conversation as a request, in JSON
/help             this list
Enter sends, Alt+Enter breaks the line, arrows find earlier lines, Ctrl-C interrupts, Ctrl-D leaves."""
_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)


class CommandError(Exception):
    """A command that can not be done; the message is for people."""


def run_command(text: str, session: Session) -> str | None:
    """Do the command and return what there is to say; None when the text is no command. Raises CommandError."""
    match = _COMMAND.fullmatch(text)
    if match is None:
        return None
    name, argument = match[1], (match[2] or "").strip()
    command = COMMANDS.get(name)
    if command is None:
        raise CommandError(f"there is no /{name}; /help lists the commands")
    return command(argument, session)


def _help(argument: str, session: Session) -> str:
    return HELP


def _clear(argument: str, session: Session) -> str:
    session.clear()
    return "A new conversation."


def _system(argument: str, session: Session) -> str:
    if argument:
        session.settings.system = "" if argument == "-" else argument
    return f"system: {session.settings.system}" if session.settings.system else "no system prompt"


def _tools(argument: str, session: Session) -> str:
    if argument:
        try:
            session.settings.tools = [] if argument == "-" else load_tools(argument)
        except ValueError as error:
            raise CommandError(str(error)) from None
    return f"tools: {tool_names(session.settings.tools)}" if session.settings.tools else "no tools"


def _thinking(argument: str, session: Session) -> str:
    choices = {"on": True, "off": False, "-": None}
    if argument not in choices:
        raise CommandError("/thinking takes on, off or -")
    session.settings.thinking = choices[argument]
    return "thinking: " + ("as the model likes" if argument == "-" else argument)


def _save(argument: str, session: Session) -> str:
    if not argument:
        raise CommandError("/save takes the name of a file")
    text = json.dumps(session.request(), indent=2, ensure_ascii=False) + "\n"
    try:
        with Path(argument).expanduser().open("x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except FileExistsError:
        raise CommandError(f"{argument} exists already; choose another name") from None
    except OSError as error:
        raise CommandError(f"{argument}: {error.strerror}") from None
    except (RuntimeError, ValueError) as error:  # ~NOBODY, a null byte
        raise CommandError(f"{argument}: {error}") from None
    return f"saved to {argument}"


COMMANDS: dict[str, Callable[[str, Session], str]] = {
    "help": _help,
    "clear": _clear,
    "system": _system,
    "tools": _tools,
    "thinking": _thinking,
    "save": _save,
}
