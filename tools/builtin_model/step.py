"""One training step: unpack a batch, forward, loss on trained tokens, backward, update.

Owns: the step's buffers, its CUDA graph and attention. Does not know: where batches come from, or how long training
lasts.
Legend: N tokens of a batch.
"""

from __future__ import annotations

import inspect
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional as F

from tools.builtin_model.feeder import TRAINED_BIT, Array, max_documents
from tools.builtin_model.model import Attention, TinyModel, rms_norm
from tools.builtin_model.optimizer import Optimizer
from tools.builtin_model.vocabulary import MAX_POSITIONS


def varlen_attention(model: TinyModel, bounds: Tensor) -> Attention:
    """Flash attention inside each document of a packed batch; `bounds` is read at call time."""
    from torch.nn.attention.varlen import varlen_attn

    repeat = model.shape.heads // model.shape.kv_heads
    has_window = "window_size" in inspect.signature(varlen_attn).parameters
    causal = {"window_size": (-1, 0)} if has_window else {"is_causal": True}

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        attended = varlen_attn(q, k, v, bounds, bounds, MAX_POSITIONS, MAX_POSITIONS, **causal)
        return cast(Tensor, attended)  # not a tuple, which asks for return_aux

    return attend


def masked_attention(bounds: Tensor) -> Attention:
    """The same by an explicit N x N mask: slow, for the CPU smoke run."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        n = q.shape[0]
        document = torch.bucketize(torch.arange(n), bounds[1:].long(), right=True)
        mask = (document[:, None] == document[None]) & torch.ones(n, n, dtype=torch.bool).tril()
        q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)[0].transpose(0, 1)

    return attend


def _head_loss(x: Tensor, norm: Tensor, embedding: Tensor, eps: float, targets: Tensor, weights: Tensor) -> Tensor:
    logits = F.linear(rms_norm(x, norm, eps), embedding.to(x.dtype))
    losses = F.cross_entropy(logits.float(), targets, reduction="none")
    return (losses * weights).sum() / weights.sum().clamp(min=1.0)


class TrainingStep:
    """`load(row)`, then `run()`; `loss` holds the last step's loss. `capture()` turns the step into one CUDA graph."""

    def __init__(self, model: TinyModel, optimizer: Optimizer, batch_tokens: int, is_compiled: bool) -> None:
        self._model, self._optimizer, self._n = model, optimizer, batch_tokens
        self._device = model.embedding.weight.device
        self._row = torch.zeros(
            batch_tokens + 1 + max_documents(batch_tokens) + 2, dtype=torch.int32, device=self._device
        )
        self._bounds = torch.zeros(max_documents(batch_tokens) + 2, dtype=torch.int32, device=self._device)
        self._index = torch.arange(batch_tokens, dtype=torch.int32, device=self._device)
        self._attention = (
            varlen_attention(model, self._bounds) if self._device.type == "cuda" else masked_attention(self._bounds)
        )
        self._head = torch.compile(_head_loss, dynamic=False) if is_compiled else _head_loss
        if is_compiled:
            for block in model.blocks:
                block.compile(dynamic=False)
        self._graph: torch.cuda.CUDAGraph | None = None
        self.loss = torch.zeros((), device=self._device)

    def load(self, row: Array) -> None:
        """Copies a batch to the device."""
        host = torch.from_numpy(row)
        self._row.copy_(host.pin_memory() if self._device.type == "cuda" else host, non_blocking=True)

    def run(self) -> None:
        """Trains on the loaded batch."""
        if self._graph is not None:
            self._graph.replay()
        else:
            self._eager()

    def _eager(self) -> None:
        loss = self.forward()
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        self.loss.copy_(loss.detach())

    def forward(self) -> Tensor:
        """The mean loss of the loaded batch over its trained tokens."""
        n, tokens = self._n, self._row[: self._n + 1]
        self._bounds.copy_(self._row[n + 1 :])
        document = torch.bucketize(self._index, self._bounds[:-1], right=True, out_int32=True)
        starts, ends = self._bounds[(document - 1).long()], self._bounds[document.long()]
        positions = (self._index - starts).clamp(max=MAX_POSITIONS - 1).long()
        ids, targets = (tokens[:n] & (TRAINED_BIT - 1)).long(), (tokens[1:] & (TRAINED_BIT - 1)).long()
        is_inside = self._index + 1 < ends  # the last token of a document predicts nothing
        weights = ((tokens[1:] >= TRAINED_BIT) & is_inside).float()
        model = self._model
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._device.type == "cuda"):
            x = model.hidden_states(ids, positions, self._attention)
            return self._head(x, model.norm, model.embedding.weight, model.shape.eps, targets, weights)

    def capture(self) -> None:
        """Captures forward, backward and update, after a few plain steps; gradients then live in the graph's memory."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._eager()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = self.forward()
            loss.backward()
            self._optimizer.step()
            self.loss.copy_(loss.detach())
        self._optimizer.zero_grad()
        self._graph = graph
