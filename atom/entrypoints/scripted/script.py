"""What a scripted answer is: one JSON object a line.

Owns the file's shape and its checks. Knows neither HTTP nor the engine that plays a script.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer.

    text: what the "model" writes behind the generation prompt. It is cut into tokens by the tokenizer, unless `chunk`
    (characters a token), `byte_chunk` (bytes a token, so that characters fall apart) or `cuts` (character offsets) says
    otherwise. burst: tokens that arrive together. first_delay, delay: seconds before the first token, and before each
    later arrival. finish_reason: what the engine says at the text's end. fault_after: after so many tokens the sequence
    fails ("error") or the whole engine dies ("die"). format, dialect: names, or null for none; absent: the server's
    own, found at startup. chat_template: a file beside the script file, or a template. starts_in_reasoning: the prompt
    has opened the reasoning channel.
    """

    text: str
    id: str | None = None
    chunk: int | None = None
    byte_chunk: int | None = None
    cuts: list[int] | None = None
    burst: int = 1
    first_delay: float = 0.0
    delay: float = 0.0
    finish_reason: Literal["stop", "length"] = "stop"
    fault_after: int | None = None
    fault: Literal["error", "die"] = "error"
    cached_tokens: int = 0
    format: str | msgspec.UnsetType | None = msgspec.UNSET
    dialect: str | msgspec.UnsetType | None = msgspec.UNSET
    chat_template: str | None = None
    starts_in_reasoning: bool = False

    def __post_init__(self) -> None:
        if sum(way is not None for way in (self.chunk, self.byte_chunk, self.cuts)) > 1:
            raise ValueError("give at most one of chunk, byte_chunk and cuts")
        for name in ("chunk", "byte_chunk"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}")
        if self.burst < 1:
            raise ValueError(f"burst must be at least 1, got {self.burst}")
        if self.delay < 0 or self.first_delay < 0:
            raise ValueError("delays must not be negative")
        if self.cuts is not None and any(not 0 < cut < len(self.text) for cut in self.cuts):
            raise ValueError(f"cuts must lie inside the text, between 0 and {len(self.text)}")


def load_scripts(path: Path) -> list[Script]:
    """The scripts of a JSONL file; blank lines are skipped. ValueError names the line that is wrong."""
    scripts: list[Script] = []
    seen: set[str] = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            script = msgspec.json.decode(line, type=Script)
        except (msgspec.DecodeError, ValueError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        if script.id is not None and script.id in seen:
            raise ValueError(f"{path}, line {number}: the id {script.id!r} is taken by an earlier line")
        seen.add(script.id or "")
        scripts.append(script)
    if not scripts:
        raise ValueError(f"{path} holds no script")
    return scripts
