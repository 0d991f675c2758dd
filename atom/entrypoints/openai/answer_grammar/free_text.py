"""Text in which certain literals do not occur, as a regular expression without look-around: for JSON's `pattern`.

Owns that construction alone. It is exact for literals whose first character does not come again in them; of the others
their beginning up to there is kept out.
"""

from __future__ import annotations

from functools import lru_cache

from atom.entrypoints.openai.answer_grammar.lark import escaped

Tree = dict[str, "Tree"]  # the characters that may follow a beginning; an empty tree is a whole literal


@lru_cache(maxsize=256)
def texts_without(literals: tuple[str, ...]) -> tuple[str, ...]:
    """Regular expressions that all match exactly the texts without any of the literals; none for no literals.

    There is one for each first character, since one expression for all would have to be their intersection.
    """
    by_first: dict[str, list[str]] = {}
    for literal in literals:
        again = literal.find(literal[0], 1)
        by_first.setdefault(literal[0], []).append(literal if again < 0 else literal[: again + 1])
    return tuple(_without(first, group) for first, group in by_first.items())


def _without(first: str, literals: list[str]) -> str:
    """All literals begin with `first`, and have it nowhere else but at their ends.

    The text is read as characters other than `first`, and as beginnings of literals that are broken off: by a character
    that does not go on, by another `first`, or by the end of the text.
    """
    tree, start = _tree(literals), escaped(first)
    if first in literals:
        return f"[^{start}]*"
    going = _beginnings(tree, but_before=first)
    restarted = "" if going is None else f"(?:{start}{going})*"
    broken, ended = _broken_off(first, tree), _beginnings(tree, but_before=None)
    return f"(?:[^{start}]|{restarted}{start}{broken})*(?:{restarted}{start}{ended})?"


def _tree(literals: list[str]) -> Tree:
    """What follows the first character. A literal that begins with another literal adds nothing to it."""
    tree: Tree = {}
    for literal in sorted(literals, key=len):
        node, rest = tree, literal[1:]
        for place, character in enumerate(rest):
            if character in node and not node[character]:
                break
            node = node.setdefault(character, {})
            if place == len(rest) - 1:
                node.clear()
    return tree


def _broken_off(first: str, tree: Tree) -> str:
    """Any way through the tree, and one character that leaves it."""
    leaving = "".join(escaped(character) for character in sorted({first, *tree}))
    going_on = [escaped(character) + _broken_off(first, below) for character, below in tree.items() if below]
    return f"(?:{'|'.join([f'[^{leaving}]', *going_on])})"


def _beginnings(tree: Tree, but_before: str | None) -> str | None:
    """Any way through the tree that is no whole literal, and none that `but_before` would continue; None: no way."""
    below = [(character, _beginnings(node, but_before)) for character, node in tree.items() if node]
    going_on = [escaped(character) + rest for character, rest in below if rest is not None]
    may_stop = but_before not in tree
    if not going_on:
        return "" if may_stop else None
    return f"(?:{'|'.join(going_on)}){'?' * may_stop}"
