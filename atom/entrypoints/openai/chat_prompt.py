"""A conversation as a prompt, and as the pipeline that its answers go through.

Owns the way from messages, tools and template controls to the token ids, and to the grammar of what was promised.
Nothing is ever cut from a prompt. Knows no API, nor the engine, nor the shape of an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from atom.entrypoints.openai.chat_encoders import ChatTemplateError
from atom.entrypoints.openai.continuation import render_continued
from atom.entrypoints.openai.conversation import Conversation
from atom.entrypoints.openai.enforcement import enforced_grammar, wanted_answer
from atom.entrypoints.openai.errors import bad_request
from atom.entrypoints.openai.limits import encode_prompt
from atom.entrypoints.openai.messages_conversion import MessageError, convert_messages
from atom.entrypoints.openai.pipeline import AnswerPipeline
from atom.entrypoints.openai.tool_parser.stream import Tool
from atom.sampling_params import AnswerGrammar, SamplingParams
from atom.text.detokenizer import Detokenizer

if TYPE_CHECKING:
    from atom.entrypoints.openai.serving import ChatModel, ServingContext


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """The rendered prompt as text and ids, and what is needed to read the answers to it."""

    text: str
    token_ids: list[int]
    tools: tuple[Tool, ...]
    chat: ChatModel
    suppress_calls: bool
    parallel: bool
    num_earlier_calls: int
    continues: bool = False
    grammar: AnswerGrammar | None = None

    def enforced(self, sampling: SamplingParams) -> SamplingParams:
        """The sampling parameters of an answer to this prompt. Raises ApiError 400 for what no grammar can meet."""
        if self.grammar is None:
            return sampling
        try:
            return msgspec.structs.replace(sampling, grammar=self.grammar)
        except ValueError as error:
            raise bad_request(str(error), "ignore_eos") from None

    def new_pipeline(self, serving: ServingContext, sampling: SamplingParams) -> AnswerPipeline:
        """The pipeline of one answer."""
        return self.chat.profile.new_pipeline(
            serving.tokenizer,
            self.text,
            self.tools,
            stop_strings=sampling.stop_list,
            include_stop=sampling.include_stop_str_in_output,
            suppress_calls=self.suppress_calls,
            parallel=self.parallel,
            num_earlier_calls=self.num_earlier_calls,
            skip_special_tokens=sampling.skip_special_tokens,
            continues_text=self.continues,
            min_tokens=sampling.min_tokens,
        )

    def new_detokenizer(self, serving: ServingContext, sampling: SamplingParams) -> Detokenizer:
        """A detokenizer like the one of the pipeline."""
        shown = self.chat.profile.shown_special_ids(serving.tokenizer)
        return Detokenizer(serving.tokenizer, sampling.skip_special_tokens, self.continues, shown)


async def build_prompt(
    serving: ServingContext, convert: Callable[[], Conversation], num_bytes: int, *, may_exceed: bool = False
) -> ChatPrompt:
    """The prompt of the conversation that `convert` gives, of a request whose body had `num_bytes`.

    may_exceed: it may be longer than the context. Raises ApiError 400 for what can not be rendered or done.
    """
    chat = serving.chat_model()
    prompt, asked = await serving.in_background(num_bytes, _build, serving, chat, convert, may_exceed)
    wanted = wanted_answer(asked)
    if wanted is None:
        return prompt
    grammar = await enforced_grammar(serving, asked, wanted, prompt.text)
    # Without a tool to call, nothing in the answer is a call, whatever it looks like.
    return replace(prompt, grammar=grammar, tools=prompt.tools if wanted.tools else ())


def _build(
    serving: ServingContext, chat: ChatModel, convert: Callable[[], Conversation], may_exceed: bool
) -> tuple[ChatPrompt, Conversation]:
    asked = convert()
    controls = chat.profile.template_kwargs(
        thinking=asked.thinking,
        reasoning_effort=asked.reasoning_effort,
        tool_choice=asked.tool_choice,
        response_format=asked.response_format,
        chat_template_kwargs=asked.chat_template_kwargs,
        defaults=serving.chat_template_kwargs,
    )
    # A model that sees tools uses them: where no call may come of it, it does not see them.
    shown = None if asked.suppress_calls else asked.tools
    try:
        if asked.continues:
            text = render_continued(chat.encoder, chat.profile.needs, asked.messages, shown, controls)
        else:
            messages = convert_messages(asked.messages, chat.profile.needs)
            text = chat.encoder.render(messages, shown or None, **controls)
    except MessageError as error:
        raise bad_request(str(error), error.param) from None
    except ChatTemplateError as error:
        raise bad_request(str(error), "messages") from None
    encode = serving.prompts.encode
    token_ids = encode(text) if may_exceed else encode_prompt(encode, text, serving.max_model_len, "messages")
    functions = [tool["function"] for tool in asked.tools]
    prompt = ChatPrompt(
        text=text,
        token_ids=token_ids,
        tools=tuple(Tool(function["name"], function.get("parameters", {})) for function in functions),
        chat=chat,
        suppress_calls=asked.suppress_calls,
        parallel=asked.parallel,
        num_earlier_calls=asked.num_calls,
        continues=asked.continues,
    )
    return prompt, asked
