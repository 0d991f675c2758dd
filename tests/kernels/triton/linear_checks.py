"""Products of few tokens in Triton against float64: every number of tokens, ragged sizes, poisoned outputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch

from atom.hf_config import HFConfig
from atom.model_loader.dummy import fill_dummy
from atom.model_ops.context import BuildContext
from atom.model_ops.embedding import LMHead
from atom.model_ops.kernels.select import select_kernels
from atom.model_ops.kernels.triton import linear, linear_few
from atom.model_ops.kernels.triton.linear_few import Tile, by_rows, by_tensor_cores, by_threads
from atom.models.decoder import GatedMLP

# Rounding to bfloat16 alone is up to 3.9e-3 of a value; what sums in float32 lose, on tensor cores too, is far less.
_LIMITS = {torch.bfloat16: 4.5e-3, torch.float32: 2e-5}
# Sizes that a tile divides, that it does not, and that are smaller; several steps of inputs and one.
_SIZES = ((16, 512), (9, 500), (3, 77), (5, 700))
_TILES = (
    by_threads(8, 512, 4), by_threads(8, 256, 1), by_tensor_cores(16, 2, 3), by_tensor_cores(8, 8, 4),
    by_rows(16, 256, 1, 4), by_rows(32, 128, 2, 8), by_rows(64, 128, 4, 6),
)  # fmt: skip


def random(device: torch.device, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, device=device).bfloat16()


def checked(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    found: torch.Tensor,
    dtype: torch.dtype = torch.bfloat16,
) -> None:
    """AssertionError unless `found` is the product as `dtype`; poison that was left in it never passes."""
    wanted = x.double() @ weight.double().t() + (0 if bias is None else bias.double())
    assert found.dtype == dtype
    assert found.shape == wanted.shape
    errors = (found.double() - wanted).norm(dim=1) / wanted.norm(dim=1)
    assert errors.max() < _LIMITS[dtype], f"{errors.max():.2e} of {tuple(weight.shape)}"


def check_tile(tile: Tile, device: torch.device) -> None:
    """Both a batch of tokens between others and one alone, with and without bias."""
    most = linear_few.MAX_TOKENS if tile.stages else linear_few.MAX_TOKENS_BY_THREADS
    for (outputs, width), has_bias in zip(_SIZES, itertools.cycle((True, False))):
        weight, bias = random(device, outputs, width), random(device, outputs) if has_bias else None
        for count in (1, 3, 8, 9, most) if tile.stages else range(1, most + 1):
            # Rows of a wider tensor, full of values that no product may see.
            wide = torch.full((count, width + 16), float("nan"), device=device).bfloat16()
            x = wide[:, :width]
            x.copy_(random(device, count, width))
            # Both types' outputs, so that a kernel that rounds to the inputs' is found.
            for dtype in _LIMITS:
                leave_poison(outputs * count, device)
                found = linear_few.few_linear(x, weight, bias, tile, dtype)
                checked(x, weight, bias, found, dtype)
            x[:-1] = 1e30
            again = linear_few.few_linear(x, weight, bias, tile, dtype)
            assert torch.equal(again[-1], found[-1]), "a token's product depends on the other tokens"


def leave_poison(size: int, device: torch.device) -> None:
    """Leave NaN in memory that the allocator hands out next."""
    kept = [torch.full((size,), float("nan"), device=device, dtype=dtype) for dtype in _LIMITS]
    del kept


def check_choice(device: torch.device) -> None:
    """The operation as the table has it: every number of tokens to beyond the most, and what the library takes."""
    for outputs, width in ((16, 320), (8, 4112)):
        weight, bias = random(device, outputs, width), random(device, outputs)
        packed = linear.linear_pack(weight, bias)
        for count in (1, 2, 4, 5, 16, 17):
            x = random(device, count, width)
            checked(x, weight, bias, linear.linear(x, packed))
            is_left = device.type != "cpu" or count <= linear_few.MAX_TOKENS
            checked(x, weight, bias, linear.logits(x, packed), torch.float32 if is_left else x.dtype)
    odd = linear.linear_pack(random(device, 7, 33), None)
    for x in (random(device, 2, 33), random(device, 33, 2).t()):
        checked(x, odd.weight, None, linear.linear(x, odd))
    assert linear.linear(x[:0], odd).shape == (0, 7)
    whole = linear.linear_pack(torch.eye(16, device=device), torch.ones(16, device=device))
    assert torch.equal(linear.linear(whole.weight, whole), whole.weight + 1)
    assert torch.equal(linear.logits(whole.weight, whole), whole.weight + 1)


def check_tiles(device: torch.device) -> None:
    """Every choice has a tile that can do its product, and up to two tokens one whose kernel may start at once."""
    del device
    outputs, widths = (1, 16, 1024, 1040, 2048, 2560, 6144, 151936), (16, 1024, 4096, 5120, 12288)
    for count, *size in itertools.product(range(1, linear_few.MAX_TOKENS + 1), outputs, widths):
        tile = linear.choose_tile(count, *size)
        assert tile is not None
        assert tile.stages > 0 or count <= linear_few.MAX_TOKENS_BY_THREADS
        assert tile.stages == 0 or count > 2


def check_layers(device: torch.device) -> None:
    """A feed-forward layer and a head as models build them, beside the reference's."""
    sizes = {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 1, "num_attention_heads": 1}
    hf = HFConfig.from_dict({"architectures": ["LlamaForCausalLM"], **sizes, "vocab_size": 37})
    x = random(device, 3, 48)
    found = []
    for asked in ("linear=triton", ""):
        build = BuildContext(select_kernels("cpu", asked), torch.bfloat16, device, 1)
        mlp, head = GatedMLP(hf, build), LMHead(37, 48, None, build)
        for layer in (mlp.gate_up_proj, mlp.down_proj, head):
            fill_dummy({str(index): slot for index, slot in enumerate(layer.weight_slots())}, "xavier")
            layer.finish_loading()
        assert isinstance(head._packed, linear.PackedLinear) is bool(asked)
        with torch.inference_mode():
            found.append(head(mlp(x)))
    assert (found[0].float() - found[1].float()).norm() / found[1].float().norm() < 1.5e-2


LINEAR_CHECKS: dict[str, Callable[[torch.device], None]] = {
    "linear, as the table has it": check_choice,
    "linear layers": check_layers,
    "linear, tiles": check_tiles,
    **{f"linear, {tile}": lambda device, tile=tile: check_tile(tile, device) for tile in _TILES},
}
