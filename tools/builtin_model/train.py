"""Trains atom-tiny from random weights: `python -m tools.builtin_model.train --out DIR [--seconds 500]`.

Owns: the schedule by wall time, progress, saving. Does not know: what the data says.
On one H200 a run takes under nine minutes; without a GPU it is a smoke run of a few steps at a small size.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer

from tools.builtin_model.feeder import Feeder
from tools.builtin_model.model import Shape, TinyModel, load_model, save_model
from tools.builtin_model.optimizer import Optimizer
from tools.builtin_model.step import TrainingStep
from tools.builtin_model.vocabulary import train_tokenizer, write_tokenizer

WARM_UP_STEPS = 200


@dataclass(frozen=True, slots=True)
class Schedule:
    """The share of the full learning rate: warm-up by steps, flat, then a linear decay over wall time to nothing."""

    seconds: float
    decay_from: float

    def scale(self, step: int, elapsed: float) -> float:
        """The share at a step, `elapsed` seconds after the first."""
        fraction = min(1.0, elapsed / self.seconds)
        decay = 1.0 if fraction < self.decay_from else (1.0 - fraction) / (1.0 - self.decay_from)
        return min(1.0, (step + 1) / WARM_UP_STEPS) * max(decay, 0.005)


def train(args: argparse.Namespace) -> None:
    """The whole run: tokenizer, weights and log in `args.out`."""
    is_gpu = torch.cuda.is_available()
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    args.out.mkdir(parents=True, exist_ok=True)
    tokenizer_path = args.out / "tokenizer.json"
    if args.tokenizer:
        write_tokenizer(args.out, Tokenizer.from_file(str(args.tokenizer)))
    else:
        write_tokenizer(args.out, train_tokenizer())
    feeder = Feeder(tokenizer_path, args.batch_tokens, args.workers, args.seed)
    try:
        model = load_model(args.init) if args.init else TinyModel(Shape(layers=args.layers))
        model = model.to("cuda" if is_gpu else "cpu")
        print(f"{model.num_parameters()} parameters", flush=True)
        optimizer = Optimizer(model, args.muon_lr, args.adam_lr, is_compiled=is_gpu)
        step = TrainingStep(model, optimizer, args.batch_tokens, is_compiled=is_gpu)
        log = _loop(args, feeder, optimizer, step, is_gpu)
    finally:
        feeder.close()
    save_model(model, args.out)
    (args.out / "training_log.json").write_text(json.dumps(log, indent=1) + "\n", encoding="utf-8")


def _loop(
    args: argparse.Namespace, feeder: Feeder, optimizer: Optimizer, step: TrainingStep, is_gpu: bool
) -> list[dict[str, float]]:
    schedule = Schedule(args.seconds, args.decay_from)
    began = time.time()
    for _ in range(2):  # compile before the clock starts
        optimizer.set_scale(1.0 / WARM_UP_STEPS)
        step.load(feeder.next_row())
        step.run()
    if is_gpu and not args.no_graph:
        step.capture()
    print(f"first steps after {time.time() - began:.0f} s", flush=True)
    log: list[dict[str, float]] = []
    start, number, last = time.time(), 0, (time.time(), 0)
    while (elapsed := time.time() - start) < args.seconds and number < args.max_steps:
        optimizer.set_scale(schedule.scale(number, elapsed))
        step.load(feeder.next_row())
        step.run()
        number += 1
        if number % args.log_every == 0:
            loss = float(step.loss)  # waits for the device, so that the clock tells the truth
            now = time.time()
            speed = (number - last[1]) * args.batch_tokens / (now - last[0]) / 1e6
            last = (now, number)
            entry = {
                "seconds": round(now - start, 1),
                "steps": number,
                "mtokens": round(number * args.batch_tokens / 1e6, 1),
                "loss": round(loss, 5),
            }
            log.append(entry | {"mtokens_per_second": round(speed, 3), "waits": feeder.num_waits})
            print(" ".join(f"{key}={value}" for key, value in log[-1].items()), flush=True)
            if not math.isfinite(loss):
                raise RuntimeError(f"the loss is {loss} after {number} steps")
    return log


def main(argv: list[str] | None = None) -> None:
    """Command line; the defaults are those of the real run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json to keep; without it a new one is trained")
    parser.add_argument("--init", type=Path, help="a model folder whose weights to go on from; without it, random ones")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--max-steps", type=int, default=10**9)
    parser.add_argument("--batch-tokens", type=int, default=65536)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--adam-lr", type=float, default=0.003)
    parser.add_argument("--decay-from", type=float, default=0.45)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log-every", type=int, default=200)
    parser.add_argument("--no-graph", action="store_true", help="do not capture the step as a CUDA graph")
    train(parser.parse_args(argv))


if __name__ == "__main__":
    main()
