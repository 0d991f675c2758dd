"""ATOM: an LLM inference engine and server.

Exports `LLMEngine` and `SamplingParams`, both loaded on first use, so that importing `atom` (as the API process does)
costs nothing and pulls in no tensor library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atom.model_engine.llm_engine import LLMEngine
    from atom.sampling_params import SamplingParams

__all__ = ["LLMEngine", "SamplingParams"]

_HOMES = {"LLMEngine": "atom.model_engine.llm_engine", "SamplingParams": "atom.sampling_params"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'atom' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)
