"""Runs the model over scheduled batches on one device.

Owns the order of a step: state, inputs, forward, logits, sampling, log probabilities. Everything stays on the device
until `StepOutput.result` is asked for. Knows nothing of requests, sequences or processes.
Shapes: B rows, R rows that sample, T tokens, V vocabulary.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch

from atom import envs
from atom.config import Config
from atom.model_engine import kv_cache
from atom.model_engine.batch import ScheduledBatch, StepResult
from atom.model_engine.device_copies import begin_download, upload, upload_packed
from atom.model_engine.draw_graphs import capture_draws
from atom.model_engine.grammars import Grammars
from atom.model_engine.input_batch import InputBatch, SampledRows
from atom.model_engine.memory_profile import explain_out_of_memory, run_largest_step
from atom.model_engine.messages import EngineInfo, TokenLogprobs
from atom.model_engine.sampling_state import OFF, SamplingState
from atom.model_engine.step_graphs import StepGraphs, capture_graphs
from atom.model_engine.token_masks import MaskedRows, TokenMasks
from atom.model_engine.warm_up import first_batches, gpu_batches
from atom.model_loader.loader import load_model
from atom.model_ops.context import BuildContext
from atom.model_ops.kernels.compiled.functions import compiled_kernels
from atom.model_ops.kernels.select import parse_overrides, select_kernels
from atom.model_ops.logits_edits import add_bias, apply_penalties, forbid
from atom.model_ops.logprobs import Logprobs, token_logprobs
from atom.model_ops.sampler import Sampler
from atom.model_ops.step import StepInputs
from atom.models.registry import build_model

logger = logging.getLogger(__name__)

# Positions whose prompt logprobs are computed at once: logits of a whole chunk would not fit.
_PROMPT_SLICE = 256


@dataclass(slots=True)
class StepOutput:
    """What a step left on the device. rows [R]: rows that sampled; tokens [R]."""

    step: int
    num_rows: int
    rows: np.ndarray
    tokens: torch.Tensor
    logprobs: list[tuple[list[int], list[int], Logprobs]] = field(default_factory=list)
    prompt_logprobs: dict[int, list[tuple[int, Logprobs]]] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    arrived: torch.cuda.Event | None = None

    def begin_copies(self) -> None:
        """Send everything to the host, from the thread and stream that made it; nothing waits."""
        if not self.tokens.is_cuda:
            return
        self.tokens = begin_download(self.tokens)
        self.logprobs = [(rows, limits, values.map(begin_download)) for rows, limits, values in self.logprobs]
        for slices in self.prompt_logprobs.values():
            slices[:] = [(limit, values.map(begin_download)) for limit, values in slices]
        self.arrived = torch.cuda.Event()
        self.arrived.record()

    def result(self) -> StepResult:
        """The result on the host; waits for this step, and for no later one."""
        if self.arrived is not None:
            self.arrived.synchronize()
        token_ids = np.zeros((self.num_rows, 1), dtype=np.int32)
        num_tokens = np.zeros(self.num_rows, dtype=np.int32)
        token_ids[self.rows, 0] = self.tokens.numpy()
        num_tokens[self.rows] = 1
        logprobs = {}
        for rows, limits, values in self.logprobs:
            for row, entry in zip(rows, to_messages(values, limits), strict=True):
                logprobs[row] = [entry]
        prompts = {
            row: [entry for limit, values in slices for entry in to_messages(values, [limit] * len(values.token_ids))]
            for row, slices in self.prompt_logprobs.items()
        }
        return StepResult(self.step, token_ids, num_tokens, logprobs, prompts, self.errors)


def to_messages(values: Logprobs, limits: list[int]) -> list[TokenLogprobs]:
    """One message a position; limits: how many alternatives each wants."""
    columns = (values.token_ids, values.logprobs, values.ranks, values.top_ids, values.top_logprobs)
    lists = (column.tolist() for column in columns)
    return [
        TokenLogprobs(token, logprob, rank, ids[:limit], tops[:limit])
        for limit, token, logprob, rank, ids, tops in zip(limits, *lists, strict=True)
    ]


class ModelRunner:
    """A loaded model, its cache and the state of its slots."""

    def __init__(self, config: Config, grammars: Grammars | None = None) -> None:
        """Load the model and allocate its cache. Raises with a message for the user.

        grammars: what sequences with a grammar need; without it there can be none.
        """
        self.config = config
        self.device = resolve_device(config.device)
        self.dtype = getattr(torch, config.dtype)
        self.cache_dtype = kv_cache.cache_dtype(config, self.dtype, self.device)
        kernels = select_kernels(platform_of(self.device), _kernel_overrides())
        level, asked_for = compilation_level(config, self.device), parse_overrides(_kernel_overrides())
        self.kernels = compiled_kernels(kernels, level, self.device, asked_for)
        build = BuildContext(
            self.kernels, self.dtype, self.device, config.max_model_len, quantization=config.quantization
        )
        with torch.inference_mode():
            with explain_out_of_memory("loading the weights", "choose a smaller model or --dtype bfloat16"):
                self.model = build_model(config.hf, build).eval()
                load_model(self.model, config.model_path, config.load_dummy)
            self.num_blocks = self._make_cache()
        self.sampler = Sampler(self.kernels)
        self.state = SamplingState(config.max_num_seqs, config.hf.vocab_size, config.eos_token_ids, self.device)
        max_blocks = -(-config.max_model_len // config.block_size)
        self.inputs = InputBatch(config.max_num_seqs, max_blocks, config.block_size, self.state, self.device)
        with torch.inference_mode():
            self.graphs = capture_graphs(config, self.device, self.kernels, self._forward, self.inputs)
            self.draws = capture_draws(self.graphs, self.kernels, self.inputs)
        self.masks = None if grammars is None else TokenMasks(config.max_num_seqs, grammars, _mask_threads(self.device))

    def info(self) -> EngineInfo:
        """What the engine tells the API process."""
        config = self.config
        return EngineInfo(
            model=config.model,
            architecture=config.hf.architecture,
            device=self.device.type,
            dtype=config.dtype,
            max_model_len=config.max_model_len,
            vocab_size=config.hf.vocab_size,
            eos_token_ids=list(config.eos_token_ids),
            block_size=config.block_size,
            num_blocks=self.num_blocks,
            max_num_seqs=config.max_num_seqs,
            kernels=self.kernels.choice,
        )

    def _make_cache(self) -> int:
        """Allocate and bind the cache; returns its number of blocks."""
        config, layers = self.config, list(self.model.attention_layers())
        if self.device.type == "cuda":
            with explain_out_of_memory(
                "running the largest step", "give a smaller --max-num-batched-tokens or --max-num-seqs"
            ):
                run_largest_step(self.model, self.kernels, config, self.cache_dtype, self.device)
        size = kv_cache.geometry(layers, config.block_size, self.cache_dtype)
        num_blocks = kv_cache.choose_num_blocks(config, size, self.device)
        with explain_out_of_memory("allocating the KV cache", "give a smaller --gpu-memory-utilization"):
            kv_cache.allocate(layers, num_blocks, config.block_size, self.cache_dtype, self.kernels, self.device)
        kv_cache.log_capacity(num_blocks, size, config.max_model_len, self.cache_dtype)
        return num_blocks

    def _forward(self, step: StepInputs, tokens: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits and greedy tokens after these tokens of a step, by default after all."""
        step.plan = self.kernels["attention_plan"](step)
        logits = self.model.compute_logits(self.model(step, tokens))
        return logits, self.kernels["greedy_sample"](logits)

    def _graphs_for(self, batch: ScheduledBatch) -> StepGraphs | None:
        return next((graphs for graphs in self.graphs if graphs.fits(batch)), None)

    def graph_batch_size(self, batch: ScheduledBatch) -> int | None:
        """Rows of the graph that a step runs in, None for one that runs without."""
        graphs = self._graphs_for(batch)
        return None if graphs is None else graphs.size(batch)

    @torch.inference_mode()
    def run(self, batch: ScheduledBatch, in_graphs: bool = True) -> StepOutput:
        """One step, in a graph where one holds it. The batch's state changes even when it raises, so a failed runner is
        not to be used again.
        """
        graphs = self._graphs_for(batch) if in_graphs else None
        self.inputs.apply(batch)
        if self.masks is not None:
            for admission in batch.admissions:
                self.masks.admit(admission)
        sampled = self.inputs.sampled_rows(batch)
        output = StepOutput(batch.step, batch.num_rows, sampled.rows, self.inputs.last_tokens[:0])
        if graphs is None:
            self._run_eager(batch, sampled, output)
        else:
            logits, tokens = graphs.run(batch, sampled)
            if len(sampled.rows):
                draws = self.draws.get(graphs)
                draw = None if draws is None else partial(draws.run, graphs.size(batch), sampled)
                self._sample(logits, sampled, output, greedy=tokens, draw=draw)
        output.begin_copies()
        return output

    def _run_eager(self, batch: ScheduledBatch, sampled: SampledRows, output: StepOutput) -> None:
        step = self.inputs.inputs(batch)
        step.plan = self.kernels["attention_plan"](step)
        tokens = None
        if len(sampled.rows) != batch.num_tokens:
            # Where nothing samples, some token all the same: kernels take no empty batch.
            tokens = upload(sampled.last_tokens if len(sampled.rows) else np.zeros(1, np.int64), self.device)
        scores_prompts = (self.state.num_prompt_logprobs[batch.slots[batch.num_decodes :]] != OFF).any()
        hidden = self.model(step, None if scores_prompts else tokens)
        if len(sampled.rows):
            last = hidden.index_select(0, tokens) if scores_prompts and tokens is not None else hidden
            self._sample(self.model.compute_logits(last), sampled, output)
        if scores_prompts:
            self._score_prompts(hidden, batch, output)

    def _sample(
        self,
        raw: torch.Tensor,
        sampled: SampledRows,
        output: StepOutput,
        greedy: torch.Tensor | None = None,
        draw: Callable[[], torch.Tensor] | None = None,
    ) -> None:
        """Sample from raw logits [R, V] into the slots and the output.

        greedy [R]: the largest of `raw`, if known. draw: tokens [R] of what is in `raw` then, those of random rows
        drawn and the others `greedy`; it puts them into the slots itself.
        Masks change `raw` itself, unless log probabilities are to be taken of it.
        """
        logits = raw
        slots, num_outputs = sampled.slots, sampled.num_outputs
        wants = np.flatnonzero(self.state.num_logprobs[slots] != OFF)
        if self.state.needs_edits(slots, num_outputs):
            logits = self._edit(raw, slots, num_outputs)
        masked = None if self.masks is None else self.masks.rows(slots)
        if masked is not None:
            logits, greedy = self._mask(raw.clone() if logits is raw and len(wants) else logits, masked), None
            output.errors = {int(sampled.rows[row]): message for row, message in masked.failures.items()}
        is_random = self.state.is_random[slots]
        if greedy is not None and logits is raw and not is_random.any():
            tokens = greedy  # in the slots already
        elif draw is not None and logits is raw and (greedy is not None or is_random.all()):
            tokens = draw()
        else:
            where, random = self.state.rows(slots, num_outputs)
            tokens = self.sampler(logits, random)
            self.inputs.last_tokens.index_copy_(0, where, tokens)
        output.tokens = tokens
        self._count(slots, tokens)
        if self.masks is not None and masked is not None:
            self.masks.sampled(slots[masked.rows], HostTokens(tokens, masked.rows))
        if len(wants):
            chosen = upload(wants, self.device)
            limits = self.state.num_logprobs[slots[wants]]
            values = token_logprobs(raw[chosen], tokens[chosen], int(limits.max()))
            output.logprobs.append((sampled.rows[wants].tolist(), limits.tolist(), values))

    def _edit(self, raw: torch.Tensor, slots: np.ndarray, num_outputs: np.ndarray) -> torch.Tensor:
        """A float32 copy of the logits with penalties, bias and min_tokens applied."""
        logits = raw.to(torch.float32, copy=True)
        state = self.state
        rows = np.flatnonzero(state.penalty_rows[slots] != OFF)
        if len(rows):
            which = upload(state.penalty_rows[slots[rows]].astype(np.int64), self.device)
            seen = state.penalties
            where = upload(rows, self.device)
            apply_penalties(logits, where, seen.counts[which], seen.in_prompt[which], seen.weights[which])
        rows = np.flatnonzero(state.has_bias[slots])
        if len(rows):
            ids, values = zip(*(state.biases[slot] for slot in slots[rows].tolist()), strict=True)
            add_bias(logits, *self._cells(rows, ids), upload(np.concatenate(values), self.device))
        rows = np.flatnonzero(state.min_tokens[slots] > num_outputs)
        if len(rows):
            forbid(logits, *self._cells(rows, [state.stop_ids[slot] for slot in slots[rows].tolist()]))
        return logits

    def _cells(self, rows: np.ndarray, token_ids: Sequence[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
        """Row and token of each of the tokens of each of the rows, on the device."""
        repeated = np.repeat(rows, [len(ids) for ids in token_ids])
        where, ids = upload_packed((repeated, np.concatenate(token_ids)), self.device)
        return where, ids

    def _mask(self, logits: torch.Tensor, masked: MaskedRows) -> torch.Tensor:
        """Make impossible, in place, what the rows' grammars do not allow."""
        rows, masks = upload(masked.rows, self.device), upload(masked.masks, self.device)
        return self.kernels["mask_logits"](logits, rows, masks)

    def _count(self, slots: np.ndarray, tokens: torch.Tensor) -> None:
        """Remember sampled tokens where penalties ask for it."""
        rows = np.flatnonzero(self.state.penalty_rows[slots] != OFF)
        if len(rows):
            which = upload(self.state.penalty_rows[slots[rows]].astype(np.int64), self.device)
            self.state.penalties.counts[which, tokens[upload(rows, self.device)]] += 1

    def _score_prompts(self, hidden: torch.Tensor, batch: ScheduledBatch, output: StepOutput) -> None:
        starts = np.cumsum(batch.query_lens) - batch.query_lens
        for row in range(batch.num_decodes, batch.num_rows):
            slot = int(batch.slots[row])
            num_top = int(self.state.num_prompt_logprobs[slot])
            if num_top == OFF:
                continue
            context, start = int(batch.context_lens[row]), int(starts[row])
            targets = self.inputs.prompts[slot][context + 1 : context + 1 + int(batch.query_lens[row])]
            slices = output.prompt_logprobs.setdefault(row, [])
            for first in range(0, len(targets), _PROMPT_SLICE):
                ids = torch.tensor(targets[first : first + _PROMPT_SLICE], device=self.device)
                logits = self.model.compute_logits(hidden[start + first : start + first + len(ids)])
                slices.append((num_top, token_logprobs(logits, ids, num_top)))

    def shutdown(self) -> None:
        """End what runs beside the steps, and let go of the graphs, which hold the runner."""
        self.graphs, self.draws = (), {}
        if self.masks is not None:
            self.masks.shutdown()

    def warm_up(self) -> None:
        """Run what no graph holds, so that the first requests do not wait for compilers and for what libraries make."""
        begun = time.monotonic()
        with explain_out_of_memory("warming up", "give a smaller --gpu-memory-utilization"):
            for batch in first_batches(self.config):
                self.run(batch).result()
            if self.device.type == "cpu":
                return
            for batch in gpu_batches(self.config, self.num_blocks):
                self.run(batch, in_graphs=False).result()
            row, mask = np.zeros(1, np.int64), np.full((1, -(-self.config.hf.vocab_size // 32)), -1, np.int32)
            self._mask(torch.zeros(1, self.config.hf.vocab_size, device=self.device), MaskedRows(row, mask, {}))
        logger.info("warmed up, %.1f s", time.monotonic() - begun)


class HostTokens:
    """A step's sampled tokens of some rows, on their way to the host; calling it waits for them, and for no later work.

    rows [N]: indices into tokens [R].
    """

    def __init__(self, tokens: torch.Tensor, rows: np.ndarray) -> None:
        self._rows = rows
        self._arrived = None
        self._tokens = tokens
        if tokens.is_cuda:
            self._tokens = torch.empty(tokens.shape, dtype=tokens.dtype, pin_memory=True)
            self._tokens.copy_(tokens, non_blocking=True)
            self._arrived = torch.cuda.Event()
            self._arrived.record()

    def __call__(self) -> list[int]:
        """The tokens of the rows, in their order."""
        if self._arrived is not None:
            self._arrived.synchronize()
        tokens: list[int] = self._tokens.numpy()[self._rows].tolist()
        return tokens


def _mask_threads(device: torch.device) -> int:
    """Threads that compute masks: beside a GPU there are cores to spare, on a CPU the model wants them."""
    return 0 if device.type == "cpu" else max(1, min(8, (os.cpu_count() or 1) // 2))


def resolve_device(name: str) -> torch.device:
    """auto is a GPU where there is one. ValueError for a GPU that is not there."""
    has_gpu = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if has_gpu else "cpu")
    if name == "cuda" and not has_gpu:
        raise ValueError("--device cuda: torch finds no GPU")
    return torch.device(name)


def compilation_level(config: Config, device: torch.device) -> int:
    """--level, or the device's own: a CPU's start is not to wait for a compiler unless asked to."""
    if config.enforce_eager:
        return 0
    level = config.compilation.level
    return level if level is not None else 3 if device.type == "cuda" else 0


def use_own_stream(device: torch.device) -> None:
    """Give the calling thread a stream of its own on a GPU: what other threads do there does not order its work."""
    if device.type == "cuda":
        torch.cuda.set_stream(torch.cuda.Stream(device))


def platform_of(device: torch.device) -> str:
    """rocm, cuda or cpu."""
    if device.type == "cpu":
        return "cpu"
    return "rocm" if torch.version.hip else "cuda"


def _kernel_overrides() -> str:
    return envs.ATOM_KERNELS or ""
