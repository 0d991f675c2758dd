"""`make builtin-model`: makes atom-tiny into build/builtin_model; a smoke run on a CPU, the real run with GPU=1.

Owns: the order of the steps and the sizes of the smoke run. Does not know: how a step works.
The real run makes a new tokenizer, trains for 500 s from random weights and scores the result; `--install` then puts it
in place of the shipped model. The smoke run takes the shipped tokenizer, two layers and a few steps: it shows that the
tools work.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from tools.builtin_model import evaluate, train

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "atom" / "builtin_model" / "atom_tiny"
MODEL_FILES = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
SMOKE_TRAINING = ["--layers", "2", "--batch-tokens", "512", "--max-steps", "6", "--workers", "1", "--log-every", "2"]
SMOKE_SCORING = [
    "--cases",
    "1",
    "--formats",
    "qwen,kimi_k3",
    "--thinking",
    "off",
    "--no-suite",
    "--max-answer-tokens",
    "16",
]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "builtin_model")
    parser.add_argument("--gpu", action="store_true", default=os.environ.get("GPU") == "1", help="the real run")
    parser.add_argument(
        "--install", action="store_true", help="replace the shipped model by the result (real run only)"
    )
    args = parser.parse_args()
    training = [] if args.gpu else [*SMOKE_TRAINING, "--tokenizer", str(SHIPPED / "tokenizer.json")]
    train.main(["--out", str(args.out), *training])
    evaluate.main([str(args.out), "--out", str(args.out / "scores.json"), *([] if args.gpu else SMOKE_SCORING)])
    if args.gpu and args.install:
        for name in MODEL_FILES:
            shutil.copyfile(args.out / name, SHIPPED / name)


if __name__ == "__main__":
    main()
