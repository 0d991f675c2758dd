"""Projections with fp8 weights on a GPU: activations rounded in Triton, few tokens and some dozens by kernels of our
own, the rest by torch where it can do it.

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

from atom.model_ops.float8 import float8_dtype, fn_to_fnuz, quantize, scale_factor
from atom.model_ops.kernels.triton.fp8_few import Tile, by_tensor_cores, by_threads, fits, fp8_few
from atom.model_ops.kernels.triton.fp8_product import fp8_product
from atom.model_ops.kernels.triton.fp8_quantize import GROUP, InputForm, Rounded
from atom.model_ops.kernels.triton.fp8_quantize import quantize as quantize_input
from atom.model_ops.kernels.triton.fp8_split import Split, can_split, choose_split, fp8_split
from atom.model_ops.kernels.triton.sizes import cdiv, next_power_of_2

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
# Tokens that threads multiply, and that tensor cores do of inputs that are not split.
_TOKENS_BY_THREADS, _TOKENS_AT_ONCE = 2, 16
# Of inputs that are split: whatever the weight, and where scales are by row and there is more than one part.
_TOKENS_SPLIT, _MOST_TOKENS_SPLIT = 64, 128
# The most steps of inputs by threads, which are unrolled; values of the weight that a warp loads in one, 16 bytes a
# thread and load; inputs of a step, at least and at most.
_MAX_STEPS, _WARP_VALUES, _INPUTS = 8, 4096, (512, 4096)
# More outputs are programs enough for the 132 multiprocessors of an H200 by thirty-twos.
_MANY_OUTPUTS = 4096


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
    weight, given = packed.weight, (packed.weight, packed.scales, packed.block_rows, packed.bias)
    form = None
    if _HAS_FEW and 0 < num_tokens <= _MOST_TOKENS_SPLIT and weight.is_contiguous():
        form = choose_form(num_tokens, *weight.shape, packed.block_rows, packed.scales.shape[1] > 1)
    # Every program rounds one token anew; two would take registers that loads of the weight need.
    if not isinstance(x, Rounded) and (num_tokens > 1 or not isinstance(form, Tile)):
        x = quantize_input(x, packed.input_form)
    if isinstance(form, Tile):
        return fp8_few(x, *given, form)
    assert isinstance(x, Rounded)
    return packed.product(x, packed) if form is None else fp8_split(x, *given, form)


@functools.cache
def choose_form(
    num_tokens: int, num_outputs: int, width: int, block_rows: int, has_groups: bool
) -> Tile | Split | None:
    """How our own kernels multiply 1 to _MOST_TOKENS_SPLIT tokens; None where the weight's product does."""
    if num_tokens <= _TOKENS_AT_ONCE:
        tile = choose_tile(num_tokens, num_outputs, width)
        return tile if tile is not None and fits(tile, width, block_rows, has_groups) else None
    split = choose_split(num_tokens, num_outputs, width)
    if num_tokens > _TOKENS_SPLIT and (has_groups or split.parts == 1):
        return None
    return split if can_split(split, width, block_rows, has_groups) else None


def choose_tile(num_tokens: int, num_outputs: int, width: int) -> Tile | None:
    """The tile for a product of 1 to _TOKENS_AT_ONCE tokens; None where threads would take too many steps.

    By tensor cores every program reads all inputs: as many outputs as leave programs enough, 40 KB or more in flight.
    """
    if num_tokens <= _TOKENS_BY_THREADS:
        return _by_threads(num_tokens, num_outputs, width) if width <= _INPUTS[1] * _MAX_STEPS else None
    return by_tensor_cores(32, 4, 4) if num_outputs > _MANY_OUTPUTS else by_tensor_cores(16, 4, 6)


def _by_threads(num_tokens: int, num_outputs: int, width: int) -> Tile:
    """Eight loads a thread, the inputs' own apart; few warps where there are programs enough of them."""
    warps, inputs = (2, 1024) if num_outputs > _MANY_OUTPUTS else (8, 2048)
    if num_tokens > 1 or num_outputs <= _MANY_OUTPUTS // 2:
        warps, inputs = 4, 2048
    inputs = max(inputs, next_power_of_2(cdiv(width, _MAX_STEPS)))
    inputs = min(inputs, max(_INPUTS[0], next_power_of_2(width)))
    return by_threads(warps * _WARP_VALUES // inputs, inputs, warps)


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
        found = product(quantize_input(x, packed.input_form), packed).float()
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
