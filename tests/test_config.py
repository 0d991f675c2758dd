"""Config: from a model's files and keywords to one frozen value (cases B78, B90, B91)."""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from atom.config import Config, merge

TINY: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 128,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "torch_dtype": "bfloat16",
}


def write_model(folder: Path, config: dict[str, Any] | None = None, **files: Any) -> str:
    """A model folder without weights; `files` are further JSON files by stem."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(TINY | (config or {})))
    for stem, content in files.items():
        (folder / f"{stem}.json").write_text(json.dumps(content))
    return str(folder)


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    return write_model(tmp_path / "tiny")


def test_defaults_come_from_the_table_and_the_model(tiny: str) -> None:
    config = Config.resolve(tiny)
    assert (config.model, config.model_path) == (tiny, Path(tiny))
    assert config.served_model_names == (tiny,)
    assert (config.max_model_len, config.dtype, config.device) == (256, "bfloat16", "auto")
    assert (config.max_num_seqs, config.max_num_batched_tokens, config.block_size) == (512, 16384, 16)
    assert config.enable_prefix_caching
    assert config.generation.given() == {}
    assert config.parallel.tensor_parallel_size == 1
    assert config.speculative is None
    assert config.chat_template is None
    assert config.default_chat_template_kwargs == {}


def test_keywords_win(tiny: str) -> None:
    config = Config.resolve(
        tiny,
        served_model_name=["a", "b"],
        kv_cache_memory="2GiB",
        max_model_len=64,
        dtype="float32",
        load_dummy="zero",
        default_chat_template_kwargs='{"enable_thinking": false}',
    )
    assert config.served_model_names == ("a", "b")
    assert config.kv_cache_memory == 2 * 2**30
    assert (config.max_model_len, config.dtype, config.load_dummy) == (64, "float32", "zero")
    assert config.default_chat_template_kwargs == {"enable_thinking": False}


def test_config_is_frozen_and_can_start_a_process(tiny: str) -> None:
    config = Config.resolve(tiny)
    with pytest.raises(AttributeError):
        config.max_num_seqs = 3  # type: ignore[misc]  # frozen: that is what is tested
    assert pickle.loads(pickle.dumps(config)) == config


def test_an_unknown_keyword_names_the_nearest(tiny: str) -> None:
    with pytest.raises(TypeError, match="'max_num_seq' is no setting of the engine; did you mean 'max_num_seqs'"):
        Config.resolve(tiny, max_num_seq=3)
    with pytest.raises(TypeError, match="'server_port'"):
        Config.resolve(tiny, server_port=8000)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("max_model_len", 0, "--max-model-len: 0 is less than 1"),
        ("max_model_len", 257, "--max-model-len 257: the model was made for at most 256 tokens"),
        ("max_model_len", "64", "'64' is not a whole number"),
        ("max_model_len", True, "True is not a whole number"),
        ("block_size", 0, "--block-size: 0 is less than 1"),
        ("gpu_memory_utilization", 1.5, "--gpu-memory-utilization: 1.5 is more than 1"),
        ("gpu_memory_utilization", 0.0, "0.0 is not above 0"),
        ("scheduler_delay_factor", float("nan"), "nan is not a finite number"),
        ("enable_prefix_caching", "yes", "'yes' is not True or False"),
        ("enable_prefix_caching", None, "a value is needed"),
        ("load_dummy", "random", "'random' is not one of empty, zero, xavier"),
        ("kv_cache_memory", "2GX", "is no size"),
        ("hf_overrides", "[1]", "is not a JSON object"),
        ("hf_overrides", "{", "is not a JSON object"),
        ("served_model_name", [], "one or more non-empty strings"),
        ("chat_template", "no/such/file.jinja", "neither a file nor a template"),
        ("generation_config", "no/such/folder", "does not exist"),
        ("tensor_parallel_size", 2, "--tensor-parallel-size 2: tensor parallelism is not implemented yet"),
        ("data_parallel_size", 2, "data parallelism is not implemented yet"),
        ("enable_expert_parallel", True, "expert parallelism is not implemented yet"),
        ("method", "mtp", "speculative decoding is not implemented yet"),
        ("num_speculative_tokens", 2, "speculative decoding is not implemented yet"),
        ("level", 4, "--level: 4 is more than 3"),
        ("port", 9000, "the HTTP port is --server-port"),
        ("mark_trace", True, "say with --torch-profiler-dir where the traces go"),
    ],
)
def test_bad_values_name_the_flag_and_the_reason(tiny: str, name: str, value: Any, words: str) -> None:
    with pytest.raises(ValueError, match="(?s)" + words.replace("(", r"\(")) as caught:
        Config.resolve(tiny, **{name: value})
    assert "--" + name.replace("_", "-") in str(caught.value)


def test_a_refused_feature_may_be_given_its_default(tiny: str) -> None:
    config = Config.resolve(tiny, tensor_parallel_size=1, kv_cache_dtype="bf16", level=0, port=8006)
    assert config.compilation.level == 0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("no/such/folder/here", "is no folder with a model"),
        ("/no/such/folder", "is no folder with a model"),
        ("./nothing", "is no folder with a model"),
    ],
)
def test_a_model_that_is_not_there(model: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Config.resolve(model)


def test_a_folder_without_config(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"without config\.json"):
        Config.resolve(str(tmp_path))


def test_a_hub_that_can_not_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def unreachable(*args: Any, **kwargs: Any) -> str:
        raise OSError("connection refused\nlong explanation")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(ValueError, match=r"connection refused.*--model a folder.*atom-tiny") as caught:
        Config.resolve("Qwen/Qwen3-0.6B")
    assert "\n" not in str(caught.value)


def test_hf_overrides_are_laid_over_config_json(tiny: str) -> None:
    rope = {"rope_scaling": {"type": "linear", "factor": 4.0}}
    config = Config.resolve(tiny, hf_overrides={"max_position_embeddings": 512, **rope})
    assert config.hf.max_position_embeddings == 512
    assert config.max_model_len == 2048
    assert config.hf.hidden_size == 32
    assert merge({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}) == {"a": {"b": 3, "c": 2}}


def test_float16_runs_in_bfloat16_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = Config.resolve(write_model(tmp_path / "m", {"torch_dtype": "float16"}))
    assert config.dtype == "bfloat16"
    assert "float16" in caplog.text
    assert Config.resolve(write_model(tmp_path / "n", {"torch_dtype": None, "dtype": "float32"})).dtype == "float32"
    with pytest.raises(ValueError, match="float8"):
        Config.resolve(write_model(tmp_path / "o", {"torch_dtype": "float8_e4m3fn"}))


def test_quantised_checkpoints(tmp_path: Path, tiny: str) -> None:
    with pytest.raises(ValueError, match="quant_method 'awq' is not supported"):
        Config.resolve(write_model(tmp_path / "m", {"quantization_config": {"quant_method": "awq"}}))
    given = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
    found = Config.resolve(write_model(tmp_path / "n", {"quantization_config": given})).quantization
    assert found is not None
    assert (found.has_blocks, found.is_online) == (True, False)
    assert Config.resolve(tiny).quantization is None
    online = Config.resolve(tiny, quantization="fp8").quantization
    assert online is not None
    assert online.is_online
    with pytest.raises(ValueError, match="--quantization"):
        Config.resolve(tiny, quantization="int4")


def test_chat_template_is_a_file_or_text(tiny: str, tmp_path: Path) -> None:
    file = tmp_path / "t.jinja"
    file.write_text("{{ messages }}")
    assert Config.resolve(tiny, chat_template=str(file)).chat_template == file
    assert Config.resolve(tiny, chat_template="{{ x }}").chat_template == "{{ x }}"


TOKENIZER = {
    "added_tokens": [{"id": 7, "content": "<end>", "special": True}],
    "model": {"type": "BPE", "vocab": {"a": 0, "</s>": 9}, "merges": []},
}


@pytest.mark.parametrize(
    ("config", "files", "ids"),
    [
        ({"eos_token_id": 1}, {"generation_config": {"eos_token_id": [1, 106]}}, (1, 106)),
        ({"eos_token_id": 5}, {}, (5,)),
        ({"eos_token_id": None}, {"tokenizer_config": {"eos_token": "<end>"}, "tokenizer": TOKENIZER}, (7,)),
        ({}, {"tokenizer_config": {"eos_token": {"content": "</s>"}}, "tokenizer": TOKENIZER}, (9,)),
        ({}, {"special_tokens_map": {"eos_token": {"content": "<end>"}}, "tokenizer": TOKENIZER}, (7,)),
        (
            {"eos_token_id": 2},
            {
                "tokenizer_config": {
                    "eos_token": "<|im_end|>",
                    "added_tokens_decoder": {"8": {"content": "<|im_end|>"}},
                },
                "generation_config": {"eos_token_id": 3},
            },
            (2, 3, 8),
        ),
        ({"eos_token_id": [1, 500]}, {}, (1,)),
        ({}, {}, ()),
    ],
)
def test_the_ids_that_end_a_turn_are_the_union(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    config: dict[str, Any],
    files: dict[str, Any],
    ids: tuple[int, ...],
) -> None:
    model = write_model(tmp_path / "m", config, **files)
    assert Config.resolve(model).eos_token_ids == ids
    assert ("outside the vocabulary" in caplog.text) == (config.get("eos_token_id") == [1, 500])
    assert ("names no token" in caplog.text) == (ids == ())
    # --generation-config none is about sampling; the end tokens stay.
    assert Config.resolve(model, generation_config="none").eos_token_ids == ids


GENERATION = {
    "temperature": 0.1,
    "top_k": 1,
    "top_p": 0.001,
    "repetition_penalty": 1.05,
    "do_sample": True,
    "min_p": None,
}


def test_sampling_defaults_of_the_model(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    model = write_model(tmp_path / "m", generation_config=GENERATION)
    expected = {"temperature": 0.1, "top_p": 0.001, "top_k": 1, "repetition_penalty": 1.05}
    assert Config.resolve(model).generation.given() == expected
    assert "default sampling parameters from" in caplog.text
    assert Config.resolve(model, generation_config="none").generation.given() == {}
    other = tmp_path / "other"
    write_model(other, generation_config={"temperature": 0.7})
    assert Config.resolve(model, generation_config=str(other)).generation.given() == {"temperature": 0.7}


@pytest.mark.parametrize("wrong", [{"top_p": 0}, {"temperature": "hot"}, {"top_k": 1.5}, {"repetition_penalty": -1}])
def test_wrong_sampling_defaults_name_the_file(tmp_path: Path, wrong: dict[str, Any]) -> None:
    model = write_model(tmp_path / "m", generation_config=wrong)
    with pytest.raises(ValueError, match=r"generation_config\.json.*" + next(iter(wrong))):
        Config.resolve(model)


def test_broken_json_names_the_file(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m")
    (tmp_path / "m/generation_config.json").write_text("{")
    with pytest.raises(ValueError, match=r"generation_config\.json is not valid JSON"):
        Config.resolve(model)


def test_variables_stand_in_for_absent_flags(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOM_TORCH_PROFILER_DIR", "traces")
    assert Config.resolve(tiny).torch_profiler_dir == Path("traces")
    assert Config.resolve(tiny, torch_profiler_dir="given").torch_profiler_dir == Path("given")


def test_a_variable_that_is_only_read_later_is_checked_too(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOM_PROFILER_TIMEOUT", "0")
    with pytest.raises(ValueError, match=r"ATOM_PROFILER_TIMEOUT: 0\.0 is not above 0"):
        Config.resolve(tiny)


def test_importing_config_is_light() -> None:
    heavy = ["torch", "transformers", "huggingface_hub", "pydantic", "numpy", "argparse"]
    code = f"import sys, atom.config, atom.envs; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("model", "template"), [("atom-tiny", "qwen.jinja"), ("atom-tiny@glm", "glm.jinja")])
def test_the_model_that_ships(model: str, template: str) -> None:
    config = Config.resolve(model)
    assert config.served_model_names == (model,)
    assert isinstance(config.chat_template, Path)
    assert config.chat_template.name == template
    assert config.eos_token_ids
    assert Config.resolve(model, chat_template="{{ own }}").chat_template == "{{ own }}"
    with pytest.raises(ValueError, match="does not speak 'nope'"):
        Config.resolve("atom-tiny@nope")
