"""Projections with fp8 weights on a GPU: activations rounded in Triton, few tokens by kernels of our own, the rest by
torch where it can do it.

torch._scaled_mm takes scales by row, and by 128 x 128 blocks on GPUs and with libraries that have them: that is tried
once, on a small product, and counts only if the result is right. What it does not take (sizes that are no multiples of
16, other types of results) the Triton product does. Owns who multiplies how many tokens, and the tiles: by formula.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton

from atom.model_ops.float8 import float8_dtype, fn_to_fnuz, quantize, scale_factor
from atom.model_ops.kernels.triton.fp8_few import MAX_TOKENS, Tile, by_tensor_cores, by_threads, fits, fp8_few
from atom.model_ops.kernels.triton.fp8_product import fp8_product
from atom.model_ops.kernels.triton.fp8_quantize import GROUP, InputForm, Rounded
from atom.model_ops.kernels.triton.fp8_quantize import quantize as quantize_input

logger = logging.getLogger(__name__)

if torch.cuda.is_available():
    # A GPU without 8-bit floats: the kernel table passes this backend over.
    float8_dtype(torch.device("cuda", torch.cuda.current_device()))

# Sizes of a product by torch are multiples of this; of the inputs, in blocks, so many times 128, since the library
# wants rows of scales to begin at 16 bytes.
_MULTIPLE = 16
_BLOCKS_MULTIPLE = 4
# Tokens are filled up to a multiple for the same reason.
_ROWS_MULTIPLE = 4
_TOLERANCE = 1e-2
# On AMD, where they have not been measured, few tokens are multiplied as many are.
_HAS_FEW = torch.version.hip is None
# Tokens that threads multiply; more by tensor cores.
_TOKENS_BY_THREADS = 2
# Inputs of a step by threads, and the most steps: they are unrolled.
_STEP, _MAX_STEPS = 4096, 8
# Programs that keep the 132 multiprocessors of an H200 reading.
_WANTED_PROGRAMS = 128
# By row, and with so many outputs that its tiles of 64 are programs enough, the Triton product beats torch's to here.
_TRITON_TOKENS = 64


@dataclass(frozen=True, slots=True)
class PackedFloat8Linear:
    """weight [N, K] in the device's type, scales [ceil(N/block_rows), 1 or ceil(K/128)], and who takes many tokens."""

    weight: torch.Tensor
    scales: torch.Tensor
    block_rows: int
    bias: torch.Tensor | None
    product: Product
    input_form: InputForm


Product = Callable[[Rounded, PackedFloat8Linear], torch.Tensor]


def fp8_linear_pack(
    weight: torch.Tensor, scales: torch.Tensor, block_rows: int, bias: torch.Tensor | None, dtype: torch.dtype
) -> PackedFloat8Linear:
    """The weight itself, in e4m3fnuz where the device has that."""
    float8 = float8_dtype(weight.device)
    if float8 == torch.float8_e4m3fnuz:
        weight = fn_to_fnuz(weight)
    scales = (scales * scale_factor(float8)).contiguous()
    product = _choose(weight, scales, block_rows, dtype)
    return _packed(weight, scales, block_rows, bias, product)


def _packed(
    weight: torch.Tensor, scales: torch.Tensor, block_rows: int, bias: torch.Tensor | None, product: Product
) -> PackedFloat8Linear:
    multiple = _ROWS_MULTIPLE if product is _by_torch_in_blocks else 1
    form = InputForm(weight.dtype, has_groups=scales.shape[1] > 1, row_multiple=multiple)
    return PackedFloat8Linear(weight, scales, block_rows, bias, product, form)


def fp8_linear(x: torch.Tensor | Rounded, packed: PackedFloat8Linear) -> torch.Tensor:
    """x [T, K], or in the weight's input form, to [T, N]."""
    num_tokens = x.num_tokens if isinstance(x, Rounded) else x.shape[0]
    has_groups = packed.scales.shape[1] > 1
    if _HAS_FEW and 0 < num_tokens <= MAX_TOKENS and packed.weight.is_contiguous():
        tile = choose_tile(num_tokens, *packed.weight.shape)
        if tile is not None and fits(tile, packed.weight.shape[1], packed.block_rows, has_groups):
            # Every program rounds one token anew; two would take registers that loads of the weight need.
            if num_tokens > 1 and not isinstance(x, Rounded):
                x = quantize_input(x, packed.input_form)
            return fp8_few(x, packed.weight, packed.scales, packed.block_rows, packed.bias, tile)
    rounded = x if isinstance(x, Rounded) else quantize_input(x, packed.input_form)
    if _HAS_FEW and num_tokens <= _TRITON_TOKENS and not has_groups and _has_many_outputs(packed.weight.shape[0]):
        return _by_triton(rounded, packed)
    return packed.product(rounded, packed)


@functools.cache
def choose_tile(num_tokens: int, num_outputs: int, width: int) -> Tile | None:
    """The tile for a product of 1 to MAX_TOKENS tokens; None where another one does it."""
    if num_tokens <= _TOKENS_BY_THREADS:
        return _by_threads(width) if width <= _STEP * _MAX_STEPS else None
    if num_tokens > MAX_TOKENS // 2 and _has_many_outputs(num_outputs):
        return None
    return _by_tensor_cores(num_tokens, num_outputs)


def _has_many_outputs(num_outputs: int) -> bool:
    return num_outputs >= 64 * _WANTED_PROGRAMS


def _by_threads(width: int) -> Tile:
    """Eight loads of 16 bytes a thread, the inputs' own apart."""
    inputs = min(_STEP, max(512, triton.next_power_of_2(width)))
    if inputs == _STEP:
        return by_threads(8, inputs, 8)
    return by_threads(8 * 2048 // inputs, inputs, 4)


def _by_tensor_cores(num_tokens: int, num_outputs: int) -> Tile:
    """As many outputs as leave programs enough, since every program reads all inputs, and 48 KB or more in flight."""
    if _has_many_outputs(num_outputs) and num_tokens > 8:
        return by_tensor_cores(64, 4, 3)
    if num_outputs > 32 * _WANTED_PROGRAMS:
        return by_tensor_cores(32, 4, 4)
    if num_outputs == 32 * _WANTED_PROGRAMS:
        return by_tensor_cores(32, 8, 4)
    return by_tensor_cores(16, 8, 4) if num_outputs >= 16 * _WANTED_PROGRAMS else by_tensor_cores(8, 8, 6)


def _by_triton(x: Rounded, packed: PackedFloat8Linear) -> torch.Tensor:
    return fp8_product(x, packed.weight, packed.scales, packed.block_rows, packed.bias)


def _by_torch(x: Rounded, packed: PackedFloat8Linear) -> torch.Tensor:
    """Scales by row."""
    return torch._scaled_mm(
        x.values, packed.weight.t(), x.scales, packed.scales.t(),
        bias=packed.bias, out_dtype=x.dtype, use_fast_accum=True,
    )  # fmt: skip


def _by_torch_in_blocks(x: Rounded, packed: PackedFloat8Linear) -> torch.Tensor:
    """Scales by 128 x 128 values."""
    out = torch._scaled_mm(x.values, packed.weight.t(), x.scales, packed.scales.t(), out_dtype=x.dtype)[: x.num_tokens]
    return out if packed.bias is None else out + packed.bias


def _choose(weight: torch.Tensor, scales: torch.Tensor, block_rows: int, dtype: torch.dtype) -> Product:
    """Who multiplies by this weight."""
    num_outputs, num_inputs = weight.shape
    if dtype != torch.bfloat16 or num_outputs % _MULTIPLE or num_inputs % _MULTIPLE or weight.device.type != "cuda":
        return _by_triton
    if scales.shape[1] == 1:
        # One block of inputs is one scale a token, but outputs may share theirs.
        return _by_torch if block_rows == 1 and _is_right(_by_torch, weight.device, weight.dtype) else _by_triton
    if block_rows == 1 or num_outputs % GROUP or num_inputs % (GROUP * _BLOCKS_MULTIPLE):
        return _by_triton
    return _by_torch_in_blocks if _is_right(_by_torch_in_blocks, weight.device, weight.dtype) else _by_triton


@functools.cache
def _is_right(product: Product, device: torch.device, float8: torch.dtype) -> bool:
    """Whether the product runs on this device and agrees with float32; logged when it does not."""
    generator = torch.Generator(device).manual_seed(1)
    has_blocks = product is _by_torch_in_blocks
    num_outputs, num_inputs = 2 * GROUP, _BLOCKS_MULTIPLE * GROUP
    x, weight = (
        torch.randn(n, num_inputs, generator=generator, device=device, dtype=torch.bfloat16) for n in (5, num_outputs)
    )
    bias = torch.randn(num_outputs, generator=generator, device=device, dtype=torch.bfloat16)
    weight = weight.to(float8)
    shape = (num_outputs // GROUP, num_inputs // GROUP) if has_blocks else (num_outputs, 1)
    scales = torch.rand(shape, generator=generator, device=device) + 0.5
    packed = _packed(weight, scales, GROUP if has_blocks else 1, bias, product)
    whole = scales.repeat_interleave(GROUP, 0).repeat_interleave(GROUP, 1) if has_blocks else scales
    values, by_group = quantize(x.view(-1, GROUP if has_blocks else num_inputs), float8)
    wanted = (values.float() * by_group).view(x.shape) @ (weight.float() * whole).t() + bias.float()
    try:
        found = fp8_linear(x, packed).float()
    except (RuntimeError, ValueError, AttributeError, NotImplementedError, TypeError) as error:
        logger.info("fp8 products %s: by Triton, since torch says %s", _described(has_blocks), _first_line(error))
        return False
    difference = float((found - wanted).norm() / wanted.norm())
    if not difference < _TOLERANCE:
        logger.warning("fp8 products %s: by Triton, since torch is %.3f off", _described(has_blocks), difference)
    return difference < _TOLERANCE


def _described(has_blocks: bool) -> str:
    return "in blocks" if has_blocks else "by row"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
