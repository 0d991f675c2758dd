"""The inside of a call whose arguments are one JSON object, with a tag of its own or with the name in the object.

Owns when such a call is believed, and what becomes of a body that is no JSON. The object ends by its braces. Knows
neither wrappers nor formats.
"""

from __future__ import annotations

import json

from atom.entrypoints.openai.tool_parser.calls import Fate
from atom.entrypoints.openai.tool_parser.json_scan import JsonScanner
from atom.entrypoints.openai.tool_parser.patterns import Matched, Partial, behind_space
from atom.entrypoints.openai.tool_parser.region import Region


class ObjectCall:
    """A call that is one object: {"name": ..., "arguments": {...}}.

    It is believed when its name is a string and its arguments are an object that has shown a key; before that, at the
    object's end.
    """

    def __init__(self, region: Region) -> None:
        keys = region.tables.grammar.object_keys
        assert keys is not None
        self.is_done = self.has_failed = self.was_cut = False
        self._region = region
        self._keys = keys
        allowed = frozenset((*keys.name, *keys.arguments, *keys.other)) if keys.unknown == "reject" else None
        self._scanner = JsonScanner(allowed)
        self._fate: Fate | None = None
        self._name = ""
        self._skips = False

    def take_plain(self, text: str) -> bool:
        """Take `text` whole if it is plainly the middle of a string."""
        return self._fate in (Fate.DISPATCH, Fate.DROP) and self._scanner.take_plain(text)

    def advance(self, text: str, position: int, at_end: bool) -> int:
        """Read from `position` on; the index up to which `text` has been read."""
        if self._skips:
            return self._skip(text, position, at_end)
        position = self._scanner.scan(text, position, at_end)
        if self._fate is None:
            self._believe(text, position)
        if self._scanner.is_done or (at_end and not self._scanner.has_failed):
            return self._finish(text, position if self._scanner.is_done else len(text))
        if self._scanner.has_failed:
            if self._fate is None:
                self.has_failed = True
                return position
            self._skips = True
            return self._skip(text, position, at_end)
        return position

    def _believe(self, text: str, position: int) -> None:
        key = self._arguments_key()
        if key is None or key not in self._scanner.opened:
            return
        name = self._read_name()
        if name is not None:
            self._commit(name, text, position)

    def _commit(self, name: str, text: str, position: int) -> None:
        self._name = name
        self._fate = self._region.commit(name, None, text, position)

    def _read_name(self) -> str | None:
        key = next((key for key in self._keys.name if key in self._scanner.ends), None)
        value = self._scanner.value_of(key) if key is not None else None
        name = json.loads(value) if value is not None and value.startswith('"') else None
        return name if isinstance(name, str) and name else None

    def _arguments_key(self) -> str | None:
        return next((key for key in self._keys.arguments if key in self._scanner.starts), None)

    def _finish(self, text: str, position: int) -> int:
        is_complete = self._scanner.is_done
        arguments = self._arguments()
        if self._fate is None:
            name = self._read_name()
            if name is None or arguments is None or not (is_complete or self._region.output.is_declared(name)):
                self.has_failed = True
                return position
            self._commit(name, text, position)
        assert self._fate is not None
        self.is_done = True
        self._region.output.end(self._fate, self._name, arguments or "{}", is_complete)
        return position

    def _arguments(self) -> str | None:
        """The arguments as a JSON object; None: they are something else, or missing where they may not be."""
        key = self._arguments_key()
        if key is None:
            return None if self._keys.arguments_required else "{}"
        value = self._scanner.value_of(key)
        if value is None:
            return None if self._keys.arguments_required else "{}"
        if value.startswith('"'):
            return _unquoted(value)
        return value if value.startswith("{") else None

    def _skip(self, text: str, position: int, at_end: bool) -> int:
        """The object broke off inside a call that has been announced: out to the wrapper's closer, if there is one."""
        scanner = self._region.tables.call_end_scanner if self._region.is_wrapped else None
        if scanner is None:
            return self._finish(text, position)
        match = scanner.search(text, position)
        if match is not None:
            return self._finish(text, match.start())
        return self._finish(text, len(text)) if at_end else scanner.hold_from(text, position)


class TaggedJsonCall:
    """A call with its name in a tag, then its arguments as a JSON object.

    It is believed when the object has shown a key; where a body that is no JSON passes, at once.
    """

    def __init__(self, region: Region, found: Matched) -> None:
        self.is_done = self.has_failed = self.was_cut = False
        self._region = region
        self._closers = region.tables.closers_of(found.number)
        self._passes = region.tables.grammar.invalid_body == "pass"
        self._scanner = JsonScanner()
        self._name = found.holes["name"]
        self._index = found.holes.get("index")
        self._fate: Fate | None = None
        self._raw: list[str] | None = None
        self._body: list[str] = []
        self._state = self._before_body

    def take_plain(self, text: str) -> bool:
        """Take `text` whole if it is plainly the middle of a string."""
        if self._state != self._in_body or not self._scanner.take_plain(text):
            return False
        if self._passes:
            self._body.append(text)
        return True

    def advance(self, text: str, position: int, at_end: bool) -> int:
        """Read from `position` on; the index up to which `text` has been read."""
        while not self.is_done and not self.has_failed:
            state, before = self._state, position
            position = state(text, position, at_end)
            if position == before and self._state == state:
                break
        return position

    def _before_body(self, text: str, position: int, at_end: bool) -> int:
        if self._passes and self._fate is None:
            self._commit(text, position)
        position = behind_space(text, position)
        if position == len(text):
            return self._finish_cut(text, position) if at_end else position
        closer = self._closers.match(text, position, at_end)
        if isinstance(closer, Matched):
            if self._fate is None:
                self._commit(text, position)
            return self._finish(closer.end, "{}", is_complete=True)
        if isinstance(closer, Partial):
            return self._finish_cut(text, len(text)) if at_end else position
        self._state = self._in_body
        return position

    def _in_body(self, text: str, position: int, at_end: bool) -> int:
        end = self._scanner.scan(text, position, at_end)
        if self._passes:
            self._body.append(text[position:end])
        if self._fate is None and self._scanner.is_open_inside:
            self._commit(text, end)
        if self._scanner.is_done:
            self._body.clear()
            self._state = self._behind_body
        elif self._scanner.has_failed:
            return self._broken(text, end)
        elif at_end:
            return self._finish_cut(text, len(text))
        return end

    def _broken(self, text: str, position: int) -> int:
        """No JSON can go on like this."""
        if self._fate is None:
            self.has_failed = True
        elif self._passes:
            self._raw = self._body
            self._state = self._raw_body
        else:
            self._state = self._skip
        return position

    def _raw_body(self, text: str, position: int, at_end: bool) -> int:
        """A body that is no JSON, up to the call's closer."""
        assert self._raw is not None
        scanner = self._region.tables.call_end_scanner
        assert scanner is not None
        match = scanner.search(text, position)
        if match is None:
            end = len(text) if at_end else scanner.hold_from(text, position)
            self._raw.append(text[position:end])
            return self._finish_cut(text, end) if at_end else end
        self._raw.append(text[position : match.start()])
        closer = self._closers.match(text, match.start(), at_end)
        if isinstance(closer, Partial) and not at_end:
            return match.start()
        end = closer.end if isinstance(closer, Matched) else match.start()
        return self._finish(end, "".join(self._raw).strip(), is_complete=True)

    def _behind_body(self, text: str, position: int, at_end: bool) -> int:
        """White space and the call's closer, which may be missing."""
        end = behind_space(text, position)
        if not self._closers.patterns:
            return self._finish(position, self._scanner.closed(), is_complete=True)
        if end == len(text):
            return self._finish(end, self._scanner.closed(), is_complete=True) if at_end else position
        closer = self._closers.match(text, end, at_end)
        if isinstance(closer, Partial) and not at_end:
            return position
        if isinstance(closer, Matched):
            end = closer.end
        elif isinstance(closer, Partial):
            end = len(text)
        else:
            end = position
        return self._finish(end, self._scanner.closed(), is_complete=True)

    def _skip(self, text: str, position: int, at_end: bool) -> int:
        """The object broke off inside a call that has been announced: out to the call's closer, if there is one."""
        scanner = self._region.tables.call_end_scanner
        match = scanner.search(text, position) if scanner else None
        if match is None:
            if at_end or scanner is None:
                return self._finish(len(text) if scanner else position, self._scanner.closed(), is_complete=True)
            return scanner.hold_from(text, position)
        closer = self._closers.match(text, match.start(), at_end)
        if isinstance(closer, Partial) and not at_end:
            return match.start()
        end = closer.end if isinstance(closer, Matched) else match.start()
        return self._finish(end, self._scanner.closed(), is_complete=True)

    def _commit(self, text: str, position: int) -> None:
        self._fate = self._region.commit(self._name, self._index, text, position)

    def _finish_cut(self, text: str, position: int) -> int:
        if self._fate is None:
            if not self._region.output.is_declared(self._name):
                self.has_failed = True
                return position
            self._commit(text, position)
        return self._finish(position, self._scanner.closed() or "{}", is_complete=False)

    def _finish(self, position: int, arguments: str, is_complete: bool) -> int:
        assert self._fate is not None
        self.is_done = True
        self._region.output.end(self._fate, self._name, arguments or "{}", is_complete)
        return position


def _unquoted(value: str) -> str | None:
    """Arguments that were encoded twice; None: the string holds no object."""
    scanner = JsonScanner()
    text = json.loads(value)
    scanner.scan(text, 0, at_end=True)
    return scanner.closed() if scanner.is_done else None
