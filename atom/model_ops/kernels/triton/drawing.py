"""One drawn token a row in Triton, with thresholds instead of a sort, and without a look at the device from the host.

Four launches read a row of the vocabulary twice at most, in parts, which many programs share: what the parts weigh
alone; by a program a row, bounds of the threshold of top-k and top-p, as far as a row has such filters; the values
there. Then one program a row settles the threshold and draws. Only where the bounds were wrong, or hold too many
values, does it read the whole row: that takes a large top-k, or thousands of equal values at the threshold of top-p.
Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from atom.model_ops.kernels.triton.draw_bounds import (
    CLUSTER,
    COLUMNS,
    GROUPS,
    INSIDE,
    LOW,
    VALUES,
    bound,
    gather,
    largest_and_whole,
    survey,
)
from atom.model_ops.kernels.triton.draw_search import (
    from_units,
    near_threshold,
    row_threshold,
    scaled,
    to_units,
)
from atom.model_ops.kernels.triton.sizes import cdiv, next_power_of_2


@dataclass(frozen=True, slots=True)
class Form:
    """How the work is cut: columns of a part; of a group, whose largest value top-k asks for; values that may be
    gathered; values of a row in the sample by which top-p's bounds are found; warps of a program that surveys, that
    finds bounds, and that gathers. Sizes are powers of two."""

    part: int = 4096
    group: int = 64
    room: int = 4096
    sampled: int = 16384
    warps: int = 8
    bounding_warps: int = 8
    gathering_warps: int = 8


_FORM = Form()
# Values that a warp looks at together while it gathers: more take registers from programs that could run meanwhile.
_GATHERED = 256


@triton.jit
def _keep_in_parts(row, kept, size, count, temperature, top, threshold, PART: tl.constexpr):
    """The weights from the threshold up, of each part, by one program."""
    for part in range(count):
        values = scaled(row, part * PART + tl.arange(0, PART), size, temperature)
        weights = tl.where(values >= threshold, tl.exp(values - top), 0.0)
        tl.store(kept + part, tl.sum(weights.to(tl.float64), axis=0))
    tl.debug_barrier()


@triton.jit
def _threshold(
    row, floats, doubles, ints, values, units, limit, size, count, temperature, top_p, least, top, whole,
    PART: tl.constexpr, ROOM: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """The smallest value that all filters keep, and whether what it keeps below the upper bound is among the gathered.

    Where it is not, the parts' weights are changed to hold all that is kept.
    """
    parts = tl.arange(0, COUNT)
    above = tl.load(doubles + count + parts, mask=parts < count, other=0.0)
    above = tl.sum(tl.where(limit < size, 0.0, above), axis=0)
    threshold = least
    is_gathered = tl.load(ints + INSIDE) <= ROOM
    if is_gathered:
        # Fewer than top-k are right where nothing else is finite.
        is_whole = tl.load(floats + LOW) == float("-inf")
        threshold, is_found = near_threshold(values, units, limit, size, top_p, above, whole, top)
        is_gathered = is_found & ((limit >= size) | (threshold > float("-inf")) | is_whole)
    if not is_gathered:
        threshold = row_threshold(row, limit, size, temperature, top_p, top, PART)
    threshold = tl.maximum(threshold, least)
    if not is_gathered:
        _keep_in_parts(row, doubles + 2 * count, size, count, temperature, top, threshold, PART)
    return threshold, is_gathered


@triton.jit
def _draw_in_part(row, part, size, temperature, top, threshold, before, wanted, PART: tl.constexpr):
    """The first token of a part at which the weights pass `wanted`."""
    places = tl.arange(0, PART)
    values = scaled(row, part * PART + places, size, temperature)
    weights = tl.where(values >= threshold, tl.exp(values - top), 0.0).to(tl.float64)
    reached = before + tl.cumsum(weights, axis=0)
    # Sums in two orders differ in their last bits: never a token that was not kept.
    last = tl.max(tl.where(weights > 0, places, 0), axis=0)
    place = tl.min(tl.where((weights > 0) & (reached > wanted), places, last), axis=0)
    return tl.minimum(part * PART + place, size - 1).to(tl.int64)


@triton.jit
def _draw(
    logits, stride, temperatures, top_ks, top_ps, min_ps, uniforms, floats, doubles, ints, out, size, count,
    floats_stride, ints_stride, PART: tl.constexpr, GROUP: tl.constexpr, ROOM: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """The row's threshold, the part in which its uniform falls, and the token."""
    index = tl.program_id(0).to(tl.int64)
    row = logits + index * stride
    temperature = tl.load(temperatures + index)
    top_k, top_p, min_p = tl.load(top_ks + index), tl.load(top_ps + index), tl.load(min_ps + index)
    floats += index * floats_stride
    doubles += index * 3 * count
    ints += index * ints_stride
    # Sums in float64: over 150,000 terms a float32 is off by more than a rare token weighs.
    top, masses = largest_and_whole(floats, doubles, count, PART, GROUP, ROOM, COUNT)
    parts, places = tl.arange(0, COUNT), tl.arange(0, ROOM)
    limit = tl.where(top_k > 0, tl.minimum(top_k, size), size)
    threshold = top + tl.log(min_p)
    columns = tl.zeros((ROOM,), tl.int32)
    units = tl.zeros((ROOM,), tl.int64)
    if (limit < size) | (top_p < 1.0):
        num_groups = tl.load(ints + GROUPS)
        if num_groups > 0:
            gathered = places < num_groups * GROUP
            columns = tl.load(ints + COLUMNS + places // GROUP, mask=gathered, other=0) * GROUP + places % GROUP
            values = tl.where(gathered, scaled(row, columns, size, temperature), float("-inf"))
        else:
            gathered = places < tl.load(ints + INSIDE)
            columns = tl.load(ints + COLUMNS + places, mask=gathered, other=0)
            values = tl.load(floats + VALUES + places, mask=gathered, other=float("-inf"))
        units = to_units(tl.where(values > float("-inf"), tl.exp(values - top), 0.0))
        threshold, is_gathered = _threshold(
            row, floats, doubles, ints, values, units, limit, size, count, temperature, top_p, threshold, top,
            tl.sum(masses, axis=0), PART, ROOM, COUNT,
        )  # fmt: skip
        units = tl.where(is_gathered & (values >= threshold), units, 0)
        masses = tl.load(doubles + 2 * count + parts, mask=parts < count, other=0.0)
        # Where groups were read instead, nobody has summed anything.
        masses = tl.where(is_gathered & (num_groups > 0), 0.0, masses)
    elif min_p > 0.0:
        masses = tl.load(doubles + 2 * count + parts, mask=parts < count, other=0.0)
    wanted = tl.load(uniforms + index).to(tl.float64) * (tl.sum(masses, axis=0) + from_units(tl.sum(units, axis=0)))
    part = tl.zeros((), tl.int32)
    before = tl.zeros((), tl.float64)
    step = COUNT // 2
    while step > 0:
        tried = part + step
        mass = tl.sum(tl.where(parts < tried, masses, 0.0), axis=0)
        mass += from_units(tl.sum(tl.where(columns < tried * PART, units, 0), axis=0))
        is_before = (mass <= wanted) & (tried < count)
        part = tl.where(is_before, tried, part)
        before = tl.where(is_before, mass, before)
        step = step // 2
    tl.store(out + index, _draw_in_part(row, part, size, temperature, top, threshold, before, wanted, PART))


def sample(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    min_p: torch.Tensor,
    uniform: torch.Tensor,
) -> torch.Tensor:
    """logits [B, V] and parameters [B] to token ids [B] int64. top_k 0, top_p 1 and min_p 0 are off."""
    return sample_by(_FORM, logits, temperature, top_k, top_p, min_p, uniform)


def sample_by(form: Form, logits: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
    """`sample` with its work cut so."""
    (num_rows, size), device = logits.shape, logits.device
    out = torch.empty(num_rows, dtype=torch.int64, device=device)
    if not num_rows:
        return out
    temperature, top_k, top_p, min_p, uniform = parameters
    count, part, room = cdiv(size, form.part), form.part, form.room
    num_groups, padded = count * (part // form.group), next_power_of_2(count)
    num_floats, num_ints = VALUES.value + room + num_groups + padded, COLUMNS.value + room
    floats = torch.empty((num_rows, num_floats), dtype=torch.float32, device=device)
    doubles = torch.empty((num_rows, 3 * count), dtype=torch.float64, device=device)
    ints = torch.empty((num_rows, num_ints), dtype=torch.int32, device=device)
    rows, scratch = (logits, logits.stride(0), temperature), (floats, doubles, ints)
    sizes, grid = (size, num_floats, num_ints), (count, num_rows)
    survey[grid](*rows, *scratch, *sizes, part, form.group, room, num_warps=form.warps)
    bound[(num_rows,)](
        *rows, top_k, top_p, min_p, *scratch, size, count, num_floats, num_ints, part, form.group, room, padded,
        next_power_of_2(num_groups), form.sampled // CLUSTER.value, num_warps=form.bounding_warps,
    )  # fmt: skip
    step = min(part, _GATHERED * form.gathering_warps)
    gather[grid](*rows, min_p, *scratch, *sizes, part, room, step, num_warps=form.gathering_warps)
    _draw[(num_rows,)](
        *rows, top_k, top_p, min_p, uniform, *scratch, out, size, count, num_floats, num_ints, part, form.group,
        room, padded, num_warps=8,
    )  # fmt: skip
    return out
