"""The shipped model's score by every way to it, which must be one number: `python -m tools.eval` (`make eval`).

Owns: which models run which tasks; the exit status is 1 where numbers differ that must be equal (comparison.py).
Does not know: how the data is made (cases.py), how lm-eval scores. Needs the `bench` extra.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the tasks need no download; without it every run asks the hub first
os.environ.setdefault("LMEVAL_LOG_LEVEL", "WARNING")

from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

from atom.builtin_model import resolve
from tools.eval.cases import DATA
from tools.eval.comparison import Outcome, differences, row
from tools.eval.offline import OfflineLM
from tools.eval.reference import reference_texts
from tools.eval.server import serve
from tools.eval.stand_in import instead_of_gsm8k

TASKS = Path(__file__).parent / "tasks"
MODEL = "atom-tiny"
_CLIENT = "num_concurrent=64,max_retries=3"


def note(outcome: Outcome) -> Outcome:
    """The outcome, told at once on stderr: a whole run takes minutes."""
    print(row(outcome), file=sys.stderr, flush=True)
    return outcome


def evaluate(task: str, label: str, model: Any, model_args: str | None = None, **options: Any) -> Outcome:
    """One run of lm-eval."""
    found = simple_evaluate(
        model=model,
        model_args=model_args,
        tasks=[task],
        task_manager=TaskManager(include_path=str(TASKS)),
        bootstrap_iters=0,
        **options,
    )
    metrics: dict[str, float] = {  # keys are "metric,filter"
        name.removesuffix(",none"): value
        for name, value in found["results"][task].items()
        if "," in name and "_stderr" not in name
    }
    answers = {sample["doc_id"]: sample["resps"] for sample in found["samples"][task]}
    return note(Outcome(task, label, metrics, answers))


def run_served(address: str) -> list[Outcome]:
    """Everything that goes through HTTP, 64 requests at a time, prompts as text and as token ids."""
    outcomes = []
    for tokenized in (False, True):
        label = f"local-completions, tokenized_requests={tokenized}"
        args = f"model={MODEL},base_url={address}/v1/completions,{_CLIENT},tokenized_requests={tokenized}"
        outcomes.append(evaluate("atom_answers", label, "local-completions", args))
        outcomes.append(evaluate("atom_choices", label, "local-completions", args))
        with instead_of_gsm8k(DATA):
            outcomes.append(evaluate("gsm8k", label, "local-completions", args, num_fewshot=5))
    args = f"model={MODEL},base_url={address}/v1/chat/completions,{_CLIENT}"
    label = "local-chat-completions"
    outcomes.append(evaluate("atom_answers_chat", label, "local-chat-completions", args, apply_chat_template=True))
    return outcomes


def run_offline(dtype: str) -> list[Outcome]:
    """The same tasks by the engine in this process."""
    model = OfflineLM(MODEL, dtype=dtype)
    try:
        return [evaluate(task, "LLMEngine", model) for task in ("atom_answers", "atom_choices")]
    finally:
        model.engine.close()


def run_references(dtype: str) -> list[Outcome]:
    """What the engines are held against: the model's own training code, and transformers."""
    cases = [json.loads(line) for line in (DATA / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = reference_texts([case["prompt"] for case in cases], dtype)
    score = sum(text == case["answer"] for text, case in zip(texts, cases, strict=True)) / len(cases)
    answers = {index: [[text]] for index, text in enumerate(texts)}
    args = f"pretrained={resolve(MODEL).path},dtype={dtype}"
    return [
        note(Outcome("atom_answers", "the training code", {"exact_match": score}, answers)),
        evaluate("atom_choices", "transformers (hf)", "hf", args, batch_size=16, device="cpu"),
    ]


def main() -> None:
    """Run, print, compare."""
    parser = argparse.ArgumentParser(prog="python -m tools.eval", description=__doc__)
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16"), default="float32", help="float32 leaves rounding no say"
    )
    parser.add_argument("--out", type=Path, help="write scores and answers as JSON")
    options = parser.parse_args()
    outcomes = run_references(options.dtype) + run_offline(options.dtype)
    with serve(MODEL, ["--dtype", options.dtype]) as address:
        outcomes += run_served(address)
    print("\n".join(row(outcome) for outcome in sorted(outcomes, key=lambda each: each.task)))
    if options.out:
        options.out.write_text(json.dumps([asdict(outcome) for outcome in outcomes]) + "\n", encoding="utf-8")
    findings = differences(outcomes)
    print("\n".join(findings) or "all numbers that must be equal are equal")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
