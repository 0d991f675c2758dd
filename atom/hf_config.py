"""A typed view of a model's config.json.

Owns the spellings that differ between checkpoints (rope_scaling and rope_parameters, type and rope_type, dtype and
torch_dtype) and the values that stand in for absent keys. Reads no weights and knows no layer.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast, get_args

logger = logging.getLogger(__name__)

RopeKind = Literal["default", "linear", "dynamic", "yarn", "llama3"]
_T = TypeVar("_T")

_ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}


class ModelConfigError(ValueError):
    """config.json, or what was laid over it, says something that can not be used."""


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """Rotary position embedding. Every kind but default has a `factor`.

    original_max_position: context of the pre-training (yarn, llama3), or max_position_embeddings (dynamic).
    attention_factor: scale of cos and sin, resolved; 1.0 for every kind but yarn.
    """

    kind: RopeKind = "default"
    theta: float = 10000.0
    factor: float = 1.0
    original_max_position: int = 0
    partial_rotary_factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float | None = None
    mscale_all_dim: float | None = None
    attention_factor: float = 1.0
    truncate: bool = True


@dataclass(frozen=True, slots=True)
class HFConfig:
    """What the engine reads of config.json. `raw` is the whole of it, for what only one architecture has."""

    architecture: str
    model_type: str
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    rms_norm_eps: float
    rope: RopeConfig
    tie_word_embeddings: bool
    max_position_embeddings: int
    attention_bias: bool
    mlp_bias: bool
    hidden_act: str
    sliding_window: int | None
    dtype: str | None
    raw: dict[str, Any] = field(repr=False, default_factory=dict)

    @property
    def max_context(self) -> int:
        """Longest context the rotary embedding is made for: linear, dynamic and yarn stretch it by their factor."""
        if self.rope.kind in ("linear", "dynamic"):
            return int(self.max_position_embeddings * self.rope.factor)
        if self.rope.kind == "yarn":
            return max(self.max_position_embeddings, int(self.rope.original_max_position * self.rope.factor))
        return self.max_position_embeddings

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> HFConfig:
        """Raises ModelConfigError that names the key."""
        read = _Reader(raw)
        model_type = read.get("model_type", str, "")
        num_heads = read.positive("num_attention_heads")
        hidden_size = read.positive("hidden_size")
        head_dim = read.positive("head_dim", hidden_size // num_heads)
        if head_dim % 2:
            raise ModelConfigError(f"config.json: head_dim {head_dim} is odd, rotary embeddings need pairs")
        num_kv_heads = read.positive("num_key_value_heads", num_heads)
        if num_heads % num_kv_heads:
            raise ModelConfigError(
                f"config.json: num_attention_heads {num_heads} is no multiple of num_key_value_heads {num_kv_heads}"
            )
        max_position = read.positive("max_position_embeddings", 8192)
        return cls(
            architecture=_architecture(raw, model_type),
            model_type=model_type,
            hidden_size=hidden_size,
            num_layers=read.positive("num_hidden_layers"),
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            intermediate_size=read.positive("intermediate_size"),
            vocab_size=read.positive("vocab_size"),
            rms_norm_eps=read.number("rms_norm_eps", 1e-6),
            rope=_rope(raw, read, max_position),
            tie_word_embeddings=read.get("tie_word_embeddings", bool, False),
            max_position_embeddings=max_position,
            attention_bias=read.get("attention_bias", bool, False),
            mlp_bias=read.get("mlp_bias", bool, False),
            hidden_act=read.get("hidden_act", str, "silu"),
            sliding_window=read.positive("sliding_window", 4096)
            if read.get("use_sliding_window", bool, False)
            else None,
            dtype=_dtype(raw),
            raw=dict(raw),
        )


class _Reader:
    """Typed access to a JSON object; null counts as absent."""

    def __init__(self, raw: Mapping[str, Any], where: str = "config.json") -> None:
        self._raw = raw
        self._where = where

    def get(self, key: str, kind: type[_T], default: _T) -> _T:
        value = self._raw.get(key)
        if value is None:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ModelConfigError(f"{self._where}: {key} must be a {kind.__name__}, got {value!r}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self._raw.get(key, default)
        value = default if value is None else value
        if value is None:
            raise ModelConfigError(f"{self._where}: {key} is missing")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ModelConfigError(f"{self._where}: {key} must be a number, got {value!r}")
        return float(value)

    def positive(self, key: str, default: int | None = None) -> int:
        value = self.number(key, default)
        if value < 1 or value != int(value):
            raise ModelConfigError(f"{self._where}: {key} must be a positive whole number, got {value:g}")
        return int(value)

    def optional_number(self, key: str) -> float | None:
        return None if self._raw.get(key) is None else self.number(key)


def _architecture(raw: Mapping[str, Any], model_type: str) -> str:
    names = raw.get("architectures")
    if isinstance(names, list) and names and isinstance(names[0], str):
        return names[0]
    if model_type in _ARCHITECTURES:
        return _ARCHITECTURES[model_type]
    raise ModelConfigError(f"config.json names no architecture (architectures is {names!r}, model_type {model_type!r})")


def _dtype(raw: Mapping[str, Any]) -> str | None:
    value = raw.get("dtype") or raw.get("torch_dtype")
    return str(value).removeprefix("torch.") if value else None


def _rope(raw: Mapping[str, Any], top: _Reader, max_position: int) -> RopeConfig:
    # transformers 4 wrote rope_scaling, transformers 5 writes rope_parameters; there too the older one wins.
    parameters = raw.get("rope_scaling") or raw.get("rope_parameters") or {}
    if not isinstance(parameters, Mapping):
        raise ModelConfigError(f"config.json: rope parameters must be an object, got {parameters!r}")
    if any(isinstance(value, Mapping) for value in parameters.values()):
        raise ModelConfigError("config.json: rope parameters that differ by layer type are not supported")
    kind = parameters.get("rope_type") or parameters.get("type") or "default"
    if kind not in get_args(RopeKind):
        raise ModelConfigError(
            f"config.json: rope type {kind!r} is not supported; known are {', '.join(get_args(RopeKind))}"
        )
    read = _Reader(parameters, "config.json, rope parameters")
    theta = read.number("rope_theta", top.number("rope_theta", 10000.0))
    partial = read.number("partial_rotary_factor", top.number("partial_rotary_factor", 1.0))
    if kind == "default":
        if parameters.get("factor") not in (None, 1, 1.0):
            logger.warning(
                "config.json: rope parameters %r name no type, so positions are not scaled", dict(parameters)
            )
        return RopeConfig(theta=theta, partial_rotary_factor=partial)
    original = _original_max_position(raw, parameters, str(kind), max_position)
    factor = read.optional_number("factor")
    if factor is None:
        if kind != "yarn":
            raise ModelConfigError(f"config.json: rope type {kind} needs a factor")
        factor = max_position / original
    rope = RopeConfig(
        kind=cast("RopeKind", kind),
        theta=theta,
        factor=factor,
        original_max_position=original,
        partial_rotary_factor=partial,
        low_freq_factor=read.number("low_freq_factor", None if kind == "llama3" else 1.0),
        high_freq_factor=read.number("high_freq_factor", None if kind == "llama3" else 4.0),
        beta_fast=read.number("beta_fast", 32.0) or 32.0,
        beta_slow=read.number("beta_slow", 1.0) or 1.0,
        mscale=read.optional_number("mscale"),
        mscale_all_dim=read.optional_number("mscale_all_dim"),
        attention_factor=_attention_factor(read, factor) if kind == "yarn" else 1.0,
        truncate=read.get("truncate", bool, True),
    )
    if factor < 1.0 or rope.low_freq_factor >= rope.high_freq_factor:
        raise ModelConfigError(
            f"config.json: rope parameters {dict(parameters)!r} make no sense: factor must be at least 1"
        )
    return rope


def _original_max_position(raw: Mapping[str, Any], parameters: Mapping[str, Any], kind: str, max_position: int) -> int:
    if kind in ("linear", "dynamic"):
        return max_position
    for source in (raw, parameters):
        if source.get("original_max_position_embeddings") is not None:
            return _Reader(source).positive("original_max_position_embeddings")
    logger.warning(
        "config.json: rope type %s without original_max_position_embeddings, taking max_position_embeddings (%d)",
        kind,
        max_position,
    )
    return max_position


def _attention_factor(read: _Reader, factor: float) -> float:
    given = read.optional_number("attention_factor")
    if given is not None:
        return given
    mscale, mscale_all_dim = read.optional_number("mscale"), read.optional_number("mscale_all_dim")
    if mscale and mscale_all_dim:
        return _yarn_scale(factor, mscale) / _yarn_scale(factor, mscale_all_dim)
    return _yarn_scale(factor, 1.0)


def _yarn_scale(factor: float, weight: float) -> float:
    """Temperature of the yarn paper: 0.1 ln(factor) + 1, its logarithm weighted."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0
