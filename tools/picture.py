"""The README's picture: a terminal with real answers of a running server, as SVG.

`python -m tools.picture [URL]` asks a server that serves atom-tiny and writes docs/images/serve.svg. Owns the look of
the picture only; every line of output in it is what the server said.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

TARGET = Path(__file__).resolve().parents[1] / "docs/images/serve.svg"
WIDTH, LINE, MARGIN = 920, 21, 18
PROMPT, PLAIN, THOUGHT, CALL, NOTE = "#7ee787", "#e6edf3", "#8b949e", "#79c0ff", "#6e7681"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
Line = tuple[str, str]


def stream(url: str, question: str, **fields: Any) -> Iterator[dict[str, Any]]:
    """The deltas of a streamed chat answer."""
    body = {"messages": [{"role": "user", "content": question}], "temperature": 0, "stream": True, **fields}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        for frame in response:
            if frame.startswith(b"data: {"):
                for choice in json.loads(frame[6:])["choices"]:
                    yield choice["delta"]


def answer(url: str, question: str, note: str, **fields: Any) -> list[Line]:
    """A question and its answer as the picture shows them."""
    lines: list[Line] = [(f"> {question}   {note}", PROMPT)]
    thought = text = name = arguments = ""
    for delta in stream(url, question, **fields):
        thought += delta.get("reasoning_content") or ""
        text += delta.get("content") or ""
        for call in delta.get("tool_calls") or ():
            name += call["function"].get("name") or ""
            arguments += call["function"].get("arguments") or ""
    if thought:
        lines.append((f"  reasoning_content  {thought.strip()}", THOUGHT))
    if text:
        lines.append((f"  content            {text.strip()}", PLAIN))
    if name:
        lines.append((f"  tool_calls         {name}({arguments})", CALL))
    return [*lines, ("", PLAIN)]


def draw(lines: list[Line]) -> str:
    """The lines as an SVG document."""
    height = 2 * MARGIN + LINE * len(lines) + 24
    rows = "\n".join(
        f'<text x="{MARGIN}" y="{MARGIN + 36 + LINE * row}" fill="{colour}" xml:space="preserve">{escape(text)}</text>'
        for row, (text, colour) in enumerate(lines)
    )
    dots = "".join(
        f'<circle cx="{20 + 18 * n}" cy="16" r="5" fill="{c}"/>'
        for n, c in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">\n'
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#0d1117"/>\n{dots}\n{rows}\n</svg>\n'
    )


def main() -> None:
    """Ask, draw, write."""
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
    lines: list[Line] = [("$ make serve", NOTE), (f"  serving atom-tiny at {url}", NOTE), ("", PLAIN)]
    lines += answer(url, "Say hello.", "")
    thinking = {"chat_template_kwargs": {"enable_thinking": True}}
    lines += answer(url, "What is 17 + 25?", "enable_thinking=true", **thinking)
    lines += answer(url, "What is the weather in Paris?", "tools=[get_weather]", tools=[WEATHER])
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(draw(lines[:-1]), encoding="utf-8")
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
