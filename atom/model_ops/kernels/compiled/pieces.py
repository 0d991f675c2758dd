"""A formula compiled once by Inductor for any number of rows, and called without guards and wrappers.

Owns how a formula is traced and what is cached where. Knows no formula. Between two calls a step reads the weights of a
layer, after which the processor's caches hold nothing that a call needs: what counts is how much code there is. With
40 MB read between calls one costs 20 us beside its work, as an operation in eager mode does; a function that
torch._inductor.standalone_compile returns 110, for the wrappers around it, and one of torch.compile more.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

logger = logging.getLogger(__name__)

CACHE_FOLDER = Path("~/.cache/atom/inductor")


class CompilerMissing(OSError):
    """There is no C++ compiler; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A tensor of the formula. free: its dimensions of any size, each with the size that the code is made for.

    Dimensions with one size are one and the same; so sizes say which belong together.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    free: tuple[int, ...] = ()


def use_cache_folder() -> None:
    """Keep compiled code where the next start finds it, unless TORCHINDUCTOR_CACHE_DIR says where."""
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(CACHE_FOLDER.expanduser()))


def check_compiler(level: int) -> None:
    """CompilerMissing where Inductor finds none for the CPU."""
    from torch._inductor import cpp_builder

    try:
        cpp_builder.get_cpp_compiler()
    except Exception as error:
        raise CompilerMissing(
            f"--level {level} on a CPU needs a C++ compiler: install g++ or clang++, or give --level 0 ({error})"
        ) from None


def compile_piece(
    name: str,
    formula: Callable[..., Any],
    arguments: Sequence[Argument],
    device: torch.device,
    num_threads: int,
) -> Callable[..., Any]:
    """`formula`, of tensors alone, as code for `device`. It may write into its arguments, but not return one."""
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.decomposition import select_decomp_table
    from torch.fx.experimental.proxy_tensor import make_fx

    def listed(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = formula(*tensors)
        return found if isinstance(found, tuple) else (found,)

    started = time.monotonic()
    with torch._inductor.config.patch(
        {
            "assert_indirect_indexing": False,  # indices come from our own tables
            "compile_threads": 1,  # a pool of processes starts more slowly than a piece compiles
            "cpp.enable_floating_point_contract_flag": "fast",
            "cpp.threads": num_threads,
            "size_asserts": False,  # shapes are the caller's to check
        }
    ):
        mode, fakes = _fakes(arguments, device)
        with mode:
            graph = make_fx(torch.func.functionalize(listed), decomposition_table=select_decomp_table())(*fakes)
            made: Any = compile_fx_inner(graph, fakes)
    logger.debug("compiled %s in %.2f s", name, time.monotonic() - started)

    code = made.current_callable

    def call(*tensors: torch.Tensor) -> Any:
        found = code(list(tensors))
        return found[0] if len(found) == 1 else found

    return call


def _fakes(arguments: Sequence[Argument], device: torch.device) -> tuple[Any, list[Any]]:
    """Tensors without values, their free dimensions symbols, and the mode that they live in."""
    from torch._dynamo.source import ConstantSource
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

    mode = FakeTensorMode(shape_env=ShapeEnv(), static_shapes=False)
    fakes: list[Any] = []
    for index, argument in enumerate(arguments):
        kinds = [
            DimDynamic.DYNAMIC if dim in argument.free else DimDynamic.STATIC for dim in range(len(argument.shape))
        ]
        example = torch.empty(argument.shape, dtype=argument.dtype, device=device)
        context: Any = StatelessSymbolicContext(dynamic_sizes=kinds)
        fakes.append(mode.from_tensor(example, symbolic_context=context, source=ConstantSource(f"argument{index}")))
    return mode, fakes
