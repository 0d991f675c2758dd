"""What clients send becomes what templates read; what can not, is refused with the field's name."""

from __future__ import annotations

from typing import Any

import pytest

from atom.entrypoints.openai.chat_encoders import JinjaChatEncoder
from atom.entrypoints.openai.messages_conversion import MessageError, TemplateNeeds, convert_messages
from atom.entrypoints.openai.template_needs import probe_needs


def call(arguments: Any = '{"city": "Ulm"}', call_id: str | None = "c1", name: str = "get_weather") -> dict[str, Any]:
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return made if call_id is None else {"id": call_id, **made}


def calling(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": list(calls), **more}


def test_content_parts_are_joined_with_nothing_between() -> None:
    parts = [{"type": "text", "text": "PART-A"}, {"type": "text", "text": "PART-B\n"}]
    assert convert_messages([{"role": "user", "content": parts}]) == [{"role": "user", "content": "PART-APART-B\n"}]
    assert convert_messages([{"role": "user", "content": []}])[0]["content"] == ""
    refusal = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    assert convert_messages([refusal])[0]["content"] == "No."


def test_content_goes_in_as_parts_where_the_template_wants_them() -> None:
    needs = TemplateNeeds(content_parts=True)
    assert convert_messages([{"role": "user", "content": "x"}], needs)[0]["content"] == [{"type": "text", "text": "x"}]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"type": "image_url", "image_url": {"url": "data:,x"}}, "does not support images"),
        ({"type": "input_image"}, "does not support images"),
        ({"type": "input_audio"}, "'input_audio' are not supported"),
        ({"type": "text"}, r"text must be a string"),
        (3, "None are not supported"),
    ],
)
def test_parts_that_are_no_text_are_refused(part: Any, message: str) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "b"}, part]}]
    with pytest.raises(MessageError, match=message) as caught:
        convert_messages(messages)
    assert caught.value.param == "messages[1].content[1]"
    with pytest.raises(MessageError, match="string or a list"):
        convert_messages([{"role": "user", "content": 3}])


def test_arguments_reach_the_template_as_a_mapping_or_as_text() -> None:
    for given in ('{"city": "Ulm"}', {"city": "Ulm"}):
        mapping = convert_messages([calling(call(given))])[0]["tool_calls"][0]
        assert mapping == {
            "id": "c1",
            "type": "function",
            "function": {"name": "get_weather", "arguments": {"city": "Ulm"}},
        }
        text = convert_messages([calling(call(given))], TemplateNeeds(string_arguments=True))[0]
        assert text["tool_calls"][0]["function"]["arguments"] == '{"city": "Ulm"}'
    exact = '{"city":  "Ulm"}'
    kept = convert_messages([calling(call(exact))], TemplateNeeds(string_arguments=True))[0]
    assert kept["tool_calls"][0]["function"]["arguments"] == exact
    for empty in ("", None, "null"):
        assert convert_messages([calling(call(empty))])[0]["tool_calls"][0]["function"]["arguments"] == {}


@pytest.mark.parametrize("arguments", ["{", "[1]", "3", 3, '{"a": NaN}', '{"a": "\\ud800"}', '{"a": 1e999}'])
def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    with pytest.raises(MessageError) as caught:
        convert_messages([{"role": "user", "content": "x"}, calling(call(), call(arguments))])
    assert caught.value.param == "messages[1].tool_calls[1].function.arguments"


@pytest.mark.parametrize("arguments", ['{"a": "\\ud800"}', '{"a": 1e999}'])
def test_what_only_text_can_hold_comes_back_where_arguments_are_text(arguments: str) -> None:
    [turn] = convert_messages([calling(call(arguments))], TemplateNeeds(string_arguments=True))
    assert turn["tool_calls"][0]["function"]["arguments"] == arguments


@pytest.mark.parametrize("arguments", ["{", "[1]", "3"])
def test_arguments_that_a_format_passes_on_come_back(arguments: str) -> None:
    for as_text, shown in ((False, {"raw": arguments}), (True, arguments)):
        needs = TemplateNeeds(string_arguments=as_text, any_arguments=True)
        [turn] = convert_messages([calling(call(arguments))], needs)
        assert turn["tool_calls"][0]["function"]["arguments"] == shown
    with pytest.raises(MessageError):
        convert_messages([calling(call(3))], TemplateNeeds(any_arguments=True))


@pytest.mark.parametrize("content", [None, "", "absent", []])
@pytest.mark.parametrize(("style", "shown"), [("empty", ""), ("null", None), ("absent", "absent")])
def test_a_turn_without_content(content: Any, style: Any, shown: Any) -> None:
    message = calling(call()) if content == "absent" else calling(call(), content=content)
    converted = convert_messages([message], TemplateNeeds(call_content=style))[0]
    assert converted.get("content", "absent") == shown


def test_an_empty_list_of_calls_is_no_call() -> None:
    plain = {"role": "assistant", "content": "Hello"}
    assert convert_messages([{**plain, "tool_calls": []}]) == convert_messages([plain])


def test_missing_ids_are_made_up_and_results_find_their_call() -> None:
    messages = [
        calling(call(call_id=None, name="a"), call(call_id="", name="b"), call(call_id="x", name="c")),
        {"role": "tool", "content": "1"},
        {"role": "tool", "content": "3", "tool_call_id": "x"},
        {"role": "tool", "content": "2", "tool_call_id": None},
    ]
    turn, *results = convert_messages(messages)
    assert [made["id"] for made in turn["tool_calls"]] == ["call_0", "call_1", "x"]
    found = [(result["tool_call_id"], result["name"], result["content"]) for result in results]
    assert found == [("call_0", "a", "1"), ("x", "c", "3"), ("call_1", "b", "2")]


def test_ids_of_a_style() -> None:
    messages = [
        calling(call(call_id="call_abc"), call(call_id="A1b2C3d4E")),
        {"role": "tool", "tool_call_id": "call_abc", "content": ""},
    ]
    turn, result = convert_messages(messages, TemplateNeeds(call_ids="short"))
    short = turn["tool_calls"][0]["id"]
    assert len(short) == 9 and short.isalnum() and result["tool_call_id"] == short
    assert turn["tool_calls"][1]["id"] == "A1b2C3d4E"
    own = calling(call(call_id="functions.other:0"))
    first, turn, result = convert_messages([own, *messages], TemplateNeeds(call_ids="functions"))
    assert first["tool_calls"][0]["id"] == "functions.other:0"
    assert [made["id"] for made in turn["tool_calls"]] == ["functions.get_weather:1", "functions.get_weather:2"]
    assert result["tool_call_id"] == "functions.get_weather:1"


def test_reasoning_of_earlier_turns_is_kept_under_every_name() -> None:
    for name in ("reasoning_content", "reasoning", "thinking"):
        converted = convert_messages([{"role": "assistant", "content": "a", name: "NOTE"}])[0]
        assert converted["reasoning_content"] == converted["reasoning"] == converted["thinking"] == "NOTE"
    assert "reasoning_content" not in convert_messages([{"role": "assistant", "content": "a", "reasoning": None}])[0]


def test_reasoning_and_content_of_a_calling_turn_can_be_taken_apart() -> None:
    turn = calling(call(), content="Now.", reasoning_content="hm")
    spoken, made = convert_messages([turn], TemplateNeeds(apart=True))
    assert spoken == {"role": "assistant", "content": "Now."}
    assert (made["content"], made["thinking"]) == ("", "hm")


SYSTEM = [
    {"role": "system", "content": "A"},
    {"role": "developer", "content": "B"},
    {"role": "user", "content": "Hi"},
    {"role": "system", "content": "C"},
]


def test_roles_that_a_template_lacks() -> None:
    roles = [message["role"] for message in convert_messages(SYSTEM)]
    assert roles == ["system", "system", "user", "system"]
    kept = convert_messages(SYSTEM, TemplateNeeds(has_developer=True))
    assert kept[1]["role"] == "developer"
    merged = convert_messages(SYSTEM, TemplateNeeds(late_system=False))
    assert merged == [{"role": "system", "content": "A\n\nB\n\nC"}, {"role": "user", "content": "Hi"}]
    into_user = convert_messages(SYSTEM, TemplateNeeds(has_system=False))
    assert into_user == [{"role": "user", "content": "A\n\nB\n\nC\n\nHi"}]
    assert convert_messages(SYSTEM[:1], TemplateNeeds(has_system=False)) == [{"role": "user", "content": "A"}]


def test_the_request_is_not_changed() -> None:
    message = calling(call({"a": [1]}), content=[{"type": "text", "text": "x"}])
    copy = {**message, "tool_calls": [dict(message["tool_calls"][0])]}
    convert_messages([message], TemplateNeeds(late_system=False, has_system=False, content_parts=True))
    assert message == copy


ROLES = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
CALLS = "{% for m in messages %}{% for c in m.tool_calls or [] %}<call>%s{% endfor %}{{ m.content or '' }}{% endfor %}"


@pytest.mark.parametrize(
    ("template", "needs"),
    [
        (ROLES + CALLS.replace("%s", "{{ c.function.arguments | tojson }}"), TemplateNeeds()),
        (ROLES + CALLS.replace("%s", "{{ '' + c.function.arguments }}"), TemplateNeeds(string_arguments=True)),
        (ROLES + CALLS.replace("%s", "{{ c.function.arguments }}"), TemplateNeeds(string_arguments=True)),
        (
            ROLES + "{% set known = 'developer' %}" + CALLS.replace("%s", "{{ c.function.arguments | tojson }}"),
            TemplateNeeds(has_developer=True),
        ),
        (
            ROLES
            + CALLS.replace(
                "%s", "{{ c.function.arguments | tojson }}{{ raise_exception('id') if c.id | length != 9 }}"
            ),
            TemplateNeeds(call_ids="short"),
        ),
        (
            "{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].function.arguments | tojson }}"
            "{% else %}{{ m.content }}{% endif %}{% endfor %}",
            TemplateNeeds(call_content="null"),
        ),
        (
            "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}"
            "{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}{% endfor %}",
            TemplateNeeds(content_parts=True),
        ),
        (
            "{% for m in messages %}{{ raise_exception('no') if m.role == 'system' and not loop.first }}{{ m.content }}"
            "{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}{% endfor %}",
            TemplateNeeds(late_system=False),
        ),
        (
            "{% for m in messages %}{{ raise_exception('no') if m.role == 'system' }}{{ m.content }}"
            "{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}{% endfor %}",
            TemplateNeeds(has_system=False),
        ),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", TemplateNeeds()),
    ],
)
def test_needs_are_found_out_by_rendering(template: str, needs: TemplateNeeds) -> None:
    assert probe_needs(JinjaChatEncoder({"default": template}, {}, "test")) == needs
