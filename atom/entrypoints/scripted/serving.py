"""The shared state of a scripted server: a script is chosen for every request.

Owns the choice: the header `x-script-id`, else the scripts in turn. Scripts are checked when the server starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request

from atom.entrypoints.openai.errors import bad_request
from atom.entrypoints.openai.serving import ChatModel, ServingContext, TextSide
from atom.entrypoints.scripted.chat import ScriptedChat
from atom.entrypoints.scripted.engine import ScriptedEngineClient, current_script
from atom.entrypoints.scripted.script import Script
from atom.entrypoints.scripted.tokens import ScriptedTokenizer

if TYPE_CHECKING:
    from atom.model_engine.arg_utils import ServerConfig


class ScriptedServing(ServingContext):
    """A serving context whose way to chat is the current script's."""

    def __init__(
        self,
        scripts: Sequence[Script],
        tokenizer: ScriptedTokenizer,
        chat: ChatModel,
        server: ServerConfig,
        *,
        model_path: Path,
        folder: Path,
        served_model_names: Sequence[str],
        max_model_len: int = 4096,
    ) -> None:
        """`folder`: where the scripts' template files are. ValueError names a script whose format can not be found."""
        engine = ScriptedEngineClient(scripts, tokenizer, max_model_len=max_model_len)
        super().__init__(TextSide(tokenizer, chat), engine, server, served_model_names=served_model_names)
        self.scripts = tuple(scripts)
        self.scripted_engine = engine
        self._by_script = ScriptedChat(chat, model_path, folder)
        self._next = 0
        for place, script in enumerate(scripts):
            try:
                self._by_script.of(script)
            except ValueError as error:
                raise ValueError(f"script {script.id or place}: {error}") from error

    def chat_model(self) -> ChatModel:
        """See ServingContext."""
        script = current_script.get()
        return super().chat_model() if script is None else self._by_script.of(script)

    def on_request(self, request: Request) -> None:
        """See ServingContext: from here on, `current_script` is this request's."""
        current_script.set(self.choose(request.headers.get("x-script-id")))

    def choose(self, script_id: str | None) -> Script:
        """The script of that id, or the next in turn. Raises ApiError 400 for an unknown id."""
        if script_id is None:
            script = self.scripts[self._next % len(self.scripts)]
            self._next += 1
            return script
        for script in self.scripts:
            if script.id == script_id:
                return script
        known = ", ".join(script.id for script in self.scripts if script.id is not None) or "none"
        raise bad_request(f"x-script-id: there is no script {script_id!r}; ids: {known}")
