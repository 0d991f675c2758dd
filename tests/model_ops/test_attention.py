"""The attention layer: everything it was built with reaches the kernels, for decodes, prompts and both in one step."""

from __future__ import annotations

import pytest
import torch

from atom.hf_config import RopeConfig
from atom.model_ops.attention import Attention
from atom.model_ops.rope import RotaryEmbedding
from tests.kernels.dense import dense_attention, make_step
from tests.model_ops.build import build_context

HEADS, KV_HEADS, SIZE, WINDOW = 4, 2, 16, 6


def layer_of(**options: object) -> Attention:
    build = build_context()
    rotary = RotaryEmbedding(RopeConfig(), SIZE, build)
    rotary.cos_sin = torch.cat((torch.ones(64, SIZE // 2), torch.zeros(64, SIZE // 2)), dim=-1)
    return Attention(HEADS, KV_HEADS, SIZE, rotary, build, **options)  # type: ignore[arg-type]  # values of one Any dict


def attend(layer: Attention, whole: list[torch.Tensor], contexts: list[int], num_decodes: int) -> torch.Tensor:
    """Outputs of the tokens behind the contexts, after a step that computed the contexts."""
    kernels = layer._build.kernels
    layer.bind_cache(torch.zeros(kernels["kv_cache_shape"](12, 4, KV_HEADS, SIZE)))
    tables = [[7, 1, 4, 9, 0], [3, 2, 8, 5, 6]]

    def run(first: list[int], last: list[int], decodes: int) -> torch.Tensor:
        rows = [i for i in range(2) if last[i] > first[i]]
        step = make_step(
            [first[i] for i in rows], [last[i] - first[i] for i in rows], [tables[i] for i in rows], 4, decodes
        )
        step.plan = kernels["attention_plan"](step)
        return layer(torch.cat([whole[i][first[i] : last[i]] for i in rows]), step)

    run([0, 0], contexts, 0)
    return run(contexts, [len(x) for x in whole], num_decodes)


@pytest.mark.parametrize(("contexts", "num_decodes"), [([12, 16], 2), ([12, 7], 1), ([3, 7], 0)])
def test_window_cap_and_sinks_reach_the_kernels(contexts: list[int], num_decodes: int) -> None:
    torch.manual_seed(3)
    whole = [torch.randn(length, (HEADS + 2 * KV_HEADS) * SIZE) for length in (13, 17)]
    sinks = torch.tensor([0.5, -1.0, 2.0, 3.0])
    layer = layer_of(window=WINDOW, soft_cap=0.8, sinks=sinks)
    found = attend(layer, [x.clone() for x in whole], contexts, num_decodes)
    wanted = []
    for tokens, context in zip(whole, contexts, strict=True):
        q, k, v = tokens.view(len(tokens), -1, SIZE).split((HEADS, KV_HEADS, KV_HEADS), dim=1)
        wanted.append(dense_attention(q[context:], k, v, SIZE**-0.5, WINDOW, 0.8, sinks))
    assert (found.double() - torch.cat(wanted)).abs().max() < 2e-5
    plain = attend(layer_of(), [x.clone() for x in whole], contexts, num_decodes)
    assert (plain - found).abs().max() > 0.05


@pytest.mark.parametrize(("dtype", "factor"), [(torch.float8_e4m3fn, 1.0), (torch.float8_e4m3fnuz, 2.0)])
def test_an_fp8_cache_gets_the_scales_that_suit_its_type(dtype: torch.dtype, factor: float) -> None:
    layer = layer_of()
    layer.set_kv_scale(1, torch.tensor([0.5]))
    layer.bind_cache(torch.zeros(4, dtype=dtype))
    assert layer._bound_scales is not None
    assert layer._bound_scales.tolist() == [[factor, factor], [0.5 * factor, 0.5 * factor]]
    layer.bind_cache(torch.zeros(4, dtype=torch.bfloat16))
    assert layer._bound_scales is None
