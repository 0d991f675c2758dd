"""Lines that a person types: with history, and pasted text taken as a whole.

Owns the keys. Enter ends the input, Alt+Enter breaks the line, arrow keys move and find what was typed before.
"""

from __future__ import annotations

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import DummyHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent


class LineInput:
    """The keyboard. What was typed is remembered while the program runs, and nowhere else."""

    def __init__(self) -> None:
        keys = KeyBindings()

        @keys.add("escape", "enter")
        def _break_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("enter")
        def _accept(event: KeyPressEvent) -> None:
            event.current_buffer.validate_and_handle()

        self._questions: PromptSession[str] = PromptSession(
            history=InMemoryHistory(), key_bindings=keys, multiline=True
        )
        self._others: PromptSession[str] = PromptSession(history=DummyHistory(), key_bindings=keys, multiline=True)

    def ask(self, prompt: str, is_remembered: bool = True) -> str:
        """One input. Raises KeyboardInterrupt for Ctrl-C, EOFError for Ctrl-D on an empty line."""
        session = self._questions if is_remembered else self._others
        return session.prompt(FormattedText([("bold", prompt)]), prompt_continuation=" " * len(prompt))
