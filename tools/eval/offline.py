"""lm-eval's model `atom`, the offline engine: `python -m tools.eval.offline --model atom --model_args model=NAME ...`.

Owns: lm-eval's requests as prompts and sampling parameters of `LLMEngine`. Does not know: tasks, scores, servers.
Every flag and subcommand of lm-eval works; `--model_args` are the engine's settings (docs/settings.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lm_eval.models  # noqa: F401 - registers its own, which it does by itself only while there are none
from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model

from atom import LLMEngine, SamplingParams

_DEFAULT_ANSWER_TOKENS = 256
_LM_EVAL_DEVICE = "cuda:0"
"""What lm-eval says when nobody chose a device, also where there is no GPU."""

Scored = tuple[tuple[str, str], list[int], list[int]]
"""((context, continuation), context ids, continuation ids)"""


@register_model("atom")
class OfflineLM(TemplateLM):
    """`LLMEngine` behind lm-eval's interface. All requests of a task are given to the engine at once."""

    def __init__(
        self,
        model: str,
        batch_size: int = 1,
        max_batch_size: int | None = None,
        device: str | None = None,
        **settings: Any,
    ) -> None:
        """ValueError for a batch size: the engine's scheduler makes its own batches (`max_num_seqs` bounds them)."""
        super().__init__()
        if int(batch_size) != 1 or max_batch_size is not None:
            raise ValueError("the engine batches by itself; say max_num_seqs=N in --model_args to bound it")
        if device in (None, _LM_EVAL_DEVICE):
            device = "auto"
        self.engine = LLMEngine(model, device=device, **settings)

    @property
    def eot_token_id(self) -> int:
        """The context of a request without one."""
        return int(self.engine.config.eos_token_ids[0])

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: Any) -> list[int]:
        """Token ids; special tokens are added only when asked for, as lm-eval's other models do for a decoder."""
        return self.engine.tokenizer.encode(string, add_special_tokens=bool(add_special_tokens))

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """The answer to every request, cut before the first of its stop strings."""
        prompts = [self.tok_encode(request.args[0]) for request in requests]
        return [
            answer["text"]
            for answer in self.engine.generate(prompts, [_sampling(request.args[1]) for request in requests])
        ]

    def _loglikelihood_tokens(self, requests: list[Scored], **kwargs: Any) -> list[tuple[float, bool]]:
        """(log probability of the continuation, whether greedy decoding would give it) of every request."""
        prompts = [[*context, *continuation] for _, context, continuation in requests]
        answers = self.engine.generate(prompts, SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=1))
        scores = []
        for (_, context, _), answer in zip(requests, answers, strict=True):
            entries = answer["prompt_logprobs"][len(context) :]
            scores.append((sum(entry.logprob for entry in entries), all(entry.rank == 1 for entry in entries)))
        return scores

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Perplexity of whole documents is not offered."""
        raise NotImplementedError("this model scores continuations, not whole documents (loglikelihood_rolling)")


def _sampling(asked: dict[str, Any]) -> SamplingParams:
    """lm-eval's generation_kwargs as sampling parameters; ValueError for a key that has no counterpart."""
    left = dict(asked)
    stops: str | Sequence[str] = left.pop("until", ())
    temperature = float(left.pop("temperature", 0.0))
    if not left.pop("do_sample", True):
        temperature = 0.0
    max_tokens = int(left.pop("max_gen_toks", _DEFAULT_ANSWER_TOKENS))
    if left:
        raise ValueError(f"generation_kwargs that the offline engine does not know: {', '.join(sorted(left))}")
    return SamplingParams(
        temperature=temperature, max_tokens=max_tokens, stop_strings=tuple([stops] if isinstance(stops, str) else stops)
    )


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
