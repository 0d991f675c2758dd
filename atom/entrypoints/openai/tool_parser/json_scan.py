"""A JSON object read as it arrives, written down compactly, and closed properly when it is cut.

Owns where the object ends (by its braces, never by a literal: what stands in a string is data), which bytes no JSON can
go on with, and the repair of a cut one. Numbers keep the digits they were written with. What models get wrong without
doubt is put right: raw line breaks in strings, unknown escapes, Python's True, False and None, bare words (strings).
Knows no format.
"""

from __future__ import annotations

import json
import re

from atom.entrypoints.openai.tool_parser.patterns import behind_space

_STRING_RUN = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_SCALAR = re.compile(r"[-+.\w]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?\Z", re.ASCII)
_LITERALS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_CLEAN = re.compile(r'[^\\\x00-\x1f\x7f]*(?:\\["\\/bfnrt][^\\\x00-\x1f\x7f]*)*\Z')
_SURROGATE = re.compile("[\ud800-\udfff]")
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_ESCAPE_PAIR = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)|[\x00-\x1f\x7f]|\\\Z", re.DOTALL)
_HALF_ESCAPE = re.compile(r"((?:^|[^\\])(?:\\\\)*)\\u[0-9a-fA-F]{0,3}\Z")
_MAX_SCALAR = 4096

# What may come next.
KEY, KEY_OR_END, COLON, VALUE, VALUE_OR_END, COMMA_OR_END = range(6)


class JsonScanner:
    """One object. `out`: compact tokens so far. `is_done`: the object is complete; `has_failed`: this can't be one.

    starts: for the outer object's keys, where in `out` the key's value begins; ends: where it is complete.
    opened: outer keys whose value is an object that has shown its own first key. Of a key that comes twice, the first
    counts.
    """

    __slots__ = (
        "_allowed",
        "_expect",
        "_is_key",
        "_safe",
        "_stack",
        "_string",
        "ends",
        "has_failed",
        "is_done",
        "is_in_string",
        "key",
        "opened",
        "out",
        "starts",
    )

    def __init__(self, allowed: frozenset[str] | None = None) -> None:
        """`allowed`: keys that the outer object may have before any value of it is opened; None: any."""
        self._allowed = allowed
        self.opened: set[str] = set()
        self.out: list[str] = []
        self.is_done = self.has_failed = self.is_in_string = False
        self.starts: dict[str, int] = {}
        self.ends: dict[str, int] = {}
        self.key = ""
        self._stack: list[str] = []
        self._string: list[str] = []
        self._is_key = False
        self._expect = VALUE
        self._safe = 0

    def take_plain(self, text: str) -> bool:
        """Take `text` whole if all of it lies inside the open string; the test that most pieces pass."""
        if self.is_in_string and '"' not in text and text[-1:] != "\\":
            self._string.append(text)
            return True
        return False

    def scan(self, text: str, position: int, at_end: bool = False) -> int:
        """Read from `position` on; the index up to which `text` has been read.

        What is left unread is one undecided token (a scalar, an escape). `at_end`: nothing will follow.
        """
        size = len(text)
        while not self.is_done and not self.has_failed:
            if self.is_in_string:
                position = self._scan_string(text, position)
                if self.is_in_string:
                    return position
                continue
            position = behind_space(text, position)
            if position == size:
                return position
            taken = self._token(text, position, at_end)
            if taken == position:
                return position
            position = taken
        return position

    def _scan_string(self, text: str, position: int) -> int:
        end = _behind(_STRING_RUN, text, position)
        if end > position:
            self._string.append(text[position:end])
        if end < len(text) and text[end] == '"':
            self._close_string()
            return end + 1
        return end

    def _close_string(self) -> None:
        self.is_in_string = False
        raw = "".join(self._string)
        self._string = []
        if self._is_key:
            self.out.append(quoted(raw))
            if len(self._stack) == 1:
                self.key = decoded(raw)
            self._expect = COLON
        else:
            self._value(quoted(raw))

    def _token(self, text: str, position: int, at_end: bool) -> int:
        """One token outside strings; `position` itself when it isn't complete, or can't be one."""
        character, expect = text[position], self._expect
        if character == '"':
            if expect in (KEY, KEY_OR_END, VALUE, VALUE_OR_END) and self._stack:
                self._is_key = expect in (KEY, KEY_OR_END)
                self.is_in_string = True
                return position + 1
        elif character in "{[":
            if expect in (VALUE, VALUE_OR_END) and (self._stack or character == "{"):
                self._open(character)
                return position + 1
        elif character in "}]":
            if self._stack and self._stack[-1] == character and expect in (KEY_OR_END, VALUE_OR_END, COMMA_OR_END):
                self._stack.pop()
                self._value(character)
                return position + 1
        elif character == ":":
            if expect == COLON:
                self._colon()
                return position + 1
        elif character == ",":
            if expect == COMMA_OR_END:
                self.out.append(",")
                self._expect = KEY if self._stack[-1] == "}" else VALUE
                return position + 1
        elif expect in (VALUE, VALUE_OR_END) and self._stack:
            return self._scalar(text, position, at_end)
        self.has_failed = True
        return position

    def _open(self, character: str) -> None:
        self.out.append(character)
        self._stack.append("}" if character == "{" else "]")
        self._expect = KEY_OR_END if character == "{" else VALUE_OR_END
        self._safe = len(self.out)

    def _colon(self) -> None:
        self.out.append(":")
        self._expect = VALUE
        depth = len(self._stack)
        if depth == 1:
            self.starts.setdefault(self.key, len(self.out))
            if self._allowed is not None and self.key not in self._allowed and not self.opened:
                self.has_failed = True
        elif depth == 2 and self._stack[1] == "}":
            self.opened.add(self.key)

    def _value(self, token: str) -> None:
        """A value is complete: a scalar, a string, or a container by its closer."""
        self.out.append(token)
        self._safe = len(self.out)
        self._expect = COMMA_OR_END
        if len(self._stack) == 1:
            self.ends.setdefault(self.key, self._safe)
        self.is_done = not self._stack

    def _scalar(self, text: str, position: int, at_end: bool) -> int:
        end = _behind(_SCALAR, text, position)
        word = text[position:end]
        if not word or len(word) > _MAX_SCALAR:
            self.has_failed = True
            return position
        if end == len(text):
            if at_end:  # half-written, for all that anybody knows: a string
                self._value(quoted(word))
                return end
            return position
        self._value(word if _NUMBER.match(word) else _LITERALS.get(word) or quoted(word))
        return end

    @property
    def is_open_inside(self) -> bool:
        """Whether an object has shown its first key, or is complete: from here on it is believed."""
        return self.is_done or bool(self.starts)

    def value_of(self, key: str) -> str | None:
        """The value of an outer key as JSON, closed if it is cut; None when it has none."""
        start, end = self.starts.get(key), self.ends.get(key)
        if start is None:
            return None
        return "".join(self.out[start:end]) if end is not None else self.closed(start) or None

    def closed(self, start: int = 0) -> str:
        """The tokens from `start` on as a complete value, however far the object has got.

        A half-written value is a string, a key without a value is left out.
        """
        if self.is_done:
            return "".join(self.out[start:])
        if self.is_in_string and not self._is_key:
            tokens = [*self.out[start:], quoted(_HALF_ESCAPE.sub(r"\1", "".join(self._string)))]
        else:
            tokens = self.out[start : max(self._safe, start)]
        depth = _depth(tokens)
        return (
            "".join(tokens) + "".join(reversed(self._stack[len(self._stack) - depth :])) if depth else "".join(tokens)
        )


def _behind(pattern: re.Pattern[str], text: str, position: int) -> int:
    """The index behind what the pattern, which may match nothing, matches at `position`."""
    match = pattern.match(text, position)
    return match.end() if match else position


def _depth(tokens: list[str]) -> int:
    """Containers that the tokens leave open."""
    return sum((token in "{[") - (token in "}]") for token in tokens if len(token) == 1)


def quoted(raw: str) -> str:
    """A JSON string of what stood between quotes, with `\\uXXXX` written out where it is a character."""
    if _CLEAN.match(raw):
        return f'"{raw}"'
    text = decoded(raw)
    return f'"{_mended(raw)}"' if _SURROGATE.search(text) else json.dumps(text, ensure_ascii=False)


def decoded(raw: str) -> str:
    """What a JSON string's inside means; an escape that JSON doesn't know means itself."""
    if "\\" not in raw:
        return raw
    text = json.loads(f'"{_mended(raw)}"', strict=False)
    assert isinstance(text, str)
    return text


def _mended(raw: str) -> str:
    """`raw` with every escape one that JSON knows, and control characters escaped."""

    def mend(match: re.Match[str]) -> str:
        escape = match.group()
        if escape[0] != "\\":
            return f"\\u{ord(escape):04x}"
        return escape if not _BAD_ESCAPE.match(escape) else "\\\\" + escape[1:]

    return _ESCAPE_PAIR.sub(mend, raw)
