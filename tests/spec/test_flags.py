"""The command line is frozen here: a flag that appears, goes or changes its default does so on purpose."""

from __future__ import annotations

from atom_spec.settings import ENVIRONMENT, GROUPS, SETTINGS

from atom.model_engine.arg_utils import SettingsParser, add_cli_args, no_spellings

# name: default, in the order of the help text.
FLAGS = {
    "model": "Qwen/Qwen3-0.6B",
    "served_model_name": None,
    "trust_remote_code": False,
    "dtype": "auto",
    "quantization": None,
    "load_dummy": None,
    "hf_overrides": None,
    "generation_config": "auto",
    "max_model_len": None,
    "max_num_batched_tokens": 16384,
    "max_num_seqs": 512,
    "enable_prefix_caching": True,
    "scheduler_delay_factor": 0.0,
    "block_size": 16,
    "kv_cache_dtype": "bf16",
    "gpu_memory_utilization": 0.9,
    "kv_cache_memory": None,
    "device": "auto",
    "enforce_eager": False,
    "cudagraph_capture_sizes": None,
    "cudagraph_prefill_sizes": None,
    "level": None,
    "tensor_parallel_size": 1,
    "data_parallel_size": 1,
    "enable_expert_parallel": False,
    "enable_dp_attention": False,
    "port": 8006,
    "method": None,
    "num_speculative_tokens": 1,
    "draft_model": None,
    "spec_decode_acceptance_length": None,
    "spec_decode_acceptance_rate": None,
    "enable_log_stats": True,
    "throughput_log_interval": 10.0,
    "torch_profiler_dir": None,
    "mark_trace": False,
    "host": "0.0.0.0",
    "server_port": 8000,
    "api_key": None,
    "metrics_without_api_key": False,
    "allowed_origins": None,
    "disable_uvicorn_access_log": False,
    "request_log": None,
    "max_request_bytes": 32 * 2**20,
    "timeout_keep_alive": 5,
    "sse_keep_alive": 15.0,
    "drain_timeout": 30.0,
    "chat_template": None,
    "default_chat_template_kwargs": None,
    "tool_call_parser": "auto",
    "reasoning_ends_at_tool_call": False,
}
SHORT = {"-h", "-tp", "-dp"}
NEGATIVE = {
    "--no-enable-prefix-caching",
    "--no-enable_prefix_caching",
    "--no_enable_prefix_caching",
    "--no-enable-log-stats",
    "--no-enable_log_stats",
    "--no_enable_log_stats",
}
VARIABLES = {
    "ATOM_API_KEY": None,
    "ATOM_KERNELS": None,
    "ATOM_EARLY_START": True,
    "ATOM_CPU_THREADS": 0,
    "ATOM_TORCH_PROFILER_DIR": None,
    "ATOM_PROFILER_MORE": False,
    "ATOM_PROFILER_TIMEOUT": 300.0,
    "ATOM_ENABLE_DETAILED_ANNOTATION": False,
}


def test_flags_and_defaults_are_the_documented_ones() -> None:
    assert {setting.name: setting.default for setting in SETTINGS} == FLAGS
    assert {variable.name: variable.default for variable in ENVIRONMENT} == VARIABLES


def test_every_long_flag_has_both_spellings_and_nothing_else_exists() -> None:
    parser = add_cli_args(SettingsParser(prog="atom"))
    spellings = {spelling for name in FLAGS for spelling in (f"--{name}", f"--{name.replace('_', '-')}")}
    assert set(parser._option_string_actions) == spellings | NEGATIVE | SHORT | {"--help"}


def test_negative_forms_exist_exactly_for_what_is_on_by_default() -> None:
    assert {flag for setting in SETTINGS for flag in no_spellings(setting)} == NEGATIVE


def test_every_setting_is_described() -> None:
    for setting in (*SETTINGS, *ENVIRONMENT):
        assert setting.group in GROUPS
        assert setting.help.endswith("."), setting.name
        assert setting.refuse is None or not setting.refuse.endswith("."), setting.name
