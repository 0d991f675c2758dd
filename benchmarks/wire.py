"""What the tool-call reader costs: microseconds a token, growth with the length, a whole text full of quoted openers.

Owns the texts and the clock. A token is four characters, which is what tokenizers make of English and code. Every
figure is CPU time of the reader alone, the best of several runs.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from json import dumps
from typing import Any

from atom_spec.formats import FORMATS, FormatSpec

from atom.entrypoints.openai.tool_parser.stream import Tool, ToolCallReader

TOKEN = 4
LENGTHS = (2048, 4096, 8192, 16384)
QUOTED_CHARACTERS = 250_000
TOOL = Tool("write_file", {"type": "object", "properties": {"content": {"type": "string"}}})

_CODE = 'def f(a, b):\n    if a < b and b > 0:\n        return {"a": [a, b]}, f"{a}<br>{b}"\n'
_PROSE = "The quick brown fox jumps over the lazy dog, and then it sleeps in the sun. "
_COMPARISONS = "if (a < b && b <= c) { return a << 2; } else x = y < z ? y : z; "


def run() -> list[dict[str, Any]]:
    """Rows of name, value, unit and, where there is one, the bar."""
    rows = [_row("plain prose, a token", _per_token("qwen", _text(_PROSE, 16384)), "us", 1.0)]
    rows.append(_row("if (a < b) text, a token", _per_token("qwen", _text(_COMPARISONS, 16384)), "us", 1.0))
    for name in FORMATS:
        costs = [_per_token(name, long_call(FORMATS[name], length)) for length in LENGTHS]
        rows.append(_row(f"{name}: 16k-token call, a token", costs[-1], "us", 2.0))
        rows.append(_row(f"{name}: 16k-token call, exponent", _exponent(costs), "", 1.1))
    for name, spec in FORMATS.items():
        if spec.not_calls:
            text = _text(spec.not_calls[0].ljust(100, "."), QUOTED_CHARACTERS // TOKEN)
            rows.append(_row(f"{name}: 250 KB of quoted openers, whole", _seconds(name, [text]) * 1e3, "ms", 100.0))
    return rows


def long_call(spec: FormatSpec, num_tokens: int) -> str:
    """A call in the format's canonical form whose one argument is about `num_tokens` tokens of code."""
    form = spec.forms[0]
    content = _text(_CODE, num_tokens)
    holes = {"{name}": TOOL.name, "{name|json}": dumps(TOOL.name), "{name|attribute}": TOOL.name, "{index}": "0"}
    if form.argument is None:
        arguments = dumps({"content": content}, ensure_ascii=False)
    else:
        argument = form.argument
        for hole, text in {"{key}": "content", "{key|attribute}": "content", "{type}": "string"}.items():
            argument = argument.replace(hole, text)
        arguments = argument.replace("{is_string}", "true").replace("{value}", content)
    call = form.call
    for hole, text in holes.items():
        call = call.replace(hole, text)
    return form.section.replace("{calls}", call.replace("{arguments}", arguments))


def _text(unit: str, num_tokens: int) -> str:
    return (unit * (num_tokens * TOKEN // len(unit) + 1))[: num_tokens * TOKEN]


def _per_token(name: str, text: str) -> float:
    """Microseconds a token, streamed token by token."""
    tokens = [text[start : start + TOKEN] for start in range(0, len(text), TOKEN)]
    return _seconds(name, tokens) / len(tokens) * 1e6


def _seconds(name: str, pieces: Sequence[str]) -> float:
    def once() -> None:
        reader = ToolCallReader(FORMATS[name], [TOOL])
        feed = reader.feed
        for piece in pieces:
            feed(piece)
        reader.finish()

    return _best(once)


def _best(work: Callable[[], None], runs: int = 5) -> float:
    work()  # compiles the tables
    best = math.inf
    for _ in range(runs):
        gc.collect()
        gc.disable()
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
        gc.enable()
    return best


def _exponent(costs: Sequence[float]) -> float:
    """Growth of the total cost over the lengths: 1 is linear."""
    growth = (costs[-1] * LENGTHS[-1]) / (costs[0] * LENGTHS[0])
    return math.log(growth) / math.log(LENGTHS[-1] / LENGTHS[0])


def _row(name: str, value: float, unit: str, bar: float) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "bar": bar}


if __name__ == "__main__":
    for row in run():
        print(f"{row['name']:50} {row['value']:10.3f} {row['unit']:3} (bar {row['bar']})")
