"""Draws prose and string values: words, white space, code, emoji, markers of others, half-written markers.

Owns the fragments that texts are made of, and how literals that a place can't hold are kept out. Knows nothing of
calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from atom_spec.formats import FORMATS
from hypothesis import strategies as st

PLAIN = ("Let me look.", "word", " ", "  ", "\n", "\n\n", "\t", "Done", ".", "a, b")
CODE = (
    "if (a < b && b <= c)",
    "<",
    ">",
    "<<",
    "</",
    "</p>",
    '<div class="x">',
    "`x`",
    "```xml\n<a/>\n```",
    "[1]",
    "{}",
    "|",
    "&amp;",
    "\\n",
    '"',
    "'",
)
UNICODE = ("é", "日本", "🎈", "👩\u200d🚀", "\u200b", "ﷺ", "\u2028", "e\u0301", "｜", "▁")
LOOKALIKES = ("0042", "true", "null", "None", "True", "1.0", "-3", "[1, 2]", '{"a": 1}', "007")


@lru_cache
def texts(literals: tuple[str, ...], forbidden: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Texts that may hold any of `literals`, whole or half-written, but none of `forbidden`."""
    whole = [literal for literal in literals if not any(word in literal for word in forbidden)]
    fragments = [*PLAIN, *PLAIN, *CODE, *UNICODE, *LOOKALIKES, *whole]
    fragment = st.one_of(
        st.sampled_from(fragments), st.sampled_from(half_written([*literals, *forbidden]) or PLAIN), st.text(max_size=4)
    )
    return st.lists(fragment, max_size=6).map("".join).map(lambda text: without(text, forbidden))


def half_written(markers: Iterable[str]) -> list[str]:
    """Beginnings of markers, each followed by something that no marker goes on with."""
    return sorted(
        {
            marker[:size] + tail
            for marker in markers
            for size in (1, len(marker) // 2, len(marker) - 1)
            if 0 < size < len(marker)
            for tail in ("", " ", "\n", "~")
        }
    )


@lru_cache
def foreign_markers(own: tuple[str, ...]) -> tuple[str, ...]:
    """Other formats' markers, which are prose here; those that hold one of our own are left out."""
    foreign = {marker for spec in FORMATS.values() for marker in spec.markers}
    return tuple(sorted(marker for marker in foreign if not any(word in marker for word in own)))


def without(text: str, forbidden: Sequence[str]) -> str:
    """`text` with every forbidden literal taken out, also those that taking out makes."""
    while found := [literal for literal in forbidden if literal in text]:
        for literal in found:
            text = text.replace(literal, "")
    return text


def stays_apart(text: str, following: str, forbidden: Sequence[str]) -> bool:
    """Whether no forbidden literal begins in `text` once `following` is written behind it."""
    reach = max(map(len, forbidden), default=1) - 1
    seam = text[max(0, len(text) - reach) :]
    joined = seam + following[:reach]
    return not any(0 <= joined.find(literal) < len(seam) for literal in forbidden)
