"""The reader of a format whose whole answer is messages in channels.

Owns headers, and what becomes of a message by its recipient and its channel: a call, a thought, text of the answer, or
nothing. A header is believed when it is complete; what only looks like one is text. Knows no format by name.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product
from typing import Literal

from atom_spec.formats import Channels, FormatSpec

from atom.entrypoints.openai.events import Event
from atom.entrypoints.openai.marker_scanner import MarkerScanner
from atom.entrypoints.openai.tool_parser.calls import CallOutput, Fate
from atom.entrypoints.openai.tool_parser.json_scan import JsonScanner
from atom.entrypoints.openai.tool_parser.patterns import Choice, Matched, Partial

Kind = Literal["content", "reasoning", "drop"]


class ChannelTables:
    """The matchers of a channel format. `outside` and `inside` find what ends text between and in messages."""

    def __init__(self, spec: FormatSpec) -> None:
        assert spec.channels is not None
        channels = self.channels = spec.channels
        self.outside = MarkerScanner((channels.start, channels.channel, *channels.ends))
        self.inside = MarkerScanner((channels.start, *channels.ends))
        self.header = Choice(_headers(channels))
        self.recipient = Choice([channels.recipient])

    def tool_of(self, recipient: str, output: CallOutput) -> str:
        """The tool that a recipient names."""
        if any(fnmatchcase(recipient, builtin) for builtin in self.channels.builtins) or recipient in output.schemas:
            return recipient
        before, after = self.channels.recipient.split("{name}")
        return recipient.removeprefix(before).removesuffix(after)


class ChannelReader:
    """Reads one answer of messages in channels."""

    def __init__(self, tables: ChannelTables, output: CallOutput) -> None:
        self.output = output
        self._tables = tables
        self._held = ""
        self._kind: Kind = "content"
        self._scanner = tables.outside
        self._call: ChannelCall | None = None
        self._is_at_start = True

    @property
    def is_in_region(self) -> bool:
        """Whether the text so far ends inside a call."""
        return self._call is not None

    def feed(self, text: str) -> list[Event]:
        """The events that this text settles."""
        if not self._held and self._call is not None and self._call.take_plain(text):
            return []
        self._read(self._held + text if self._held else text, at_end=False)
        return self.output.take()

    def finish(self) -> list[Event]:
        """The text has ended."""
        self._read(self._held, at_end=True)
        return self.output.take()

    def _read(self, text: str, at_end: bool) -> None:
        position = 0
        while True:
            before = position
            if self._call is not None:
                position = self._call.advance(text, position, at_end)
                if not self._call.is_done:
                    break
                self._call = None
                self._enter("drop", self._tables.inside)  # up to the message's end, which may be missing
                continue
            position = self._start(text, at_end) if self._is_at_start else self._in_text(text, position, at_end)
            if position == before and self._call is None:
                break
        self._held = text[position:]

    def _start(self, text: str, at_end: bool) -> int:
        """The prompt may have begun the first message: its header goes on."""
        header = self._tables.header.match(text, 0, at_end)
        if isinstance(header, Partial) and not at_end:
            return 0
        self._is_at_start = False
        if isinstance(header, Matched):
            self._open(header)
            return header.end
        return self._in_text(text, 0, at_end)

    def _in_text(self, text: str, position: int, at_end: bool) -> int:
        """Text in or between messages, up to the next marker; the index behind what is settled."""
        match = self._scanner.search(text, position)
        if match is None:
            end = len(text) if at_end else self._scanner.hold_from(text, position)
            self._emit(text[position:end])
            return end
        start, literal = match.start(), match.group()
        self._emit(text[position:start])
        if literal in self._tables.channels.ends:
            self._enter("content", self._tables.outside)
            return match.end()
        header = self._tables.header.match(text, start, at_end)
        if isinstance(header, Partial):
            return self._cut_header(text, start) if at_end else start
        if header is not None:
            self._open(header)
            return header.end
        self._emit(literal)
        return match.end()

    def _cut_header(self, text: str, start: int) -> int:
        """The text ends inside a header: nobody knows of what, so it is text, but for the start of the message."""
        self.output.content(text[start:].removeprefix(self._tables.channels.start))
        return len(text)

    def _open(self, header: Matched) -> None:
        """A message begins."""
        channels, holes = self._tables.channels, header.holes
        recipient = holes.get("role_recipient") or holes.get("recipient")
        if recipient:
            name = self._tables.tool_of(recipient, self.output)
            fate = self.output.begin(name, None)
            is_builtin = name == recipient and name not in self.output.schemas
            self._call = ChannelCall(self._tables, self.output, name, fate, is_builtin)
        else:
            self._enter(channels.kinds.get(holes["channel"], "drop"), self._tables.inside)

    def _enter(self, kind: Kind, scanner: MarkerScanner) -> None:
        self._kind = kind
        self._scanner = scanner

    def _emit(self, text: str) -> None:
        if self._kind == "content":
            self.output.content(text)
        elif self._kind == "reasoning":
            self.output.reasoning(text)


class ChannelCall:
    """The body of a message to a tool: a JSON object; what is none goes on as it is, where the format passes it.

    is_builtin: the tool is no function, its body needn't be JSON.
    """

    def __init__(self, tables: ChannelTables, output: CallOutput, name: str, fate: Fate, is_builtin: bool) -> None:
        self.is_done = False
        self._tables = tables
        self._output = output
        self._name = name
        self._fate = fate
        self._is_builtin = is_builtin
        self._passes = tables.channels.invalid_body == "pass"
        self._json = JsonScanner()
        self._raw: list[str] = []

    def take_plain(self, text: str) -> bool:
        """Take `text` whole if it is plainly the middle of a string."""
        if self._json.take_plain(text):
            self._raw.append(text)
            return True
        return False

    def advance(self, text: str, position: int, at_end: bool) -> int:
        """Read from `position` on; the index up to which `text` has been read."""
        if not self._json.has_failed:
            end = self._json.scan(text, position, at_end)
            self._raw.append(text[position:end])
            position = end
            if self._json.is_done or (at_end and not self._json.has_failed):
                self._finish(self._json.closed() or "{}", is_complete=self._json.is_done)
            if not self._json.has_failed:
                return position
        match = self._tables.inside.search(text, position)
        end = match.start() if match else len(text) if at_end else self._tables.inside.hold_from(text, position)
        self._raw.append(text[position:end])
        if match is not None or at_end:
            self._finish(self._arguments(has_ended=match is not None), is_complete=True)
        return end

    def _arguments(self, has_ended: bool) -> str:
        """Of a body that is no JSON; one that the end of the text cut must at least be JSON."""
        raw = "".join(self._raw).strip()
        is_passed = raw and self._passes and (has_ended or self._is_builtin)
        return raw if is_passed else self._json.closed() or "{}"

    def _finish(self, arguments: str, is_complete: bool) -> None:
        self.is_done = True
        self._output.end(self._fate, self._name, arguments, is_complete)


def _headers(channels: Channels) -> list[str]:
    """Every spelling of a header, those that say more before those that say less."""
    roles = (f"{channels.start}{channels.to}{{role_recipient}}", f"{channels.to}{{role_recipient}}", channels.start, "")
    recipients = (f"{channels.to}{{recipient}}", "")
    types = (f"{{ws}}{channels.constrain}{{content_type}}", "{content_type}")
    return [
        f"{role}{channels.channel}{{channel}}{recipient}{content_type}{channels.message}"
        for role, recipient, content_type in product(roles, recipients, types)
    ]
