"""Checkpoints with fp8 weights, and those quantised while they are loaded, against transformers' model of the same."""

from __future__ import annotations

import json
import statistics
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from atom import LLMEngine, SamplingParams
from atom.model_loader.files import WeightsError
from conformance.http.server import started
from tests.models.drive import Driver, make_runner
from tests.models.fp8_checkpoints import SIZES, by_row, make_checkpoint, quantize_in_place
from tests.models.test_against_transformers import watch_logits
from tests.models.tiny import make_model, save_model

PROMPTS = [[(7 * at + 13 * index) % 190 + 1 for at in range(21 + index)] for index in range(5)]
ANSWERS = Path(__file__).parents[2] / "tools" / "eval" / "data" / "answers.jsonl"


def difference(folder: Path, model: Any, **settings: Any) -> float:
    """How far the logits of a prompt and three tokens are off, in chunks and decodes: the median of the prompts.

    Two ways to sum differ in the last bit, which now and then rounds an input to its other 8-bit neighbour, and all
    that follows is off by tenths then; otherwise nothing differs but that bit. Logits have a deviation of 1.
    """
    runner = make_runner(folder, max_model_len=128, **settings)
    seen, driver, found = watch_logits(runner), Driver(runner), []
    for prompt in PROMPTS:
        seen.clear()
        sequence = driver.add(prompt)
        driver.generate([sequence], 4, chunk=20)
        with torch.inference_mode():
            theirs = model(torch.tensor([sequence.tokens[:-1]])).logits[0, len(prompt) - 1 :]
        found.append(float((torch.cat(seen).cpu() - theirs).abs().max()))
    return statistics.median(found)


@pytest.mark.parametrize("kind", ["blocks", "channel", "tensor"])
@pytest.mark.parametrize("variant", ["llama", "qwen2-tied", "qwen3"])
def test_logits(variant: str, kind: str, tmp_path: Path) -> None:
    model = make_checkpoint(tmp_path, variant, kind, ignored=["model.layers.1.mlp.down_proj"])
    assert difference(tmp_path, model) < 1e-4
    for linear in model.modules():
        linear._forward_pre_hooks.clear()
    assert 0.05 < difference(tmp_path, model) < 1  # what rounding the inputs does


def test_parts_that_begin_at_blocks(tmp_path: Path) -> None:
    sizes = {"hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64}
    model = make_checkpoint(tmp_path, "llama-tied-bias", "blocks", [], intermediate_size=384, **sizes)
    assert difference(tmp_path, model) < 1e-4


@pytest.mark.parametrize("variant", ["llama-tied-bias", "qwen2", "qwen3-tied"])
def test_quantised_while_it_is_loaded(variant: str, tmp_path: Path) -> None:
    model = make_model(variant, **SIZES)
    save_model(model, tmp_path)
    quantize_in_place(model, by_row, None, [])
    assert difference(tmp_path, model, quantization="fp8") < 1e-4


def test_bfloat16(tmp_path: Path) -> None:
    model = make_checkpoint(tmp_path, "qwen3", "blocks", [])
    assert 0 < difference(tmp_path, model, dtype="bfloat16") < 0.8


# Sizes that torch._scaled_mm takes, by row and in blocks.
_WIDE = {
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
}


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "limit"), [("float32", 0.5), ("bfloat16", 1.5)])
@pytest.mark.parametrize("sizes", [SIZES, _WIDE], ids=["odd", "wide"])
@pytest.mark.parametrize("kind", ["blocks", "channel"])
def test_logits_on_the_gpu(kind: str, sizes: dict[str, int], dtype: str, limit: float, tmp_path: Path) -> None:
    """Loosely, since a GPU's sums round more inputs to their neighbours; the kernels' own checks are strict."""
    model = make_checkpoint(tmp_path, "qwen3", kind, [], **sizes)
    assert difference(tmp_path, model, device="cuda", dtype=dtype, enforce_eager=True) < limit


@pytest.mark.gpu
def test_graphs_equal_eager(tmp_path: Path) -> None:
    save_model(make_model("qwen3", **{**SIZES, **_WIDE}), tmp_path)
    found = []
    for eager in (True, False):
        driver = Driver(
            make_runner(
                tmp_path, max_model_len=128, device="cuda", dtype="bfloat16", quantization="fp8", enforce_eager=eager
            )
        )
        sequences = [driver.add(prompt) for prompt in PROMPTS[:4]]
        driver.generate(sequences, 30)
        found.append([sequence.output for sequence in sequences])
    assert found[0] == found[1]


@pytest.mark.gpu
@pytest.mark.parametrize("has_blocks", [False, True])
def test_torch_multiplies_on_hopper(has_blocks: bool) -> None:
    """Where torch has the product, the table's functions use it; in blocks that depends on the library's version."""
    from atom.model_ops.kernels.triton import fp8_linear

    device = torch.device("cuda", torch.cuda.current_device())
    product = fp8_linear._by_torch_in_blocks if has_blocks else fp8_linear._by_torch
    is_right = fp8_linear._is_right(product, device, torch.float8_e4m3fn)
    if has_blocks and not is_right:
        pytest.skip("this torch has no product in blocks, or a wrong one")
    assert is_right


def write(folder: Path, **changes: Any) -> None:
    """Lay tensors over those of the checkpoint; None takes one away."""
    tensors = {**load_file(folder / "model.safetensors"), **{name.replace("/", "."): t for name, t in changes.items()}}
    save_file({name: tensor for name, tensor in tensors.items() if tensor is not None}, folder / "model.safetensors")


def test_checkpoints_that_do_not_fit(tmp_path: Path) -> None:
    make_checkpoint(tmp_path, "llama", "channel", [])
    config = json.loads((tmp_path / "config.json").read_text())

    def fails(message: str, **settings: Any) -> None:
        with pytest.raises(WeightsError, match=message):
            make_runner(tmp_path, max_model_len=64, **settings)

    fails(
        r"q_proj, model\.layers\.0\.self_attn\.k_proj is quantised and model\.layers\.0\.self_attn\.v_proj is not",
        hf_overrides={"quantization_config": {"ignore": ["lm_head", "v_proj"]}},
    )
    fails("quantises none", hf_overrides={"quantization_config": {"ignore": ["re:.*"]}})
    fails(
        r"down_proj\.weight is torch\.float8_e4m3fn, by config\.json it is not quantised",
        hf_overrides={"quantization_config": {"ignore": ["down_proj"]}},
    )
    scale = "model/layers/0/mlp/down_proj/weight_scale"
    kept = load_file(tmp_path / "model.safetensors")[scale.replace("/", ".")]
    write(tmp_path, **{scale: None})
    fails(r"lacks model\.layers\.0\.mlp\.down_proj\.weight_scale$")
    write(tmp_path, **{scale: torch.ones(7, 1)})
    fails(r"down_proj\.weight_scale has shape \[7, 1\], by quantization_config it is \[160, 1\]")
    write(tmp_path, **{scale: kept, "lm_head/weight_scale": torch.ones(199, 1)})
    fails(r"no place for: lm_head\.weight_scale")
    del config["quantization_config"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    fails(r"weight is torch\.float8_e4m3fn already", quantization="fp8")
    weights = load_file(tmp_path / "model.safetensors")
    integers = {name: t.float().to(torch.int8) if t.dtype == torch.float8_e4m3fn else t for name, t in weights.items()}
    save_file({name: t for name, t in integers.items() if "scale" not in name}, tmp_path / "model.safetensors")
    fails(r"weight is torch\.int8, by config\.json it is not quantised", quantization="fp8")


@pytest.mark.parametrize("kind", ["zero", "xavier", "empty"])
@pytest.mark.parametrize("checkpoint", ["blocks", "channel", None])
def test_dummy_weights(kind: str, checkpoint: str | None, tmp_path: Path) -> None:
    """Without a checkpoint: zeros are zeros, and random weights are numbers of the usual size."""
    if checkpoint is None:
        save_model(make_model("qwen3", **SIZES), tmp_path)
    else:
        make_checkpoint(tmp_path, "qwen3", checkpoint, [])
    (tmp_path / "model.safetensors").unlink()
    runner = make_runner(tmp_path, max_model_len=64, load_dummy=kind, **({} if checkpoint else {"quantization": "fp8"}))
    with torch.inference_mode():
        out = runner.model.model.layers[0].mlp.gate_up_proj(torch.randn(3, 160))
    if kind == "zero":
        assert not out.any()
    elif kind == "xavier":
        assert 0.5 < out.std() < 1.5


def test_the_shipped_model_keeps_its_answers() -> None:
    """Everything of the evaluation that atom-tiny has learned: with 8-bit weights nearly all answers are the same."""
    rows = [json.loads(line) for line in ANSWERS.read_text().splitlines()]
    rows = [row for row in rows if row["skill"] != "beyond"][::4]
    sampling = SamplingParams(temperature=0.0, max_tokens=96, stop_strings="<|im_end|>")
    with LLMEngine("atom-tiny", dtype="float32", device="cpu", max_num_seqs=48, quantization="fp8") as engine:
        answers = [answer["text"] for answer in engine.generate([row["prompt"] for row in rows], sampling)]
    kept = sum(answer == row["answer"] for answer, row in zip(answers, rows, strict=True))
    print(f"{kept} of {len(rows)} answers are kept")
    assert len(rows) > 40
    assert kept >= len(rows) - 1


def test_a_server_with_quantised_weights(tmp_path: Path) -> None:
    body = {"model": "atom-tiny", "messages": [{"role": "user", "content": "What is 12 + 30?"}], "temperature": 0}
    with started(tmp_path, flags=("--quantization", "fp8", "--device", "cpu")) as server:
        request = urllib.request.Request(
            f"{server.url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            answer = json.loads(response.read())
    assert "42" in answer["choices"][0]["message"]["content"]
