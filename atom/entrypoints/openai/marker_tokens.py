"""Which special tokens are part of a model's markup, and so must reach the readers as text.

Owns that choice alone: skip_special_tokens drops the others. Knows neither the readers nor the detokenizer.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from atom_spec.dialects import ReasoningDialect
from atom_spec.formats import Channels, FormatSpec, Grammar

from atom.tokenizer import Tokenizer


@lru_cache(maxsize=16)
def marker_token_ids(tokenizer: Tokenizer, spec: FormatSpec | None, dialect: ReasoningDialect | None) -> frozenset[int]:
    """The special tokens that some literal of the format or dialect is spelt with."""
    literals = list(_format_literals(spec)) if spec is not None else []
    if dialect is not None:
        literals += [dialect.start, dialect.end]
    text = "\0".join(literals)
    names = {token_id: tokenizer.id_to_token(token_id) for token_id in tokenizer.special_ids}
    return frozenset(token_id for token_id, name in names.items() if name and name in text)


def _format_literals(spec: FormatSpec) -> Iterable[str]:
    yield from spec.markers
    yield from spec.framing
    for grammar in spec.grammars:
        yield from _grammar_literals(grammar)
    if spec.channels is not None:
        yield from _channel_literals(spec.channels)


def _grammar_literals(grammar: Grammar) -> Iterable[str]:
    for tag in (*grammar.wrappers, *grammar.calls, *grammar.arguments, *grammar.blocks):
        yield tag.open
        yield from tag.close
    yield from grammar.orphans


def _channel_literals(channels: Channels) -> Iterable[str]:
    yield from (channels.start, channels.channel, channels.message, channels.constrain, channels.recipient)
    yield from channels.ends
