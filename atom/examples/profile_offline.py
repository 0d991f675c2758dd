"""A trace of one offline batch: `python -m atom.examples.profile_offline --model atom-tiny --bs 4`.

Takes every engine flag of the server. Warms up first, so that the trace holds no start-up work; docs/profiling.md says
how to read it.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import Any

from atom import LLMEngine, SamplingParams, envs
from atom.config import ENGINE_SETTINGS
from atom.model_engine.arg_utils import SettingsParser, add_cli_args
from atom.model_engine.messages import EngineCallError
from atom.tokenizer import Tokenizer

DEFAULT_FOLDER = Path("profiler_traces")
WARM_UP_TOKENS = 4
TEXT = (
    "A trace shows what a machine does with its time. Between two tokens there is a forward pass through every layer, "
    "and between two layers there are waits that nobody planned. Read it from left to right: the long bars are work, "
    "the gaps are questions. Why does this copy happen twice? Who waits for whom? "
)


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    """The engine's flags, and the batch."""
    parser = SettingsParser(prog="python -m atom.examples.profile_offline", description=__doc__)
    add_cli_args(parser, {setting.group for setting in ENGINE_SETTINGS.values()})
    parser.add_argument("--input-length", type=positive, default=128, help="tokens of each prompt")
    parser.add_argument("--output-length", type=positive, default=32, help="tokens generated for each prompt")
    parser.add_argument("--bs", type=positive, default=1, help="prompts, all at once")
    parser.add_argument("--random-input", action="store_true", help="prompts of random tokens instead of a text's")
    return parser.parse_args(argv)


def positive(text: str) -> int:
    """A whole number from 1 on. ArgumentTypeError otherwise."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def text_prompts(tokenizer: Tokenizer, num_prompts: int, length: int) -> list[list[int]]:
    """Prompts of `length` tokens from one text; each begins with its number, so that they share no cached blocks."""
    numbered = (tokenizer.encode(f"{index}. {TEXT}", add_special_tokens=False) for index in range(num_prompts))
    return [[ids[at % len(ids)] for at in range(length)] for ids in numbered]


def random_prompts(tokenizer: Tokenizer, num_prompts: int, length: int) -> list[list[int]]:
    """Prompts of `length` tokens drawn from those that are not special; the same ones every time."""
    draw = random.Random(0)
    ordinary = [token for token in range(tokenizer.vocab_size) if token not in tokenizer.special_ids]
    return [draw.choices(ordinary, k=length) for _ in range(num_prompts)]


def record(engine: LLMEngine, prompts: list[list[int]], num_tokens: int) -> list[dict[str, Any]]:
    """Warm up with the last prompt, record the others, return the traces."""
    *batch, warm_up = prompts
    sampling = SamplingParams(temperature=0.6, max_tokens=num_tokens, ignore_eos=True)
    engine.generate([warm_up], SamplingParams(temperature=0.6, max_tokens=WARM_UP_TOKENS, ignore_eos=True))
    engine.start_profile()
    answers = engine.generate(batch, sampling)
    traces = engine.stop_profile()
    num_out = sum(answer["num_tokens_output"] for answer in answers)
    print(f"{len(batch)} prompts of {len(batch[0])} tokens, {num_out} tokens generated")
    return traces


def main(argv: list[str] | None = None) -> None:
    """Load the model, record one batch, say where the trace is."""
    options = parse_args(argv)
    settings = {name: value for name, value in vars(options).items() if name in ENGINE_SETTINGS}
    try:
        engine = LLMEngine(settings.pop("model", ENGINE_SETTINGS["model"].default), **with_folder(settings))
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    make_prompts = random_prompts if options.random_input else text_prompts
    with engine:
        prompts = make_prompts(engine.tokenizer, options.bs + 1, options.input_length)
        try:
            traces = record(engine, prompts, options.output_length)
        except (ValueError, OSError, EngineCallError, TimeoutError) as error:
            sys.exit(f"error: {error}")
    for trace in traces:
        print(f"trace of {trace['elapsed']:.2f} s: {Path(trace['trace_dir']) / trace['file']}")
    print("open it at https://ui.perfetto.dev or in chrome://tracing")


def with_folder(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings with a folder for the traces, said aloud where it is our choice."""
    if "torch_profiler_dir" in settings or envs.ATOM_TORCH_PROFILER_DIR is not None:
        return settings
    print(f"note: no --torch-profiler-dir given; traces go to ./{DEFAULT_FOLDER}")
    return settings | {"torch_profiler_dir": DEFAULT_FOLDER}


if __name__ == "__main__":
    main()
