"""Checks of the Triton kernels for fp8 projections: rounding to the byte, products against float64."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from atom_spec.kernels import OPERATIONS

from atom.hf_config import HFConfig
from atom.model_loader.dummy import fill_dummy
from atom.model_ops.context import BuildContext
from atom.model_ops.float8 import float8_dtype, quantize, scale_factor, to_float8
from atom.model_ops.kernels.select import select_kernels
from atom.model_ops.kernels.triton import (
    activation,
    fp8_few,
    fp8_fused,
    fp8_linear,
    fp8_product,
    fp8_quantize,
    fp8_split,
    norm,
)
from atom.model_ops.kernels.triton.fp8_few import Tile
from atom.model_ops.kernels.triton.fp8_quantize import GROUP, InputForm, Rounded
from atom.model_ops.kernels.triton.fp8_split import Split
from atom.model_ops.norm import RMSNorm
from atom.models.decoder import GatedMLP
from atom.quantization import Quantization


def poison(device: torch.device) -> None:
    """Leave NaN in memory that the allocator hands out next."""
    for kept in [torch.full((1 << 16 >> shift,), float("nan"), device=device) for shift in range(8)]:
        del kept


def float8_types(device: torch.device) -> list[torch.dtype]:
    """Those that the device computes with; the interpreter has both."""
    return [float8_dtype(device)] if device.type == "cuda" else [torch.float8_e4m3fn, torch.float8_e4m3fnuz]


def equal_bytes(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    return torch.equal(found.view(torch.uint8).cpu(), wanted.view(torch.uint8).cpu())


def check_quantize(device: torch.device) -> None:
    """Values and scales as torch's, to the bit: rows of every size, a row of zeros, sizes that no group divides."""
    for float8 in float8_types(device):
        for dtype, tokens, width in (
            (torch.float32, 1, 48),
            (torch.bfloat16, 5, 300),
            (torch.bfloat16, 3, 4000),
            (torch.float32, 2, 128),
        ):
            x = torch.randn(tokens, width + 8, device=device) * torch.logspace(-3, 2, tokens, device=device)[:, None]
            x = x.to(dtype)[:, :width]
            x[-1] = 0
            poison(device)
            for form in (InputForm(float8), InputForm(float8, has_groups=True, row_multiple=4)):
                assert_equal(fp8_quantize.quantize(x, form), x, form)
    form = InputForm(float8_types(device)[0])
    assert fp8_quantize.quantize(torch.empty(0, 8, device=device), form).values.shape == (0, 8)
    x = torch.tensor([[1.0, float("nan")]], device=device)
    assert fp8_quantize.quantize(x, form).values.float()[0, 1].isnan()


def assert_equal(found: Rounded, x: torch.Tensor, form: InputForm) -> None:
    """`found` is x [T, K] in the form, to the bit."""
    tokens, width = x.shape
    group = GROUP if form.has_groups else width
    groups = torch.nn.functional.pad(x, (0, -width % group)).reshape(tokens, -1, group)
    values, scales = quantize(groups, form.float8)
    assert (found.num_tokens, found.dtype) == (tokens, x.dtype)
    assert found.values.shape == (-(-tokens // form.row_multiple) * form.row_multiple, width)
    assert not form.has_groups or found.scales.stride(0) == 1
    assert equal_bytes(found.values[:tokens], values.reshape(tokens, -1)[:, :width].contiguous())
    assert torch.equal(found.scales[:tokens], scales[..., 0])


def check_fused(device: torch.device) -> None:
    """Norms and activations in the form of a linear: as the results of the ones that are not fused, rounded."""
    for has_groups, dtype, tokens, width in (
        (False, torch.bfloat16, 5, 300),
        (True, torch.bfloat16, 3, 1000),
        (True, torch.float32, 2, 96),
        (False, torch.float32, 1, 4096),
    ):
        scales = torch.ones(
            -(-64 // GROUP) if has_groups else 64, -(-width // GROUP) if has_groups else 1, device=device
        )
        weight = torch.zeros(64, width, device=device).to(torch.float8_e4m3fn)
        packed = fp8_linear.fp8_linear_pack(weight, scales, GROUP if has_groups else 1, None, dtype)
        x, residual = (torch.randn(tokens, width + 8, device=device).to(dtype)[:, :width] for _ in range(2))
        scale = torch.randn(width, device=device).to(dtype)
        poison(device)
        plain, kept = fp8_fused.fp8_rms_norm(x, None, scale, 1e-6, packed), residual.clone()
        added = fp8_fused.fp8_rms_norm(x, kept, scale, 1e-6, packed)
        assert torch.equal(kept, residual + x)
        near(plain, norm.rms_norm(x, scale, 1e-6), packed)
        near(added, norm.add_rms_norm(x, residual.clone(), scale, 1e-6), packed)
        both = 3 * torch.randn(tokens, 2 * width, device=device).to(dtype)
        poison(device)
        near(fp8_fused.fp8_silu_and_mul(both, packed), activation.silu_and_mul(both), packed)
    assert fp8_fused.fp8_silu_and_mul(both[:0], packed).num_tokens == 0


def near(found: Rounded, wanted: torch.Tensor, packed: fp8_linear.PackedFloat8Linear) -> None:
    """As `wanted` is rounded, but that now and then a last bit makes it the 8-bit neighbour."""
    assert found.values.shape[1] == wanted.shape[1]
    mine = spread(found)
    theirs = spread(fp8_quantize.quantize(wanted, packed.input_form))
    assert (mine != theirs).double().mean() < 0.02
    assert (mine - theirs).norm() / theirs.norm() < 4e-3


def spread(x: Rounded) -> torch.Tensor:
    """The numbers that are meant, in float64."""
    width = x.values.shape[1]
    scales = x.scales.repeat_interleave(GROUP if x.scales.shape[1] > 1 else width, 1)[:, :width]
    return x.values[: x.num_tokens].double() * scales[: x.num_tokens].double()


@dataclass(frozen=True)
class Case:
    """Tokens, outputs and inputs of a projection, outputs that share a scale, whether 128 inputs do."""

    tokens: int
    outputs: int
    inputs: int
    block_rows: int = 1
    has_groups: bool = False
    has_bias: bool = False
    dtype: torch.dtype = torch.bfloat16


CASES = {
    "by row": Case(5, 96, 64, has_bias=True),
    "by row, odd sizes, float32": Case(3, 37, 77, has_bias=True, dtype=torch.float32),
    "by row, many tokens": Case(70, 80, 160),
    "blocks": Case(20, 256, 512, 128, True, has_bias=True),
    "blocks, odd sizes": Case(19, 200, 300, 128, True, dtype=torch.float32),
    "rows in groups": Case(2, 50, 256, 1, True),
    "one block of inputs": Case(2, 300, 100, 128),
    "no tokens": Case(0, 16, 16),
}


def make_weight(case: Case, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """An fp8 weight of a checkpoint, its scales, and what is meant, in float64."""
    # Clamped: some random number in a hundred thousand is too large, and a conversion alone makes NaN of it.
    weight = to_float8(100 * torch.randn(case.outputs, case.inputs, device=device), torch.float8_e4m3fn)
    weight[0, 0] = -0.0
    columns = -(-case.inputs // GROUP) if case.has_groups else 1
    scales = torch.rand(-(-case.outputs // case.block_rows), columns, device=device) + 0.01
    whole = scales.repeat_interleave(case.block_rows, 0)[: case.outputs]
    if case.has_groups:
        whole = whole.repeat_interleave(GROUP, 1)[:, : case.inputs]
    meant = weight.double() * whole.double()
    assert meant.isfinite().all()
    return weight, scales, meant


def rounded(x: torch.Tensor, case: Case, float8: torch.dtype) -> torch.Tensor:
    """x as fp8 holds it, in float64."""
    group = GROUP if case.has_groups else case.inputs
    values, scales = quantize(torch.nn.functional.pad(x, (0, -case.inputs % group)).reshape(-1, group), float8)
    return (values.double() * scales.double()).reshape(len(x), -(-case.inputs // group) * group)[:, : case.inputs]


def check_linear(case: Case, device: torch.device) -> None:
    """The operations as the table has them."""
    weight, scales, whole = make_weight(case, device)
    bias = torch.randn(case.outputs, device=device).to(case.dtype) if case.has_bias else None
    x = torch.randn(case.tokens, case.inputs, device=device).to(case.dtype)
    packed = fp8_linear.fp8_linear_pack(weight, scales, case.block_rows, bias, case.dtype)
    poison(device)
    found = fp8_linear.fp8_linear(x, packed)
    wanted = rounded(x, case, packed.weight.dtype) @ whole.t() + (0 if bias is None else bias.double())
    assert found.shape == wanted.shape
    assert found.dtype == case.dtype
    if case.tokens:
        difference = float((found.double() - wanted).norm() / wanted.norm())
        assert difference < (2e-3 if case.dtype == torch.float32 else 5e-3), f"{difference:.2e}"


def check_product(device: torch.device) -> None:
    """The Triton product in every 8-bit type, whoever the table would let multiply."""
    for float8 in float8_types(device):
        for case in (Case(33, 144, 384, 128, True), Case(4, 64, 128)):
            weight, scales, whole = make_weight(case, device)
            given = weight.float().div(scale_factor(float8)).to(float8)
            x = torch.randn(case.tokens, case.inputs, device=device)
            given_x = fp8_quantize.quantize(x, InputForm(float8, case.has_groups))
            poison(device)
            found = fp8_product.fp8_product(given_x, given, scales * scale_factor(float8), case.block_rows, None)
            wanted = rounded(x, case, float8) @ whole.t()
            difference = float((found.double() - wanted).norm() / wanted.norm())
            assert difference < 2e-3, f"{difference:.2e}"


FEW_TILES = (
    fp8_few.by_threads(8, 512, 4),
    fp8_few.by_threads(16, 256, 4),
    fp8_few.by_tensor_cores(16, 2, 3),
    fp8_few.by_tensor_cores(8, 4, 4),
)
# A tile divides them, and does not; by row, by 128 inputs, and one block of inputs whose outputs share scales.
FEW_CASES = (
    Case(0, 16, 512, has_bias=True),
    Case(0, 9, 528),
    Case(0, 8, 1024, 128, True),
    Case(0, 20, 400, 16, True, has_bias=True),
    Case(0, 20, 112, 16, dtype=torch.float32),
)


def check_few(tile: Tile, device: torch.device) -> None:
    """Few tokens and as many as a tile is for; memory around all that is read is NaN."""
    most = fp8_few.MAX_TOKENS if tile.stages else fp8_few.MAX_TOKENS_BY_THREADS
    for float8, case in zip(itertools.cycle(float8_types(device)), FEW_CASES, strict=False):
        assert fp8_few.fits(tile, case.inputs, case.block_rows, case.has_groups)
        weight, scales, whole = make_weight(case, device)
        weight = weight.float().div(scale_factor(float8)).to(float8)
        bias = torch.randn(case.outputs, device=device).to(case.dtype) if case.has_bias else None
        given = (among_nan(weight), among_nan(scales * scale_factor(float8)), case.block_rows, bias, tile)
        for count in (1, 9, most) if tile.stages else (1, most):
            x = torch.randn(count, case.inputs, device=device).to(case.dtype)
            x[-1] *= 10
            quantized = fp8_quantize.quantize(x, InputForm(float8, case.has_groups, 4))
            poison(device)
            found = fp8_few.fp8_few(quantized, *given)
            wanted = rounded(x, case, float8) @ whole.t() + (0 if bias is None else bias.double())
            assert found.dtype == case.dtype
            assert found.shape == wanted.shape
            errors = (found.double() - wanted).norm(dim=1) / wanted.norm(dim=1)
            assert errors.max() < (2e-3 if case.dtype == torch.float32 else 5e-3), f"{case}, {count}: {errors}"
            if not tile.stages:
                assert torch.equal(fp8_few.fp8_few(x, *given), found), "not rounded as the kernel that only rounds does"
            quantized.values[: count - 1].view(torch.uint8)[:] = 0x7F if float8 == torch.float8_e4m3fn else 0x80
            again = fp8_few.fp8_few(quantized, *given)
            assert torch.equal(again[-1], found[-1]), "a token's product depends on the other tokens"


# Parts of one size and of several, more than there are steps; tiles that do not divide outputs and tokens, or do.
SPLIT_CASES = (
    (Case(33, 80, 896, has_bias=True), Split(32, 64, 3, 4, 4)),
    (Case(64, 64, 256, dtype=torch.float32), Split(64, 64, 1, 4, 3)),
    (Case(130, 130, 384, has_bias=True), Split(128, 128, 8, 8, 3)),
    (Case(20, 256, 640, 128, True, has_bias=True), Split(32, 64, 2, 4, 4)),
    (Case(40, 100, 256, 128, True, dtype=torch.float32), Split(64, 64, 1, 4, 4)),
)


def check_split(case: Case, split: Split, device: torch.device) -> None:
    """In parts; memory around all that is read is NaN."""
    float8 = float8_types(device)[0]
    assert fp8_split.can_split(split, case.inputs, case.block_rows, case.has_groups)
    weight, scales, whole = make_weight(case, device)
    weight = weight.float().div(scale_factor(float8)).to(float8)
    bias = torch.randn(case.outputs, device=device).to(case.dtype) if case.has_bias else None
    given = (among_nan(weight), among_nan(scales * scale_factor(float8)), case.block_rows, bias, split)
    x = torch.randn(case.tokens, case.inputs, device=device).to(case.dtype)
    x[-1] *= 10
    quantized = fp8_quantize.quantize(x, InputForm(float8, case.has_groups, 4))
    poison(device)
    found = fp8_split.fp8_split(quantized, *given)
    wanted = rounded(x, case, float8) @ whole.t() + (0 if bias is None else bias.double())
    assert (found.dtype, found.shape) == (case.dtype, wanted.shape)
    errors = (found.double() - wanted).norm(dim=1) / wanted.norm(dim=1)
    assert errors.max() < (2e-3 if case.dtype == torch.float32 else 5e-3), f"{errors}"
    quantized.values[: case.tokens - 1].view(torch.uint8)[:] = 0x7F if float8 == torch.float8_e4m3fn else 0x80
    assert torch.equal(fp8_split.fp8_split(quantized, *given)[-1], found[-1]), "a token depends on the others"


def among_nan(values: torch.Tensor) -> torch.Tensor:
    """The same tensor, without gaps, in memory that is NaN before and behind it."""
    bits = values.view(torch.uint8).flatten()
    nan = 0x80 if values.dtype == torch.float8_e4m3fnuz else 0x7F if values.dtype == torch.float8_e4m3fn else 0xFF
    around = torch.full((len(bits) + 2 * 1024,), nan, dtype=torch.uint8, device=values.device)
    around[1024:-1024] = bits
    return around[1024:-1024].view(values.dtype).view(values.shape)


def check_choice(device: torch.device) -> None:
    """Whoever multiplies: 1 to 300 tokens by weights of few and many outputs, as the operation has them."""
    for case in (
        Case(1, 40, 4112, has_bias=True), Case(3, 256, 512, 128, True), Case(20, 8192, 128),
        Case(32, 128, 512, 128, True), Case(129, 48, 512, 128, True), Case(2, 40, 33),
        Case(17, 48, 2176, has_bias=True),
    ):  # fmt: skip
        check_linear(case, device)


def check_layers(device: torch.device) -> None:
    """A norm and a feed-forward layer as models wire them, against the reference's on the same device."""
    sizes = {
        "hidden_size": 160,
        "intermediate_size": 300,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "vocab_size": 2,
    }
    hf = HFConfig.from_dict({"architectures": ["LlamaForCausalLM"], **sizes})
    x = torch.randn(3, 160, device=device)
    for quantization in (Quantization(is_online=True), Quantization(has_blocks=True)):
        found = []
        for backend in ("triton", "reference"):
            chosen = ",".join(f"{name}={backend}" for name, op in OPERATIONS.items() if op.group == "fp8_linear")
            kernels = select_kernels("cpu", chosen)
            build = BuildContext(kernels, torch.float32, device, 1, quantization=quantization)
            mlp = GatedMLP(hf, build)
            norm_before = RMSNorm(160, 1e-6, build, mlp.gate_up_proj)
            for linear in (mlp.gate_up_proj, mlp.down_proj):
                linear.take_form(True)
                fill_dummy({str(index): slot for index, slot in enumerate(linear.weight_slots())}, "xavier")
                linear.finish_loading()
            norm_before.weight.data.fill_(0.5)
            residual = torch.ones_like(x)
            with torch.inference_mode():
                found += [mlp(norm_before(x)), mlp(norm_before(x, residual)), residual]
        for mine, theirs in zip(found[:3], found[3:], strict=True):
            assert (mine - theirs).norm() / theirs.norm() < 4e-3
        assert (found[0] - found[1]).norm() > 1e-2 * found[0].norm()


FP8_CHECKS: dict[str, Callable[[torch.device], None]] = {
    "fp8 quantize": check_quantize,
    "fp8 product": check_product,
    "fp8 fused": check_fused,
    "fp8 layers": check_layers,
    "fp8 linear, few and many tokens": check_choice,
    **{f"fp8 few, {tile}": lambda device, tile=tile: check_few(tile, device) for tile in FEW_TILES},
    **{
        f"fp8 split, {case}": lambda device, case=case, split=split: check_split(case, split, device)
        for case, split in SPLIT_CASES
    },
    **{f"fp8 linear, {name}": lambda device, case=case: check_linear(case, device) for name, case in CASES.items()},
}
