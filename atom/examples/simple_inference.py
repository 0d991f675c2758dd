"""Four chat prompts answered offline, with the time that each took: `python -m atom.examples.simple_inference`.

Takes every engine flag of the server, so `--model atom-tiny` tries it without a download.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from atom import LLMEngine, SamplingParams
from atom.config import ENGINE_SETTINGS, Config
from atom.entrypoints.openai.chat_encoders import load_chat_encoder
from atom.model_engine.arg_utils import SettingsParser, add_cli_args

PROMPTS = (
    "Hello! Who are you?",
    "What is 17 plus 25?",
    "你好！",
    "12加30等于多少？",
)


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    """The engine's flags, and how the answers are sampled."""
    parser = SettingsParser(prog="python -m atom.examples.simple_inference", description=__doc__)
    add_cli_args(parser, {setting.group for setting in ENGINE_SETTINGS.values()})
    parser.add_argument("--temperature", type=float, default=0.6, help="0 always takes the likeliest token")
    parser.add_argument("--max-tokens", type=int, default=300, help="new tokens an answer")
    return parser.parse_args(argv)


def chat_prompts(config: Config) -> list[str]:
    """PROMPTS as the model's chat template writes them, thinking first; as they are for a model without a template."""
    encoder = load_chat_encoder(config.model_path, config.chat_template, config.trust_remote_code)
    if encoder is None:
        return list(PROMPTS)
    return [encoder.render([{"role": "user", "content": text}], enable_thinking=True) for text in PROMPTS]


def report(prompt: str, answer: dict[str, Any]) -> str:
    """One answer and its times as text."""
    return (
        f"\nprompt: {prompt}\nanswer: {answer['text'].strip()}\n"
        f"  {answer['num_tokens_input']} tokens in, {answer['num_tokens_output']} out ({answer['finish_reason']}); "
        f"first token {1000 * answer['ttft']:.0f} ms, then {1000 * answer['tpot']:.1f} ms a token, "
        f"{answer['latency']:.2f} s in all"
    )


def main(argv: list[str] | None = None) -> None:
    """Load the model, warm up, answer, print."""
    options = parse_args(argv)
    settings = {name: value for name, value in vars(options).items() if name in ENGINE_SETTINGS}
    try:
        sampling = SamplingParams(temperature=options.temperature, max_tokens=options.max_tokens)
        began = time.monotonic()
        engine = LLMEngine(settings.pop("model", ENGINE_SETTINGS["model"].default), **settings)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    with engine:
        print(f"{engine.config.model} is loaded in {time.monotonic() - began:.1f} s")
        prompts = chat_prompts(engine.config)
        engine.generate(prompts, SamplingParams(temperature=options.temperature, max_tokens=4))  # warm up
        began = time.monotonic()
        answers = engine.generate(prompts, sampling)
        elapsed = time.monotonic() - began
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        print(report(prompt, answer))
    num_tokens = sum(answer["num_tokens_output"] for answer in answers)
    print(f"\n{num_tokens} tokens in {elapsed:.2f} s, {num_tokens / elapsed:.1f} tokens/s")


if __name__ == "__main__":
    main()
