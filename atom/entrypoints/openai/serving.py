"""What every endpoint shares: the model's text side, the engine, limits and metrics.

Owns loading the text side (tokenizer, chat encoder and what was found out about it) without torch, names of the served
model, and keeping long work off the event loop. Knows no endpoint.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import Request

from atom.entrypoints.openai.answer_grammar.made import MadeGrammars
from atom.entrypoints.openai.auth import ApiKeys
from atom.entrypoints.openai.chat_encoders import ChatEncoder, load_chat_encoder
from atom.entrypoints.openai.chat_profile import ChatProfile, probe_chat_encoder, render_probe_prompt
from atom.entrypoints.openai.decoding import RequestDecodeError, decode
from atom.entrypoints.openai.endpoint import WorkInProgress
from atom.entrypoints.openai.errors import bad_request, model_not_found
from atom.entrypoints.openai.metrics import ServerMetrics
from atom.entrypoints.openai.prompt_encoding import PromptEncoder
from atom.entrypoints.openai.request_log import RequestLog
from atom.model_engine.engine_client import EngineClient
from atom.tokenizer import Tokenizer

if TYPE_CHECKING:
    from atom.config import Config
    from atom.model_engine.arg_utils import ServerConfig

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Work on more text than this (characters, tokens or bytes) leaves the event loop: tokenizing it takes milliseconds, the
# hop to a thread a tenth of one.
BACKGROUND_SIZE = 2_048
# Decoding a body takes a hundredth of that: 0.2 ms for so many bytes of messages.
DECODED_AT_ONCE = 16_384


@dataclass(frozen=True, slots=True)
class ChatModel:
    """How the model is spoken to: its encoder, and what was found out about it."""

    encoder: ChatEncoder
    profile: ChatProfile


@dataclass(frozen=True, slots=True)
class TextSide:
    """What the API process loads of a model. `chat` is None for a model without a chat template."""

    tokenizer: Tokenizer
    chat: ChatModel | None


def load_text_side(config: Config) -> TextSide:
    """Load the text side of a model, and find out how it chats; the log has the evidence. Raises ValueError."""
    tokenizer = Tokenizer.load(config.model_path, config.trust_remote_code)
    encoder = load_chat_encoder(config.model_path, config.chat_template, config.trust_remote_code)
    if encoder is None:
        logger.warning("%s has no chat template: there is /v1/completions, but no chat", config.model)
        return TextSide(tokenizer, None)
    profile = probe_chat_encoder(
        encoder, config.tool_call_parser, reasoning_ends_at_tool_call=config.reasoning_ends_at_tool_call
    )
    return TextSide(tokenizer, ChatModel(encoder, profile))


class ServingContext:
    """One served model. `engine` must be started by the first request: its info holds the limits.

    OSError: the file of --request-log can not be written.
    """

    def __init__(
        self,
        text: TextSide,
        engine: EngineClient,
        server: ServerConfig,
        *,
        served_model_names: Sequence[str],
        sampling_defaults: Mapping[str, float | int] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.tokenizer = text.tokenizer
        self.engine = engine
        self.server = server
        self.served_model_names = tuple(served_model_names)
        self.sampling_defaults = dict(sampling_defaults or {})
        self.chat_template_kwargs = dict(chat_template_kwargs or {})
        self.api_keys = ApiKeys(server.api_key)
        self.metrics = ServerMetrics(engine)
        self.work = WorkInProgress()
        self.request_log = None if server.request_log is None else RequestLog(server.request_log)
        self.is_draining = False
        self._chat = text.chat
        sample = "" if text.chat is None else render_probe_prompt(text.chat.encoder, text.chat.profile.needs)
        self.prompts = PromptEncoder(text.tokenizer, sample)
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="text")
        self.grammars = MadeGrammars(self._threads)

    @classmethod
    def of(cls, config: Config, server: ServerConfig, text: TextSide, engine: EngineClient) -> ServingContext:
        """The context of a configured, started engine."""
        return cls(
            text,
            engine,
            server,
            served_model_names=config.served_model_names,
            sampling_defaults=config.generation.given(),
            chat_template_kwargs=config.default_chat_template_kwargs,
        )

    @property
    def max_model_len(self) -> int:
        """Tokens of prompt and answer together."""
        return self.engine.info.max_model_len

    @property
    def vocab_size(self) -> int:
        """One more than the largest token id that the model takes."""
        return self.engine.info.vocab_size

    @property
    def empty_prompt_id(self) -> int:
        """What stands for an empty prompt when the tokenizer has no beginning-of-sequence token."""
        eos = self.tokenizer.eos_token_id
        return 0 if eos is None else eos

    def on_request(self, request: Request) -> None:
        """Called before a request with a body is handled; raises ApiError to refuse it. Nothing to do here."""

    def chat_model(self) -> ChatModel:
        """How to speak to the model. Raises ApiError 400 when it has no chat template."""
        if self._chat is None:
            raise bad_request("This model has no chat template; use /v1/completions, or start with --chat-template.")
        return self._chat

    @property
    def chat_template(self) -> str | None:
        """The text that prompts are rendered by."""
        return None if self._chat is None else self._chat.encoder.source

    def check_model(self, name: str | None) -> None:
        """Raise ApiError 404 unless the name is absent or served."""
        if name is not None and name not in self.served_model_names:
            raise model_not_found(name, self.served_model_names)

    def answer_model(self, name: str | None) -> str:
        """The model's name in an answer: the one that was asked for, else the first."""
        return name if name is not None else self.served_model_names[0]

    async def decode(self, model: Any, body: bytes) -> Any:
        """The body as an instance of a request model. Raises ApiError 400."""
        try:
            if len(body) <= DECODED_AT_ONCE:
                return decode(model, body)
            return await self.in_background(len(body), decode, model, body)
        except RequestDecodeError as error:
            raise bad_request(error.message, error.param) from None

    async def in_background(self, size: int, function: Callable[..., T], *arguments: Any) -> T:
        """`function(*arguments)`, in a thread when it works on more than a little text."""
        if size <= BACKGROUND_SIZE:
            return function(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def close(self) -> None:
        """Let go of threads and files."""
        if self.request_log is not None:
            self.request_log.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
