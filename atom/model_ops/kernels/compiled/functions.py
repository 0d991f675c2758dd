"""The reference's operations with compiled code in their place, by --level.

Level 1 lets dynamo trace the formulas and runs them as they are; 2 compiles norms, activation and the way of q, k and v
into the cache; 3 decode attention as well. Projections stay the library's and prompts' attention torch's own: there the
model is split. An operation that another backend does is left alone, as is one whose backend ATOM_KERNELS
names; a case that no formula covers (draft tokens, float8 caches, soft caps, sinks, heads rotated in part) goes to the
reference. Shapes as in formulas.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from atom.model_ops.kernels.compiled import formulas
from atom.model_ops.kernels.compiled.pieces import Argument, check_compiler, compile_piece, use_cache_folder
from atom.model_ops.kernels.reference.attention import weighted_values
from atom.model_ops.kernels.reference.plan import DecodeGroup, Plan
from atom.model_ops.kernels.select import Function, Kernels

# Rows that code is made for: few, for one thread, and many, for all.
_FEW, _MANY = 5, 1031
# Elements from which on threads pay; torch's own operations share out from here too.
_SHARED_FROM = 1 << 15
# Example sizes of the other free dimensions; each its own, so that none is taken for another.
_NUM_BLOCKS, _NUM_POSITIONS, _WIDTH = 67, 4099, 11


@dataclass(slots=True)
class Compiler:
    """Makes a formula's code when it is first wanted, and keeps it."""

    level: int
    device: torch.device
    _made: dict[tuple[Any, ...], Function] = field(default_factory=dict)

    def find(self, key: tuple[Any, ...], make: Callable[[], tuple[Function, list[Argument]]], shared: bool) -> Function:
        """Code for what `key` stands for, `key[0]` its name; `make` gives the formula of tensors, and those."""
        found = self._made.get(key)
        if found is None:
            formula, arguments = make()
            if self.level == 1:
                found = torch.compile(formula, backend="eager", dynamic=True)
            else:
                num_threads = torch.get_num_threads() if shared else 1
                found = compile_piece(key[0], formula, arguments, self.device, num_threads)
            self._made[key] = found
        return found


def compiled_kernels(
    kernels: Kernels, level: int, device: torch.device, asked_for: Container[str] = frozenset()
) -> Kernels:
    """`kernels` with what the reference does compiled, but for operations that were asked for by name.

    CompilerMissing where Inductor has no compiler to use.
    """
    if level == 0:
        return kernels
    use_cache_folder()
    if level > 1 and device.type == "cpu":
        check_compiler(level)
    compiler = Compiler(level, device)
    makers = {
        "rms_norm": _rms_norm,
        "add_rms_norm": _add_rms_norm,
        "silu_and_mul": _silu_and_mul,
        "qkv_rope_write": _qkv_rope_write,
    }
    if level != 2:
        makers["attention_decode"] = _attention_decode
    ours = {
        name: make for name, make in makers.items() if kernels.choice[name] == "reference" and name not in asked_for
    }
    functions = {name: make(compiler, kernels[name]) for name, make in ours.items()}
    choice = {**kernels.choice, **dict.fromkeys(ours, "reference, compiled")}
    return replace(kernels, choice=choice, functions={**kernels.functions, **functions})


def _rows(x: torch.Tensor) -> tuple[bool, int]:
    """Whether threads share the rows of x, and the number of rows to make code for."""
    shared = x.numel() >= _SHARED_FROM
    return shared, _MANY if shared else _FEW


def _rms_norm(compiler: Compiler, reference: Function) -> Function:
    def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        if x.dim() != 2 or not x.is_contiguous():
            return reference(x, weight, eps)
        shared, rows = _rows(x)

        def make() -> tuple[Function, list[Argument]]:
            size = (x.shape[1],)
            arguments = [Argument((rows, *size), x.dtype, (0,)), Argument(size, weight.dtype)]
            return functools.partial(_with_last, formulas.rms_norm, eps), arguments

        code = compiler.find(("rms_norm", x.dtype, x.shape[1], eps, shared), make, shared)
        return code(x, weight)

    return rms_norm


def _add_rms_norm(compiler: Compiler, reference: Function) -> Function:
    def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        if not (x.is_contiguous() and residual.is_contiguous()):
            return reference(x, residual, weight, eps)
        shared, rows = _rows(x)

        def make() -> tuple[Function, list[Argument]]:
            row = Argument((rows, x.shape[1]), x.dtype, (0,))
            return functools.partial(_with_last, formulas.add_rms_norm, eps), [
                row,
                row,
                Argument(row.shape[1:], x.dtype),
            ]

        code = compiler.find(("add_rms_norm", x.dtype, x.shape[1], eps, shared), make, shared)
        return code(x, residual, weight)

    return add_rms_norm


def _silu_and_mul(compiler: Compiler, reference: Function) -> Function:
    def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
        if not x.is_contiguous():
            return reference(x)
        shared, rows = _rows(x)

        def make() -> tuple[Function, list[Argument]]:
            return formulas.silu_and_mul, [Argument((rows, x.shape[1]), x.dtype, (0,))]

        return compiler.find(("silu_and_mul", x.dtype, x.shape[1], shared), make, shared)(x)

    return silu_and_mul


def _qkv_rope_write(compiler: Compiler, reference: Function) -> Function:
    def qkv_rope_write(
        qkv: torch.Tensor,
        qk_norm: torch.Tensor | None,
        eps: float,
        cos_sin: torch.Tensor,
        kv_cache: torch.Tensor,
        kv_scales: torch.Tensor | None,
        plan: Plan,
        num_heads: int,
        num_kv_heads: int,
    ) -> Any:
        if kv_scales is not None or cos_sin.shape[1] != kv_cache.shape[4] or not qkv.is_contiguous():
            return reference(qkv, qk_norm, eps, cos_sin, kv_cache, kv_scales, plan, num_heads, num_kv_heads)
        shared, rows = _rows(qkv)

        def make() -> tuple[Function, list[Argument]]:
            arguments = [
                Argument((rows, qkv.shape[1]), qkv.dtype, (0,)),
                Argument((rows,), torch.int64, (0,)),
                Argument((rows, 2 * num_kv_heads), torch.int64, (0,)),
                Argument((_NUM_POSITIONS, cos_sin.shape[1]), cos_sin.dtype, (0,)),
                Argument((_NUM_BLOCKS, cos_sin.shape[1]), kv_cache.dtype, (0,)),
            ]
            if qk_norm is None:
                return functools.partial(_with_last, formulas.qkv_rope_write, None, eps, num_heads), arguments
            arguments.append(Argument(tuple(qk_norm.shape), qk_norm.dtype))
            return functools.partial(_with_last, formulas.qkv_rope_write, eps, num_heads), arguments

        has_norm = qk_norm is not None
        key = ("qkv_rope_write", qkv.dtype, qkv.shape[1], cos_sin.shape[1], num_heads, has_norm, eps, shared)
        code = compiler.find(key, make, shared)
        cache_rows = kv_cache.view(-1, cos_sin.shape[1])
        tensors = (qkv, plan.step.positions, plan.write_rows(num_kv_heads), cos_sin, cache_rows)
        return code(*tensors) if qk_norm is None else code(*tensors, qk_norm)

    return qkv_rope_write


def _attention_decode(compiler: Compiler, reference: Function) -> Function:
    def attention_decode(
        q: torch.Tensor,
        kv_cache: torch.Tensor,
        kv_scales: torch.Tensor | None,
        plan: Plan,
        scale: float,
        window: int | None,
        soft_cap: float,
        sinks: torch.Tensor | None,
    ) -> torch.Tensor:
        if kv_scales is not None or plan.several or soft_cap or sinks is not None or not q.is_contiguous():
            return reference(q, kv_cache, kv_scales, plan, scale, window, soft_cap, sinks)

        def make() -> tuple[Function, list[Argument]]:
            arguments = [
                Argument((_FEW, *q.shape[1:]), torch.float32, (0,)),
                Argument((_NUM_BLOCKS, *kv_cache.shape[1:]), kv_cache.dtype, (0,)),
                Argument((_FEW, _WIDTH), torch.int32, (0, 1)),
                Argument((_FEW,), torch.int64, (0,)),
            ]
            return functools.partial(_with_last, formulas.decode_weights, scale, window), arguments

        key = ("decode_weights", q.shape[1:], kv_cache.dtype, kv_cache.shape[1:], scale, window)
        code = compiler.find(key, make, True)

        def attend(q: torch.Tensor, group: DecodeGroup) -> torch.Tensor:
            weights = code(q.float(), kv_cache, _table(plan, group), group.seq_lens)
            return weighted_values(weights.view(*q.shape[:2], -1), kv_cache, plan, group)

        first = plan.single[0]
        if first.rows is None:
            return attend(q, first)
        out = q.new_empty(q.shape[0], q.shape[1] * q.shape[2])
        for group in plan.single:
            out[group.rows] = attend(q[group.rows], group)
        return out

    return attention_decode


def _table(plan: Plan, group: DecodeGroup) -> torch.Tensor:
    """The group's blocks in memory of their own: beside prefills they are part of a wider table."""
    return plan.keep(("table", id(group)), group.block_ids.contiguous)


def _with_last(formula: Function, *arguments: Any) -> Any:
    """formula(tensors..., constants...) where `arguments` are the constants, then the tensors."""
    num_constants = next(index for index, argument in enumerate(arguments) if isinstance(argument, torch.Tensor))
    return formula(*arguments[num_constants:], *arguments[:num_constants])
