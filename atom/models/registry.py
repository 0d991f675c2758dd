"""Which class builds which architecture of config.json. Nothing is imported until it is asked for."""

from __future__ import annotations

import importlib

from atom.hf_config import HFConfig
from atom.model_ops.context import BuildContext
from atom.models.decoder import CausalLM

MODELS: dict[str, str] = {
    "LlamaForCausalLM": "atom.models.llama:LlamaForCausalLM",
    "Qwen2ForCausalLM": "atom.models.qwen2:Qwen2ForCausalLM",
    "Qwen3ForCausalLM": "atom.models.qwen3:Qwen3ForCausalLM",
}


class UnknownArchitectureError(ValueError):
    """config.json names an architecture that no file of atom/models builds."""


def build_model(hf: HFConfig, build: BuildContext) -> CausalLM:
    """The model with uninitialised weights. Raises UnknownArchitectureError with the names there are."""
    target = MODELS.get(hf.architecture)
    if target is None:
        raise UnknownArchitectureError(
            f"architecture {hf.architecture!r} is not supported; supported are {', '.join(sorted(MODELS))}"
        )
    module, _, name = target.partition(":")
    model: CausalLM = getattr(importlib.import_module(module), name)(hf, build)
    return model
