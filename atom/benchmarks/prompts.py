"""Prompts of an exact length, and how a prompt's length is counted.

Owns the tokenizer of the benchmark, the chat template around a prompt, and random text. Does not know datasets' files.
Lengths are what the server will count: with the tokenizer's own first tokens and, where asked for, the chat template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from atom import builtin_model
from atom.entrypoints.openai.chat_encoders import ChatEncoder, load_chat_encoder
from atom.tokenizer import Tokenizer, TokenizerError

_TOKENIZER_FILES = ["*.json", "*.jinja", "*.model", "*.txt", "*.py"]
_ENOUGH_WORDS = 20
_TRIAL_WORDS = 8
_MAX_ATTEMPTS = 20
_SHARE_OF_STOPS = 0.2


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A request to send. Lengths are tokens; output_len is what will be asked for.

    asked_len: the length that the prompt should have by the flags, where they say one.
    """

    prompt: str
    prompt_len: int
    output_len: int
    asked_len: int | None = None


class PromptWriter:
    """What is sent for a piece of text, and how many tokens the server will count for it.

    encoder: the chat template, None for text as it is. sends_messages: the server renders the template, so the text
    itself is sent.
    """

    def __init__(self, tokenizer: Tokenizer, encoder: ChatEncoder | None = None, sends_messages: bool = False) -> None:
        self.tokenizer = tokenizer
        self._encoder = encoder
        self._sends_messages = sends_messages

    def write(self, text: str) -> tuple[str, int]:
        """The prompt to send and its length."""
        rendered = self._render(text)
        return (text if self._sends_messages else rendered), len(self._encode([rendered])[0])

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """The lengths of several texts as prompts."""
        return [len(ids) for ids in self._encode([self._render(text) for text in texts])]

    def _render(self, text: str) -> str:
        return self._encoder.render([{"role": "user", "content": text}]) if self._encoder else text

    def _encode(self, prompts: list[str]) -> list[list[int]]:
        # A server adds no first token to a prompt that its own template has written.
        return self.tokenizer.encode_batch(prompts, not (self._encoder and self._sends_messages))


class RandomText:
    """Text of random words that has exactly the length asked for.

    Words are drawn from the vocabulary, encoded, cut at the wanted number of tokens and decoded; since tokenizers do
    not promise that this text is encoded the same way again, it is counted, and drawn anew where the count differs.
    Text i depends on `seed` and i alone. Letters, spaces and full stops can spell no special token.
    """

    def __init__(self, writer: PromptWriter, seed: int) -> None:
        self._writer = writer
        self._seed = seed
        self._words = letter_words(writer.tokenizer)
        trial = " ".join(self._words[:_TRIAL_WORDS])
        self._overhead = writer.lengths([trial])[0] - len(writer.tokenizer.encode(trial, add_special_tokens=False))

    def prefix(self, length: int) -> str:
        """A text for all texts to begin with, whose `length` tokens stay the same whatever word follows.

        Where the tokenizer allows none, the last try, which is near it.
        """
        generator = self._generator(0)
        tokenizer = self._writer.tokenizer
        text = ""
        for attempt in range(_MAX_ATTEMPTS if length else 0):
            text = self._cut([self._draw(length, generator, attempt)], [length])[0]
            ids = tokenizer.encode(text, add_special_tokens=False)
            longer = tokenizer.encode(self._draw(1, generator, 0, text), add_special_tokens=False)
            if len(ids) == length and longer[:length] == ids:
                break
        return text

    def texts(self, lengths: Sequence[int], prefix: str = "", first_index: int = 0) -> list[str]:
        """One text for each length in tokens, with `prefix` and template in it. `first_index`: the first text's i.

        A length that can not be met, since the template alone is longer, is met as nearly as possible; the caller
        counts. No text is empty.
        """
        generators = [self._generator(1, first_index + i) for i in range(len(lengths))]
        texts = [""] * len(lengths)
        wanted = [max(length - self._overhead, 1) for length in lengths]
        pending = list(range(len(lengths)))
        for attempt in range(_MAX_ATTEMPTS):
            drawn = [self._draw(wanted[i], generators[i], attempt, prefix) for i in pending]
            for i, text in zip(pending, self._cut(drawn, [wanted[i] for i in pending]), strict=True):
                texts[i] = text if text.strip() else self._words[0]
            counted = self._writer.lengths([texts[i] for i in pending])
            wrong = [(i, n) for i, n in zip(pending, counted, strict=True) if n != lengths[i]]
            if not wrong:
                break
            for i, n in wrong:
                wanted[i] = max(wanted[i] + lengths[i] - n, 1)
            pending = [i for i, _ in wrong]
        return texts

    def _generator(self, *key: int) -> np.random.Generator:
        return np.random.default_rng((self._seed, *key))

    def _draw(self, num_tokens: int, generator: np.random.Generator, attempt: int, prefix: str = "") -> str:
        """Words enough for `num_tokens`. After a first attempt some end in a full stop, which shifts what is cut."""
        words = [self._words[i] for i in generator.integers(len(self._words), size=num_tokens)]
        if attempt:
            stops = generator.random(num_tokens) < _SHARE_OF_STOPS
            words = [f"{word}." if stop else word for word, stop in zip(words, stops, strict=True)]
        return (prefix if prefix.endswith(" ") or not prefix else prefix + " ") + " ".join(words)

    def _cut(self, texts: list[str], lengths: list[int]) -> list[str]:
        """The beginnings of `texts` that have so many tokens."""
        tokenizer = self._writer.tokenizer
        encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
        return [
            tokenizer.decode(ids[:length], skip_special_tokens=False)
            for ids, length in zip(encoded, lengths, strict=True)
        ]


def letter_words(tokenizer: Tokenizer) -> list[str]:
    """The words in a vocabulary: tokens of letters alone, no special token among them.

    Those that begin with a space, which are one token each in a text, where there are enough; otherwise those of ASCII
    letters; otherwise all. Raises TokenizerError when there is none.
    """
    found: dict[str, bool] = {}
    for token_id in range(tokenizer.vocab_size):
        if token_id not in tokenizer.special_ids:
            text = tokenizer.token_bytes(token_id).decode("utf-8", "replace")
            word = text.removeprefix(" ")
            if word.isalpha():
                found[word] = found.get(word, False) or word != text
    ascii_words = [word for word in found if word.isascii()]
    pools = ([word for word in ascii_words if found[word]], ascii_words, list(found))
    words = next((pool for pool in pools if len(pool) >= _ENOUGH_WORDS), pools[-1])
    if not words:
        raise TokenizerError("the tokenizer has no token of letters: it can not write random prompts")
    return words


def find_tokenizer(name: str) -> tuple[Path, Path | None]:
    """The folder of a tokenizer, and the chat template that its name asks for (see builtin_model), if any.

    name: a folder, a built-in model, or an id of the hub, of which only the tokenizer's files are fetched. Raises
    TokenizerError.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder, None
    if builtin_model.is_builtin(name):
        found = builtin_model.resolve(name)
        return found.path, found.chat_template
    try:
        import huggingface_hub  # takes 0.2 s, and only an id of the hub needs it

        return Path(huggingface_hub.snapshot_download(name, allow_patterns=_TOKENIZER_FILES)), None
    except Exception as error:  # the hub's client raises its own, httpx's and the operating system's errors
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise TokenizerError(
            f"no tokenizer for {name}: it is no folder here, and the Hugging Face hub does not give it ({reason})."
            " Give --tokenizer a folder, or atom-tiny."
        ) from error


def load_prompt_writer(
    name: str, *, use_chat_template: bool, sends_messages: bool, trust_remote_code: bool = False
) -> PromptWriter:
    """The writer for a tokenizer by name. Raises TokenizerError, also for a missing chat template."""
    folder, template = find_tokenizer(name)
    tokenizer = Tokenizer.load(folder, trust_remote_code)
    if not use_chat_template:
        return PromptWriter(tokenizer, None, sends_messages)
    encoder = load_chat_encoder(folder, template, trust_remote_code)
    if encoder is None:
        raise TokenizerError(f"--use-chat-template: {name} has no chat template")
    return PromptWriter(tokenizer, encoder, sends_messages)
