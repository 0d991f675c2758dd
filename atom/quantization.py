"""Which linears have 8-bit weights: what a checkpoint's quantization_config says, and what --quantization asks for.

Owns the spellings of the tools that write such checkpoints, and refuses by name what is not computed here. Knows no
tensor; what the numbers mean is in docs/quantization.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from atom.hf_config import ModelConfigError

# Side of a block of weights, and values of an input, that share a scale where scales are by block.
BLOCK = 128
_EXPRESSION = "re:"
_WHERE = "config.json, quantization_config"


@dataclass(frozen=True, slots=True)
class Quantization:
    """Linears with weights in fp8 (e4m3); their inputs are rounded to fp8 as they come.

    has_blocks: a scale for 128 x 128 weights, and for 128 values of an input; else a scale for an output's weights, and
    for an input. is_online: the checkpoint is not quantised, its weights are as they are loaded. scale_name: the last
    name of a weight's scales in the checkpoint. targets: layers that are quantised, ignored: those that are not; each a
    name, the beginning or end of one, or "re:" and an expression; the target Linear is all of them.
    """

    has_blocks: bool = False
    is_online: bool = False
    scale_name: str = "weight_scale"
    targets: tuple[str, ...] = ("Linear",)
    ignored: tuple[str, ...] = ()

    def covers(self, name: str) -> bool:
        """Whether the linear of this name in the checkpoint is quantised."""
        is_target = "Linear" in self.targets or any(_matches(name, target) for target in self.targets)
        return is_target and not any(_matches(name, ignored) for ignored in self.ignored)


def read_quantization(config: object, asked: str | None) -> Quantization | None:
    """What to do: `config` is config.json's quantization_config, `asked` the value of --quantization (fp8 or None).

    None: no linear is quantised. Raises ModelConfigError that names what is not supported.
    """
    if not config:
        return None if asked is None else Quantization(is_online=True)
    if not isinstance(config, Mapping):
        raise ModelConfigError(f"{_WHERE} must be an object, got {config!r}")
    method = config.get("quant_method")
    if method not in _READERS:
        raise ModelConfigError(f"{_WHERE}: quant_method {method!r} is not supported; known are {', '.join(_READERS)}")
    if _has_plain_weights(config):
        return read_quantization(None, asked)
    return _READERS[method](config)


def _has_plain_weights(config: Mapping[str, Any]) -> bool:
    """Whether llm-compressor made scales for the KV cache and left the weights as they were."""
    is_dense = config.get("quant_method") == "compressed-tensors" and config.get("format") == "dense"
    return is_dense and not config.get("config_groups") and bool(config.get("kv_cache_scheme"))


def _read_fp8(config: Mapping[str, Any]) -> Quantization:
    """What transformers and its like write: fp8."""
    _check(
        config,
        _WHERE,
        quant_method=("fp8",),
        activation_scheme=("dynamic",),
        fmt=("e4m3", None),
        weight_block_size=([BLOCK, BLOCK], (BLOCK, BLOCK), None),
        scale_fmt=("float", None),
        dequantize=(False, None),
        modules_to_convert=([], None),
        expert_dtype=("fp8", None),
        kv_cache_scheme=_ANY,  # of no weight
        modules_to_not_convert=_ANY,
        ignored_layers=_ANY,
    )
    has_blocks = bool(config.get("weight_block_size"))
    ignored = [*_names(config, "modules_to_not_convert"), *_names(config, "ignored_layers")]
    return Quantization(
        has_blocks=has_blocks,
        scale_name="weight_scale_inv" if has_blocks else "weight_scale",
        ignored=tuple(map(_as_pattern, ignored)),
    )


def _read_compressed_tensors(config: Mapping[str, Any]) -> Quantization:
    """What llm-compressor writes: groups of layers, here with one scheme for all."""
    _check(
        config,
        _WHERE,
        quant_method=("compressed-tensors",),
        format=("float-quantized",),
        quantization_status=("compressed", "frozen", None),
        sparsity_config=({}, None),
        transform_config=({}, None),
        config_groups=_ANY,
        ignore=_ANY,
        kv_cache_scheme=_ANY,  # of no weight
        global_compression_ratio=_ANY,
        version=_ANY,
    )
    groups = config.get("config_groups")
    if not isinstance(groups, Mapping) or not groups or not all(isinstance(g, Mapping) for g in groups.values()):
        raise ModelConfigError(f"{_WHERE}: config_groups must be an object of groups, got {groups!r}")
    found = {name: _read_group(group, f"{_WHERE}, {name}") for name, group in groups.items()}
    if len(set(found.values())) > 1:
        raise ModelConfigError(f"{_WHERE}: the groups {', '.join(found)} differ, which is not supported")
    targets = [target for group in groups.values() for target in _names(group, "targets")]
    ignored = tuple(_names(config, "ignore"))
    _check_expressions((*targets, *ignored))
    return Quantization(has_blocks=next(iter(found.values())), targets=tuple(targets), ignored=ignored)


def _read_group(group: Mapping[str, Any], where: str) -> bool:
    """Whether the group's scales are by block."""
    _check(
        group,
        where,
        targets=_ANY,
        weights=_ANY,
        input_activations=_ANY,
        output_activations=(None,),
        format=("float-quantized", None),
    )
    weights, inputs = group.get("weights"), group.get("input_activations")
    if not isinstance(weights, Mapping) or not isinstance(inputs, Mapping):
        raise ModelConfigError(f"{where}: weights and input_activations must be objects, neither alone is supported")
    common: dict[str, tuple[Any, ...]] = {"num_bits": (8,), "type": ("float",), "symmetric": (True,)}
    has_blocks = weights.get("strategy") == "block"
    structures = ([BLOCK, BLOCK], f"{BLOCK}x{BLOCK}")
    blocks: dict[str, tuple[Any, ...]] = {"strategy": ("block",), "block_structure": structures}
    rows: dict[str, tuple[Any, ...]] = {"strategy": ("channel", "tensor"), "block_structure": (None,)}
    _check(
        weights,
        f"{where}, weights",
        **common,
        **(blocks if has_blocks else rows),
        dynamic=(False, None),
        group_size=(None,),
        actorder=(None,),
        **_OBSERVERS,
    )
    _check(
        inputs,
        f"{where}, input_activations",
        **common,
        strategy=("group",) if has_blocks else ("token",),
        group_size=(BLOCK,) if has_blocks else (None,),
        dynamic=(True,),
        block_structure=(None,),
        actorder=(None,),
        **_OBSERVERS,
    )
    return has_blocks


_ANY: tuple[Any, ...] = ()
# How the writer found the scales, and what type it kept them in: the files tell that themselves.
_OBSERVERS = {"observer": _ANY, "observer_kwargs": _ANY, "scale_dtype": _ANY, "zp_dtype": _ANY}
_READERS = {"fp8": _read_fp8, "compressed-tensors": _read_compressed_tensors}


def _check(config: Mapping[str, Any], where: str, **known: tuple[Any, ...]) -> None:
    """Every key of `config` must be known, and have one of the values; an absent one counts as null."""
    for key in config:
        if key not in known:
            raise ModelConfigError(f"{where}: {key} ({config[key]!r}) is not supported")
    for key, values in known.items():
        value = config.get(key)
        if values and value not in values:
            wanted = ", ".join(repr(v) for v in values if v is not None) or "null"
            raise ModelConfigError(f"{where}: {key} {value!r} is not supported; it must be {wanted}")


def _names(config: Mapping[str, Any], key: str) -> list[str]:
    names = config.get(key) or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelConfigError(f"{_WHERE}: {key} must be a list of names, got {names!r}")
    return names


def _as_pattern(name: str) -> str:
    """transformers reads a name as an expression that ends at a dot; only one with more than dots needs that here."""
    if re.fullmatch(r"[\w.\-]*", name):
        return name
    pattern = rf"{_EXPRESSION}(?:{name})(?:\.|$)"
    _check_expressions((pattern,))
    return pattern


def _check_expressions(patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        try:
            re.compile(pattern.removeprefix(_EXPRESSION) if pattern.startswith(_EXPRESSION) else "")
        except re.error as error:
            raise ModelConfigError(f"{_WHERE}: {pattern!r} is no regular expression: {error}") from None


def _matches(name: str, pattern: str) -> bool:
    if pattern.startswith(_EXPRESSION):
        return re.match(pattern.removeprefix(_EXPRESSION), name) is not None
    return f".{name}.".startswith(f".{pattern}.") or f".{name}.".endswith(f".{pattern}.")
