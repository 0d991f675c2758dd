"""The flags of the serving benchmark: one table, the parser made from it, and the checks before any load is sent.

Owns names, defaults and what may stand together. Does not know how a flag takes effect.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

BACKENDS = (
    "tgi",
    "vllm",
    "lmdeploy",
    "deepspeed-mii",
    "openai",
    "openai-chat",
    "tensorrt-llm",
    "scalellm",
    "sglang",
)
DATASETS = ("sharegpt", "burstgpt", "sonnet", "random", "hf")
METRICS = ("ttft", "tpot", "itl", "e2el")
GOODPUT_METRICS = ("ttft", "tpot", "e2el")

COMPLETIONS_PATH = "/v1/completions"
# The path that a protocol's server has, where it is not the default of --endpoint.
USUAL_PATHS = {
    "openai-chat": "/v1/chat/completions",
    "tgi": "/generate_stream",
    "tensorrt-llm": "/v2/models/ensemble/generate_stream",
}
_PATH_ENDS = {"openai-chat": "chat/completions", "tgi": "generate_stream", "tensorrt-llm": "generate_stream"}
_WITHOUT_IGNORE_EOS = ("tgi",)
_WITHOUT_LOGPROBS = ("tgi", "tensorrt-llm", "deepspeed-mii")
_WITHOUT_BEST_OF = ("openai-chat", "tgi", "tensorrt-llm", "deepspeed-mii")


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. name: dash spelling without the dashes. kind: what its text is read by; `bool` makes it a switch.

    many: "+" or "*", it takes several values.
    """

    name: str
    kind: Callable[[str], Any]
    default: Any
    help: str
    choices: tuple[str, ...] | None = None
    many: str | None = None

    @property
    def dest(self) -> str:
        """The attribute of the parsed arguments."""
        return self.name.replace("-", "_")


def _number(kind: Callable[[str], float], low: float, text: str, above: bool = False) -> Any:
    try:
        value = kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if math.isnan(value) or value < low or (above and value == low):
        raise argparse.ArgumentTypeError(f"must be {'more than' if above else 'at least'} {low:g}, not {text}")
    return value


def positive_int(text: str) -> int:
    """An integer of at least 1."""
    return int(_number(int, 1, text))


def count(text: str) -> int:
    """An integer of at least 0."""
    return int(_number(int, 0, text))


def positive_number(text: str) -> float:
    """A number above 0; inf is one."""
    return float(_number(float, 0.0, text, above=True))


def ratio(text: str) -> float:
    """A number from 0 to 1."""
    value = float(_number(float, 0.0, text))
    if value > 1.0:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, not {text}")
    return value


def metric_names(text: str) -> tuple[str, ...]:
    """Names from METRICS, separated by commas."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in METRICS:
            raise argparse.ArgumentTypeError(f"{name!r} is no metric; there are {', '.join(METRICS)}")
    return names


def percentiles(text: str) -> tuple[float, ...]:
    """Percentiles from 0 to 100, separated by commas."""
    values = tuple(float(_number(float, 0.0, part.strip())) for part in text.split(",") if part.strip())
    if any(value > 100.0 for value in values):
        raise argparse.ArgumentTypeError(f"percentiles are between 0 and 100, not {text}")
    return values


def goodput_target(text: str) -> tuple[str, float]:
    """KEY:VALUE, a metric and its bound in milliseconds."""
    name, colon, value = text.partition(":")
    if not colon or name not in GOODPUT_METRICS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no target; write KEY:MILLISECONDS, where KEY is one of {', '.join(GOODPUT_METRICS)}"
        )
    return name, float(_number(float, 0.0, value))


def metadata_entry(text: str) -> tuple[str, str]:
    """KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form KEY=VALUE")
    return key.strip(), value.strip()


FLAGS: tuple[Flag, ...] = (
    Flag("backend", str, "vllm", "Protocol of the server.", BACKENDS),
    Flag("base-url", str, None, "Address of the server; in place of --host and --port."),
    Flag("host", str, "127.0.0.1", "Host of the server."),
    Flag("port", positive_int, 8000, "Port of the server."),
    Flag(
        "endpoint", str, COMPLETIONS_PATH, "Path of the API; openai-chat, tgi and tensorrt-llm have their own default."
    ),
    Flag("model", str, None, "Model to ask for; without it, the first one that the server lists."),
    Flag("served-model-name", str, None, "Name of the model in the API, where it is not --model."),
    Flag("tokenizer", str, None, "Folder or id of the tokenizer; the default is --model."),
    Flag("trust-remote-code", bool, False, "Run Python that comes with the tokenizer."),
    Flag("dataset-name", str, "sharegpt", "Where prompts come from.", DATASETS),
    Flag("dataset-path", str, None, "File of the dataset; for hf, a folder, a file or an id of the hub."),
    Flag("num-prompts", positive_int, 1000, "Requests to send."),
    Flag("request-rate", positive_number, math.inf, "Requests a second; inf sends all at once."),
    Flag(
        "burstiness",
        positive_number,
        1.0,
        "Shape of the gamma distribution of the gaps: 1 is Poisson, below it bursts.",
    ),
    Flag("max-concurrency", positive_int, None, "Requests in flight at most."),
    Flag("num-warmups", count, 1, "Requests before the measurement, which count nowhere."),
    Flag("seed", count, 0, "Seed of prompts and arrival times."),
    Flag("ignore-eos", bool, False, "Ask for the whole output length, whatever the model says."),
    Flag("logprobs", count, None, "Ask for so many log probabilities a token."),
    Flag("best-of", positive_int, 1, "Ask the server to choose from so many answers."),
    Flag("use-chat-template", bool, False, "Put prompts into the model's chat template; lengths include it."),
    Flag("random-input-len", positive_int, 1024, "random: tokens of a prompt."),
    Flag("random-output-len", positive_int, 128, "random: tokens of an answer."),
    Flag(
        "random-range-ratio", ratio, 1.0, "random: lengths are uniform between this share of the length and the length."
    ),
    Flag("random-prefix-len", count, 0, "random: tokens, the same in all prompts, before each."),
    Flag(
        "sharegpt-output-len",
        positive_int,
        None,
        "sharegpt: tokens of an answer; the default is the recorded answer's.",
    ),
    Flag("sonnet-input-len", positive_int, 550, "sonnet: tokens of a prompt."),
    Flag("sonnet-output-len", positive_int, 150, "sonnet: tokens of an answer."),
    Flag("sonnet-prefix-len", count, 200, "sonnet: tokens of the lines that all prompts begin with."),
    Flag("hf-subset", str, None, "hf: name of the subset."),
    Flag("hf-split", str, None, "hf: name of the split; the default is train, or the only one."),
    Flag("hf-output-len", positive_int, None, "hf: tokens of an answer; the default is the recorded answer's."),
    Flag("percentile-metrics", metric_names, ("ttft", "tpot", "itl"), f"Metrics to report: {', '.join(METRICS)}."),
    Flag("metric-percentiles", percentiles, (99.0,), "Percentiles to report, such as 50,90,99.9."),
    Flag("goodput", goodput_target, (), "Targets KEY:MILLISECONDS; goodput counts requests that meet all.", many="+"),
    Flag("profile", bool, False, "Start the server's profiler before the load and stop it after."),
    Flag("save-result", bool, False, "Write the result as JSON."),
    Flag("save-detailed", bool, False, "Write the result with every request's own figures."),
    Flag("plot", bool, False, "Write latency and throughput plots as PNG, and a page with both."),
    Flag("result-dir", str, None, "Folder of result and plots; the default is the working directory."),
    Flag("result-filename", str, None, "Name of the result's file; the default tells backend, rate, model and time."),
    Flag("metadata", metadata_entry, (), "KEY=VALUE pairs to keep in the result.", many="*"),
    Flag("disable-tqdm", bool, False, "No progress bar."),
)


def make_parser(prog: str, description: str | None = None) -> argparse.ArgumentParser:
    """A parser for FLAGS. Every flag has its dash and its underscore spelling; none can be abbreviated."""
    parser = argparse.ArgumentParser(prog=prog, description=description, allow_abbrev=False)
    for flag in FLAGS:
        spellings = dict.fromkeys((f"--{flag.name}", f"--{flag.dest}"))
        if flag.kind is bool:
            parser.add_argument(*spellings, dest=flag.dest, action="store_true", help=flag.help)
        else:
            parser.add_argument(
                *spellings,
                dest=flag.dest,
                type=flag.kind,
                default=flag.default,
                choices=flag.choices,
                nargs=flag.many,
                metavar=None if flag.choices else flag.kind.__name__.upper(),
                help=f"{flag.help} [{_shown(flag.default)}]",
            )
    return parser


def parse_flags(argv: Sequence[str] | None, prog: str, description: str | None = None) -> argparse.Namespace:
    """The arguments, checked. Exits with 2 and a message for what can not be run."""
    parser = make_parser(prog, description)
    options = parser.parse_args(argv)
    problem = find_problem(options)
    if problem:
        parser.error(problem)
    return options


def find_problem(options: argparse.Namespace) -> str | None:
    """Why these flags can not stand together, None when they can."""
    backend = options.backend
    end = _PATH_ENDS.get(backend, "completions")
    if not api_path(options).endswith(end):
        return f"--endpoint {options.endpoint}: the path of --backend {backend} ends in {end}"
    if backend in _WITHOUT_IGNORE_EOS and options.ignore_eos:
        return f"--ignore-eos: the protocol of {backend} has no such option"
    if backend in _WITHOUT_LOGPROBS and options.logprobs is not None:
        return f"--logprobs: the protocol of {backend} is measured without"
    if backend in _WITHOUT_BEST_OF and options.best_of != 1:
        return f"--best-of: the protocol of {backend} has no such option"
    if options.dataset_name != "random" and not options.dataset_path:
        return f"--dataset-name {options.dataset_name} needs --dataset-path"
    if options.dataset_name == "sonnet" and options.sonnet_prefix_len > options.sonnet_input_len:
        return "--sonnet-prefix-len must not be more than --sonnet-input-len"
    return None


def api_path(options: argparse.Namespace) -> str:
    """The path to post to: --endpoint, or the protocol's usual one where --endpoint was left as it is."""
    path: str = options.endpoint
    if path == COMPLETIONS_PATH:
        return USUAL_PATHS.get(options.backend, path)
    return path


def base_url(options: argparse.Namespace) -> str:
    """Scheme, host and port, without a slash at the end."""
    if options.base_url:
        return str(options.base_url).rstrip("/")
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"http://{host}:{options.port}"


def _shown(default: Any) -> str:
    """A default as the help shows it; percent signs would be argparse's."""
    if isinstance(default, tuple):
        return ",".join(f"{item:g}" if isinstance(item, float) else str(item) for item in default) or "none"
    return "none" if default is None else str(default)
