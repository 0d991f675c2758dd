"""Telling the linears of a model with quantised weights which of them are.

They are told by their names in the checkpoint, which layers do not know. Owns that, and the errors of checkpoints that
quantise a part of what is computed in one product.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from torch import nn

from atom.model_loader.files import WeightsError
from atom.model_ops.linear import Linear

logger = logging.getLogger(__name__)


def take_linear_forms(model: nn.Module, packed: Mapping[str, tuple[str, ...]]) -> None:
    """Give every linear of a model with quantised ones its memory; `packed` as `Loadable` has it.

    Raises WeightsError where parts of one linear differ, and where none is quantised at all.
    """
    linears = [(path, module) for path, module in model.named_modules() if isinstance(module, Linear)]
    linears = [(path, linear) for path, linear in linears if linear.build.quantization is not None]
    count = 0
    for path, linear in linears:
        assert linear.build.quantization is not None
        parent, _, last = path.rpartition(".")
        names = [f"{parent}.{name}" if parent else name for name in packed.get(last, (last,))]
        covered = [name for name in names if linear.build.quantization.covers(name)]
        if covered and covered != names:
            others = ", ".join(name for name in names if name not in covered)
            raise WeightsError(
                f"by quantization_config {', '.join(covered)} is quantised and {others} is not; they are computed "
                "together, so that is not supported"
            )
        linear.take_form(bool(covered))
        count += bool(covered)
    if linears and not count:
        raise WeightsError("quantization_config quantises none of the model's linears")
    if linears:
        logger.info("%d of %d linears have fp8 weights", count, len(linears))
