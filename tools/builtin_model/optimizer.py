"""Muon for the matrices, AdamW for the embedding and the norms.

Owns: one update; learning rates are tensors, so that a CUDA graph can hold it. Does not know: the schedule or the loss.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tools.builtin_model.model import TinyModel

MOMENTUM = 0.95
WEIGHT_DECAY = 0.01
"""Of Muon, times the learning rate."""


def orthogonalize(x: Tensor) -> Tensor:
    """Five Newton-Schulz steps on a batch [G, R, C] of matrices: singular values go near 1."""
    x = x.bfloat16() if x.is_cuda else x.float()
    is_tall = x.shape[1] > x.shape[2]
    if is_tall:
        x = x.mT
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.mT if is_tall else x


class Optimizer:
    """`set_scale` sets the share of the full learning rates; `step` updates from `.grad`."""

    def __init__(self, model: TinyModel, muon_lr: float, adam_lr: float, is_compiled: bool) -> None:
        device = model.embedding.weight.device
        matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
        self._rest = [p for p in model.parameters() if not any(p is other for other in matrices)]
        self._groups: dict[tuple[int, ...], list[nn.Parameter]] = {}
        for parameter in matrices:
            self._groups.setdefault(tuple(parameter.shape), []).append(parameter)
        self._momentum = {
            shape: torch.zeros(len(group), *shape, device=device) for shape, group in self._groups.items()
        }
        self._rates = (muon_lr, adam_lr)
        self._muon_lr = torch.tensor(muon_lr, device=device)
        self._adam_lr = torch.tensor(adam_lr, device=device)
        on_gpu = device.type == "cuda"
        self._adam = torch.optim.AdamW(
            self._rest,
            lr=self._adam_lr if on_gpu else adam_lr,
            betas=(0.9, 0.95),
            weight_decay=0.0,
            capturable=on_gpu,
            fused=on_gpu,
        )
        self._orthogonalize: Callable[[Tensor], Tensor] = (
            torch.compile(orthogonalize, dynamic=False) if is_compiled else orthogonalize
        )

    def set_scale(self, scale: float) -> None:
        """The share of the full learning rates from now on."""
        self._muon_lr.fill_(self._rates[0] * scale)
        self._adam_lr.fill_(self._rates[1] * scale)
        if not self._adam_lr.is_cuda:
            self._adam.param_groups[0]["lr"] = self._rates[1] * scale

    @torch.no_grad()
    def step(self) -> None:
        """One update from the gradients."""
        torch.nn.utils.clip_grad_norm_(self._rest, 1.0)
        self._adam.step()
        for shape, group in self._groups.items():
            gradient = torch.stack([parameter.grad for parameter in group if parameter.grad is not None])
            momentum = self._momentum[shape]
            momentum.lerp_(gradient, 1 - MOMENTUM)
            update = self._orthogonalize(gradient.lerp_(momentum, MOMENTUM)).float()
            update = update * (-self._muon_lr * max(1.0, shape[0] / shape[1]) ** 0.5)
            torch._foreach_mul_(tuple(group), 1 - self._muon_lr * WEIGHT_DECAY)
            torch._foreach_add_(tuple(group), list(update.unbind(0)))

    def zero_grad(self) -> None:
        """Forgets the gradients."""
        for parameters in (self._rest, *self._groups.values()):
            for parameter in parameters:
                parameter.grad = None
