"""An answer as it is being written: its text so far, and what each stretch of it is.

Owns channels and framing: where a format or a dialect puts markers around prose. Knows nothing of how a call is
spelled.
"""

from __future__ import annotations

from atom_spec.dialects import ReasoningDialect
from atom_spec.formats import Writing

from conformance.case import DrawnCall, Kind, Span


class Sheet:
    """Takes the parts of an answer in order; `text` and `spans` are the result."""

    def __init__(self, writing: Writing | None, dialect: ReasoningDialect | None, *, begins_inside: bool) -> None:
        self.text = ""
        self.spans: list[Span] = []
        self.num_calls = 0
        self._content_channel = writing.content if writing else "{text}"
        self._separator = writing.part_separator if writing else ""
        self._epilogue = writing.epilogue if writing else ""
        self._reasoning_channel = writing.reasoning if writing and dialect and dialect.in_format else None
        self._dialect = dialect
        self._is_in_reasoning = begins_inside
        self._is_in_content = bool(writing and writing.starts_inside_content and not begins_inside)

    def prose(self, text: str, kind: Kind = Kind.TEXT) -> None:
        """Prose of the answer, in the channel that the format gives to it."""
        self._channel(self._content_channel, text, kind, is_open=self._is_in_content)

    def reasoning(self, text: str, *, is_cut: bool = False) -> None:
        """Prose of the reasoning channel, which the prompt may have opened; `is_cut`: the answer ends within it."""
        if self._reasoning_channel is not None:
            self._channel(self._reasoning_channel, text, Kind.REASONING, is_cut=is_cut)
        elif self._dialect is not None:
            channel = f"{self._dialect.start}{{text}}{self._dialect.end}"
            self._channel(channel, text, Kind.REASONING, is_open=self._is_in_reasoning, is_cut=is_cut)

    def redundant_marker(self) -> None:
        """A start marker where the prompt has opened the channel, an end marker where it has not."""
        if self._dialect is not None and not self._dialect.in_format and not self._is_in_content:
            self._add(Kind.MARKUP, self._dialect.start if self._is_in_reasoning else self._dialect.end)

    def section(
        self,
        text: str,
        calls: tuple[DrawnCall, ...],
        name_due: int | None,
        *,
        output: str = "",
        may_come_out: str = "",
    ) -> None:
        """Calls as the renderer wrote them. `calls` are those to dispatch; the rest is as in `Span`."""
        if self._is_in_content:
            self.prose("")
        self._separate()
        start = len(self.text)
        due = None if name_due is None else start + name_due
        self.text += text
        self.spans.append(Span(Kind.REGION, start, len(self.text), output, may_come_out, calls, due))

    def epilogue(self) -> None:
        """The markers behind the last part."""
        if self._is_in_content:
            self.prose("")
        self._add(Kind.MARKUP, self._epilogue)

    def _channel(self, channel: str, text: str, kind: Kind, *, is_open: bool = False, is_cut: bool = False) -> None:
        opener, closer = channel.split("{text}")
        self._separate()
        self._add(Kind.MARKUP, "" if is_open else opener)
        self._add(kind, text, text)
        self._add(Kind.MARKUP, "" if is_cut else closer)

    def _separate(self) -> None:
        """What stands between two parts; the prompt has written it in front of the first."""
        if self.text:
            self._add(Kind.MARKUP, self._separator)
        self._is_in_content = self._is_in_reasoning = False

    def _add(self, kind: Kind, text: str, output: str = "") -> None:
        if not text:
            return
        start = len(self.text)
        self.text += text
        if kind is Kind.MARKUP and self.spans and self.spans[-1].kind is Kind.MARKUP:
            start = self.spans.pop().start  # what stands between two parts is one stretch
        self.spans.append(Span(kind, start, len(self.text), output, output))
