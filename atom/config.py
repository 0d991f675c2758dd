"""The engine's configuration: what was asked for, what the model's files say, resolved once and then frozen.

Every keyword is a flag of spec/settings.yaml that the engine uses. Owns how the two meet (context length, dtype, end
tokens, chat template); knows neither argparse nor torch. A device of "auto" is resolved by the engine process, which
may look for a GPU.
"""

from __future__ import annotations

import difflib
import logging
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from atom_spec.settings import SETTINGS

from atom.envs import check_all, default_of
from atom.generation_defaults import GenerationDefaults, read_eos_token_ids, read_generation_defaults
from atom.hf_config import HFConfig, ModelConfigError
from atom.model_folder import find_model, read_json_object
from atom.quantization import Quantization, read_quantization
from atom.setting_values import check_value, refusal

logger = logging.getLogger(__name__)

ENGINE_SETTINGS = {setting.name: setting for setting in SETTINGS if setting.used_by == "engine"}
_DTYPES = {"float32": "float32", "bfloat16": "bfloat16", "float16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class ParallelConfig:
    """How many devices share the work. `port` is where workers of one engine meet."""

    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    enable_expert_parallel: bool = False
    enable_dp_attention: bool = False
    port: int = 8006


@dataclass(frozen=True, slots=True)
class CompilationConfig:
    """Graphs and compilation. None: the device's level, capture sizes up to max_num_seqs, no prefill graphs."""

    level: int | None = None
    cudagraph_capture_sizes: tuple[int, ...] | None = None
    cudagraph_prefill_sizes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class SpeculativeConfig:
    """How draft tokens are made and accepted."""

    method: str
    num_speculative_tokens: int = 1
    draft_model: str | None = None
    acceptance_length: float | None = None
    acceptance_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """Everything the engine needs to know; picklable, so that it can start a process. Build it with `resolve`.

    model is what was asked for, model_path the folder. kv_cache_memory: bytes, None to choose. dtype is float32 or
    bfloat16, device auto, cpu or cuda. eos_token_ids ascend. chat_template: a file, a template's text, or None for the
    model's own. sizes and counts are in tokens, blocks in tokens too, times in seconds.
    """

    model: str
    model_path: Path
    served_model_names: tuple[str, ...]
    trust_remote_code: bool
    hf: HFConfig
    generation: GenerationDefaults
    eos_token_ids: tuple[int, ...]
    dtype: str
    quantization: Quantization | None
    device: str
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    block_size: int
    enable_prefix_caching: bool
    kv_cache_dtype: str
    gpu_memory_utilization: float
    kv_cache_memory: int | None
    load_dummy: str | None
    enforce_eager: bool
    scheduler_delay_factor: float
    chat_template: Path | str | None
    default_chat_template_kwargs: dict[str, Any]
    tool_call_parser: str
    reasoning_ends_at_tool_call: bool
    torch_profiler_dir: Path | None
    mark_trace: bool
    enable_log_stats: bool
    throughput_log_interval: float
    parallel: ParallelConfig
    compilation: CompilationConfig
    speculative: SpeculativeConfig | None

    @classmethod
    def resolve(cls, model: str, **overrides: Any) -> Config:
        """The configuration for `model` (a folder, a hub id or atom-tiny) with the flags in `overrides`.

        TypeError: an unknown keyword, with the nearest name. ValueError: a value out of range (of an ATOM_* variable
        too), a feature that is not there yet, or a model that can not be found or used.
        """
        check_all()
        given = check_settings({"model": model, **overrides})
        if given["mark_trace"] and given["torch_profiler_dir"] is None:
            raise ValueError("--mark-trace: say with --torch-profiler-dir where the traces go")
        folder = find_model(given["model"])
        hf = _read_hf_config(folder.path, given["hf_overrides"])
        names = {f.name for f in fields(cls)}
        taken = {name: value for name, value in given.items() if name in names}
        return cls(
            **taken
            | {
                "model_path": folder.path,
                "served_model_names": given["served_model_name"] or (given["model"],),
                "hf": hf,
                "generation": read_generation_defaults(given["generation_config"], folder.path),
                "eos_token_ids": read_eos_token_ids(folder.path, hf.raw, hf.vocab_size),
                "dtype": _resolve_dtype(given["dtype"], hf),
                "quantization": read_quantization(hf.raw.get("quantization_config"), given["quantization"]),
                "max_model_len": _resolve_max_model_len(given["max_model_len"], hf),
                "chat_template": _resolve_chat_template(given["chat_template"]) or folder.chat_template,
                "default_chat_template_kwargs": given["default_chat_template_kwargs"] or {},
                "parallel": ParallelConfig(**{f.name: given[f.name] for f in fields(ParallelConfig)}),
                "compilation": CompilationConfig(**{f.name: given[f.name] for f in fields(CompilationConfig)}),
                "speculative": _resolve_speculative(given),
            }
        )


def check_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Every engine setting by name: the given values checked, the others' defaults. Raises as `Config.resolve` does."""
    for name in given:
        if name not in ENGINE_SETTINGS:
            nearest = difflib.get_close_matches(name, ENGINE_SETTINGS, n=1)
            raise TypeError(
                f"{name!r} is no setting of the engine" + (f"; did you mean {nearest[0]!r}?" if nearest else "")
            )
    values: dict[str, Any] = {}
    for name, setting in ENGINE_SETTINGS.items():
        value = given[name] if name in given else default_of(setting)
        try:
            values[name] = check_value(setting, value)
        except ValueError as error:
            raise ValueError(f"{setting.flags[0]}: {error}") from None
        reason = refusal(setting, values[name])
        if reason is not None:
            raise ValueError(f"{setting.flags[0]} {value}: {reason}")
    return values


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`over` laid over `base`: objects key by key, everything else replaced. Neither is changed."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _read_hf_config(model_path: Path, overrides: dict[str, Any] | None) -> HFConfig:
    raw = read_json_object(model_path / "config.json")
    if raw is None:
        raise ModelConfigError(f"{model_path} holds no config.json")
    return HFConfig.from_dict(merge(raw, overrides or {}))


def _resolve_dtype(asked: str, hf: HFConfig) -> str:
    if asked != "auto":
        return asked
    own = hf.dtype or "float32"
    if own not in _DTYPES:
        raise ModelConfigError(f"config.json: dtype {own!r} is not supported; give --dtype float32 or bfloat16")
    if own == "float16":
        logger.warning("the checkpoint is float16, which is not computed in; running in bfloat16 (see --dtype)")
    return _DTYPES[own]


def _resolve_max_model_len(asked: int | None, hf: HFConfig) -> int:
    longest = hf.max_context
    if asked is not None and asked > longest:
        raise ValueError(f"--max-model-len {asked}: the model was made for at most {longest} tokens")
    return asked or longest


def _resolve_chat_template(given: str | None) -> Path | str | None:
    if given is None:
        return None
    if "{" in given:
        return given
    path = Path(given).expanduser()
    if not path.is_file():
        raise ValueError(f"--chat-template: {given!r} is neither a file nor a template")
    return path.resolve()


def _resolve_speculative(given: dict[str, Any]) -> SpeculativeConfig | None:
    if given["method"] is None:
        return None
    return SpeculativeConfig(
        method=given["method"],
        num_speculative_tokens=given["num_speculative_tokens"],
        draft_model=given["draft_model"],
        acceptance_length=given["spec_decode_acceptance_length"],
        acceptance_rate=given["spec_decode_acceptance_rate"],
    )
