"""Filling a model from safetensors, one tensor at a time.

A tensor is mapped from its file and copied straight into its place, so there is never a second copy in memory. Every
tensor that the model needs must come, and every tensor that comes must have a place.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from tqdm import tqdm

from atom.model_loader.dummy import fill_dummy
from atom.model_loader.files import WeightsError, find_weight_files
from atom.model_loader.kv_scales import KVScales
from atom.model_loader.linear_forms import take_linear_forms
from atom.model_loader.weight_names import checkpoint_slots, may_be_left_over
from atom.model_ops.weights import FinishesLoading, WeightSlot

logger = logging.getLogger(__name__)

# Names listed in an error before "and so on".
_MAX_LISTED = 5


class Loadable(Protocol):
    """What the loader asks of a model, which is an nn.Module besides.

    packed maps a packed layer's name to the checkpoint's names; is_head_tied says that it needs no head of its own.
    """

    @property
    def packed(self) -> Mapping[str, tuple[str, ...]]:
        """Names in the order of their parts."""

    @property
    def is_head_tied(self) -> bool:
        """Whether the head is the embedding."""


def load_model(model: Loadable, folder: Path, dummy: str | None) -> None:
    """Fill `model` from the safetensors in `folder`, or with `dummy` weights, and finish its layers.

    Raises WeightsError when files or tensors are missing, left over or of another shape.
    """
    assert isinstance(model, nn.Module)
    start = time.monotonic()
    take_linear_forms(model, model.packed)
    slots = checkpoint_slots(model, model.packed)
    if dummy is None:
        scales = KVScales(model)
        _fill(slots, scales, find_weight_files(folder), is_head_tied=model.is_head_tied)
        if scales.num_found:
            logger.info("the checkpoint has %d scales of an fp8 KV cache", scales.num_found)
    else:
        fill_dummy(slots, dummy)
    finish_layers(model)
    logger.info("%s weights in %.1f s", "dummy" if dummy else "loaded", time.monotonic() - start)


def finish_layers(model: nn.Module) -> None:
    """Let every layer rearrange its weights, one layer at a time."""
    for module in model.modules():
        if isinstance(module, FinishesLoading):
            module.finish_loading()


def _fill(slots: dict[str, WeightSlot], scales: KVScales, files: list[Path], is_head_tied: bool) -> None:
    missing = dict(slots)
    unexpected: list[str] = []
    with tqdm(total=len(slots), desc="Loading weights", unit="tensor", disable=not sys.stderr.isatty()) as bar:
        for path in files:
            for name in _fill_from(path, missing, scales, bar):
                if name in slots:
                    raise WeightsError(f"{path.name}: {name} comes a second time")
                if not may_be_left_over(name, is_head_tied):
                    unexpected.append(name)
    if missing:
        raise WeightsError(f"the checkpoint lacks {_listed(missing)}")
    if unexpected:
        raise WeightsError(f"the checkpoint holds tensors that the model has no place for: {_listed(unexpected)}")


def _fill_from(path: Path, missing: dict[str, WeightSlot], scales: KVScales, bar: tqdm[Any]) -> list[str]:
    """Copy what is wanted from one file; returns the names that were not."""
    others = []
    try:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (no mapping: it has keys() alone)
                slot = missing.pop(name, None)
                if scales.knows(name):
                    _take_scale(scales, path, name, file.get_tensor(name))
                    continue
                if slot is None:
                    others.append(name)
                    continue
                tensor = file.get_tensor(name)
                problem = slot.problem(tensor)
                if problem is not None:
                    raise WeightsError(f"{path.name}: {name} {problem}")
                slot.fill(tensor)
                bar.update()
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} can not be read: {error}") from error
    return others


def _take_scale(scales: KVScales, path: Path, name: str, tensor: torch.Tensor) -> None:
    try:
        scales.take(name, tensor)
    except ValueError as error:
        raise WeightsError(f"{path.name}: {error}") from error


def _listed(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _MAX_LISTED} more" if len(found) > _MAX_LISTED else ""
    return ", ".join(found[:_MAX_LISTED]) + more
