"""A file with tools, as `--tools` and `/tools` read it. Owns its checks only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def load_tools(path: str) -> list[dict[str, Any]]:
    """The tools in a JSON file: a list as requests have it. Raises ValueError that names the file and the fault."""
    try:
        tools = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from None
    except RuntimeError as error:  # ~NOBODY, or nested beyond reason
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(tools, list):
        raise ValueError(f'{path} must hold a JSON list of tools: [{{"type": "function", "function": {{...}}}}]')
    for place, tool in enumerate(tools, start=1):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ValueError(f"{path}: tool {place} has no function with a name")
    return tools


def tool_names(tools: list[dict[str, Any]]) -> str:
    """The names, for a note."""
    return ", ".join(tool["function"]["name"] for tool in tools)
