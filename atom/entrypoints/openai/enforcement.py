"""What a conversation's answer is held to: calls that must come, JSON of a schema, arguments of strict tools.

Owns what a request's wishes mean for the grammar of its answer, and the refusal of those that no grammar can meet.
Knows neither how a grammar is written nor the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from atom.entrypoints.openai.answer_grammar.answers import Speech, Wanted
from atom.entrypoints.openai.answer_grammar.calls import ToolSchema
from atom.entrypoints.openai.answer_grammar.schema_tree import SchemaError
from atom.entrypoints.openai.chat_profile import ChatProfile
from atom.entrypoints.openai.conversation import Conversation, EnforcedCall, EnforcedJson
from atom.entrypoints.openai.errors import ApiError, bad_request, shorten
from atom.entrypoints.openai.reasoning_dialects import begins_inside
from atom.sampling_params import AnswerGrammar
from atom.tokenizer import Tokenizer

if TYPE_CHECKING:
    from atom.entrypoints.openai.serving import ServingContext

MOST_CHARACTERS = 500  # of what is said about a schema, which may quote it
_ANY_OBJECT: dict[str, Any] = {"type": "object"}


def wanted_answer(asked: Conversation) -> Wanted | None:
    """What the answer must be like; None when it may be anything. Raises ApiError 400."""
    call = next((wish for wish in asked.enforced if isinstance(wish, EnforcedCall)), None)
    output = next((wish for wish in asked.enforced if isinstance(wish, EnforcedJson)), None)
    if asked.continues and asked.enforced:
        param = asked.enforced[0].param
        raise bad_request(
            f"{param}: the last turn begins the answer, and such an answer can not be held to a grammar", param
        )
    functions = [tool["function"] for tool in asked.tools]
    is_strict = any(function.get("strict") for function in functions)
    if call is None and output is None and (not is_strict or asked.suppress_calls):
        return None
    if call is not None:
        _check_call(call, [function["name"] for function in functions])
    tools = [
        ToolSchema(
            f"tools[{place}]",
            function["name"],
            function.get("parameters"),
            # A call that has to come is held to its schema; one that need not only where its tool asks for that.
            is_free=call is None and not function.get("strict"),
        )
        for place, function in enumerate(functions)
        if not asked.suppress_calls and (call is None or call.name in (None, function["name"]))
    ]
    schema = None
    if output is not None and call is None:
        schema = _ANY_OBJECT if output.schema is None else output.schema
    return Wanted(
        tools=tuple(tools),
        must_call=call is not None,
        parallel=asked.parallel,
        num_earlier_calls=asked.num_calls,
        json=schema,
    )


def _check_call(call: EnforcedCall, declared: Sequence[str]) -> None:
    if call.name is not None and call.name not in declared:
        listed = ", ".join(declared) or "none"
        raise bad_request(f"{call.param} names {call.name!r}; declared tools: {listed}", call.param)
    if not declared:
        raise bad_request(f"{call.param} asks for a call, but no tools are declared", call.param)


async def enforced_grammar(serving: ServingContext, asked: Conversation, wanted: Wanted, prompt: str) -> AnswerGrammar:
    """The grammar of the answers to `prompt`. Raises ApiError 400 that names the keyword which is not supported."""
    profile, tokenizer = serving.chat_model().profile, serving.tokenizer
    end_ids = serving.engine.info.eos_token_ids
    try:
        speech = speech_of(profile, tokenizer, prompt, end_ids, continues=asked.continues)
        text = await serving.grammars.get(speech, wanted)
    except SchemaError as error:
        raise _refusal(asked, str(error)) from None
    shown = profile.shown_special_ids(tokenizer).difference(end_ids)
    return AnswerGrammar(text, tuple(sorted(shown)))


def speech_of(
    profile: ChatProfile, tokenizer: Tokenizer, prompt: str, end_ids: Sequence[int], *, continues: bool = False
) -> Speech:
    """How the model answers a prompt. continues: the prompt ends inside the answer's text."""
    content = profile.format.writing_of(profile.variant).content if profile.format else "{text}"
    opening = content.partition("{text}")[0]
    return Speech(
        format=profile.format,
        variant=profile.variant,
        dialect=profile.dialect,
        begins_thinking=begins_inside(profile.dialect, prompt),
        is_inside_content=bool(opening) and (continues or prompt.endswith(opening)),
        end_texts=tuple(filter(None, (tokenizer.id_to_token(token_id) for token_id in end_ids))),
    )


def _refusal(asked: Conversation, message: str) -> ApiError:
    params = [wish.param for wish in asked.enforced]
    param = "tools" if message.startswith("tools[") or not params else params[-1]
    message = shorten(message, MOST_CHARACTERS)
    return bad_request(f"{param}: {message}" if param != "tools" else message, param)
