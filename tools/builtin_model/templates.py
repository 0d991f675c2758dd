"""Builds the seven Jinja chat templates of atom-tiny: `python -m tools.builtin_model.templates [--check]`.

Owns: the Jinja text. Shared parts are written once here; every emitted file stands alone, as servers expect.
Does not know: how training data is rendered (render.py); a test proves that the two agree byte for byte.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tools.builtin_model.wire import DSML, FORMAT_NAMES, FORMATS

TEMPLATE_DIR = Path(__file__).resolve().parents[2] / "atom" / "builtin_model" / "chat_templates"

_MACROS = r"""
{%- macro text(content) -%}
    {%- if content is string -%}
        {{- content -}}
    {%- elif content is iterable and content is not mapping -%}
        {%- for part in content -%}
            {%- if part is string -%}
                {{- part -}}
            {%- elif part.text is defined -%}
                {{- part.text -}}
            {%- else -%}
                {{- raise_exception('atom-tiny reads text only.') -}}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{%- macro raw_or_json(value) -%}
    {{- value if value is string else value | tojson -}}
{%- endmacro -%}
{%- macro type_of(schema, defs) -%}
    {%- if schema is not mapping -%}
        {{- 'any' -}}
    {%- elif schema['$ref'] -%}
        {{- type_of(defs[schema['$ref'].split('/')[-1]], {}) -}}
    {%- elif schema['enum'] -%}
        {%- for value in schema['enum'] -%}
            {{- ('' if loop.first else '|') ~ raw_or_json(value) -}}
        {%- endfor -%}
    {%- elif schema['const'] is defined -%}
        {{- raw_or_json(schema['const']) -}}
    {%- elif schema['anyOf'] or schema['oneOf'] -%}
        {%- for option in schema['anyOf'] or schema['oneOf'] -%}
            {{- ('' if loop.first else '|') ~ type_of(option, defs) -}}
        {%- endfor -%}
    {%- elif schema['type'] is string -%}
        {{- schema['type'] -}}
        {%- if schema['type'] == 'array' and schema['items'] is mapping -%}
            {{- ' of ' ~ type_of(schema['items'], defs) -}}
        {%- endif -%}
    {%- else -%}
        {{- schema['type'] | join('|') if schema['type'] else 'any' -}}
    {%- endif -%}
{%- endmacro -%}
{%- macro fields(schema, defs, dash) -%}
    {%- if schema is mapping and dash | length <= 3 -%}
        {%- if schema['$ref'] -%}
            {{- fields(defs[schema['$ref'].split('/')[-1]], defs, dash) -}}
        {%- elif schema['properties'] -%}
            {%- for name, field in schema['properties'].items() -%}
                {{- '\n' ~ dash ~ name ~ ('' if name in (schema['required'] or []) else '?') -}}
                {{- ': ' ~ type_of(field, defs) -}}
                {%- if field is mapping and field['description'] -%}
                    {{- ', ' ~ field['description'] | replace('\n', ' ') -}}
                {%- endif -%}
                {{- fields(field, defs, dash ~ '-') -}}
            {%- endfor -%}
        {%- elif schema['items'] is mapping -%}
            {{- fields(schema['items'], defs, dash) -}}
        {%- else -%}
            {%- for option in schema['anyOf'] or schema['oneOf'] or [] -%}
                {{- fields(option, defs, dash) -}}
            {%- endfor -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro -%}
"""

_MAPPING_ONLY = r"""{%- set arguments = function.arguments or {} -%}
        {%- if arguments is not mapping -%}
            {{- raise_exception('The arguments of a tool call must be an object here, not a string.') -}}
        {%- endif -%}"""
_LOOP = r"""
    {%- for call in tool_calls -%}
        {%- set function = call.function if call.function is defined else call -%}
        """

_QWEN = (
    _LOOP
    + _MAPPING_ONLY
    + r"""
        {{- '<tool_call>\n<function=' ~ function.name ~ '>\n' -}}
        {%- for key, value in arguments.items() -%}
            {{- '<parameter=' ~ key ~ '>\n' ~ raw_or_json(value) ~ '\n</parameter>\n' -}}
        {%- endfor -%}
        {{- '</function>\n</tool_call>' -}}
    {%- endfor -%}"""
)
_HERMES = (
    _LOOP
    + r"""{{- '<tool_call>\n{"name": ' ~ function.name | tojson -}}
        {{- ', "arguments": ' ~ raw_or_json(function.arguments or {}) ~ '}\n</tool_call>' -}}
    {%- endfor -%}"""
)
_GLM = (
    _LOOP
    + _MAPPING_ONLY
    + r"""
        {{- '<tool_call>' ~ function.name ~ '\n' -}}
        {%- for key, value in arguments.items() -%}
            {{- '<arg_key>' ~ key ~ '</arg_key>\n<arg_value>' ~ raw_or_json(value) ~ '</arg_value>\n' -}}
        {%- endfor -%}
        {{- '</tool_call>' -}}
    {%- endfor -%}"""
)
_KIMI = (
    r"""
    {{- '<|tool_calls_section_begin|>' -}}"""
    + _LOOP
    + r"""{%- set id = 'functions.' ~ function.name ~ ':' ~ (first_index + loop.index0) -%}
        {%- if call.id is string and call.id.startswith('functions.') -%}
            {%- set id = call.id -%}
        {%- endif -%}
        {{- '<|tool_call_begin|>' ~ id ~ '<|tool_call_argument_begin|>' -}}
        {{- raw_or_json(function.arguments or {}) ~ '<|tool_call_end|>' -}}
    {%- endfor -%}
    {{- '<|tool_calls_section_end|>' -}}"""
)
_KIMI_K3 = (
    r"""
    {{- '<|open|>tools<|sep|>' -}}"""
    + _LOOP
    + _MAPPING_ONLY
    + r"""
        {{- '<|open|>call tool="' ~ attribute(function.name) ~ '" index="' ~ loop.index ~ '"<|sep|>' -}}
        {%- for key, value in arguments.items() -%}
            {%- if value is none -%}{%- set type = 'null' -%}
            {%- elif value is boolean -%}{%- set type = 'boolean' -%}
            {%- elif value is number -%}{%- set type = 'number' -%}
            {%- elif value is string -%}{%- set type = 'string' -%}
            {%- elif value is mapping -%}{%- set type = 'object' -%}
            {%- else -%}{%- set type = 'array' -%}
            {%- endif -%}
            {{- '<|open|>argument key="' ~ attribute(key) ~ '" type="' ~ type ~ '"<|sep|>' -}}
            {{- raw_or_json(value) ~ '<|close|>argument<|sep|>' -}}
        {%- endfor -%}
        {{- '<|close|>call<|sep|>' -}}
    {%- endfor -%}
    {{- '<|close|>tools<|sep|>' -}}"""
)
_MINIMAX = (
    r"""
    {{- '<minimax:tool_call>\n' -}}"""
    + _LOOP
    + _MAPPING_ONLY
    + r"""
        {{- '<invoke name="' ~ function.name ~ '">\n' -}}
        {%- for key, value in arguments.items() -%}
            {{- '<parameter name="' ~ key ~ '">' ~ raw_or_json(value) ~ '</parameter>\n' -}}
        {%- endfor -%}
        {{- '</invoke>\n' -}}
    {%- endfor -%}
    {{- '</minimax:tool_call>' -}}"""
)
_DSML = (
    r"""
    {{- '<|D|tool_calls>\n' -}}"""
    + _LOOP
    + _MAPPING_ONLY
    + r"""
        {{- '<|D|invoke name="' ~ function.name ~ '">\n' -}}
        {%- for key, value in arguments.items() -%}
            {{- '<|D|parameter name="' ~ key ~ '" string="' ~ ('true' if value is string else 'false') ~ '">' -}}
            {{- raw_or_json(value) ~ '</|D|parameter>\n' -}}
        {%- endfor -%}
        {{- ('' if arguments else '\n') ~ '</|D|invoke>\n' -}}
    {%- endfor -%}
    {{- '</|D|tool_calls>' -}}"""
).replace("|D|", DSML)

_CALLS = {
    "qwen": _QWEN,
    "hermes": _HERMES,
    "glm": _GLM,
    "kimi": _KIMI,
    "kimi_k3": _KIMI_K3,
    "minimax": _MINIMAX,
    "dsml": _DSML,
}

_SYSTEM = r"""
{%- if not messages -%}
    {{- raise_exception('There are no messages.') -}}
{%- endif -%}
{%- set state = namespace(last_user=-1, num_calls=0) -%}
{%- for message in messages -%}
    {%- if message.role == 'user' -%}
        {%- set state.last_user = loop.index0 -%}
    {%- endif -%}
{%- endfor -%}
{%- set head = text(messages[0].content) if messages[0].role in ['system', 'developer'] else '' -%}
{%- if head or tools -%}
    {{- '@SYSTEM@' ~ head -}}
    {%- if tools -%}
        {{- ('\n\n' if head else '') ~ '# Tools' -}}
        {%- for tool in tools -%}
            {%- set function = tool.function if tool.function is defined else tool -%}
            {%- set schema = function.parameters or {} -%}
            {{- '\n' ~ function.name -}}
            {%- if function.description -%}
                {{- ': ' ~ function.description | replace('\n', ' ') -}}
            {%- endif -%}
            {{- fields(schema, schema['$defs'] or schema['definitions'] or {}, '-') -}}
        {%- endfor -%}
        {{- '\n# Call\n@EXAMPLE@' -}}
    {%- endif -%}
    {{- '@END@' -}}
{%- endif -%}
"""

_CHATML = r"""
{%- for message in messages -%}
    {%- if message.role in ['user', 'tool'] -%}
        {{- '<|im_start|>' ~ message.role ~ '\n' ~ text(message.content) ~ '<|im_end|>\n' -}}
    {%- elif message.role in ['system', 'developer'] -%}
        {%- if not loop.first -%}
            {{- '<|im_start|>system\n' ~ text(message.content) ~ '<|im_end|>\n' -}}
        {%- endif -%}
    {%- elif message.role == 'assistant' -%}
        {%- set thought = message.reasoning_content or message.reasoning -%}
        {{- '<|im_start|>assistant\n' -}}
        {{- '<think>' ~ thought ~ '</think>' if thought and loop.index0 > state.last_user else '@NO_THOUGHT@' -}}
        {{- text(message.content) -}}
        {%- if message.tool_calls -%}
            {{- write_calls(message.tool_calls, state.num_calls) -}}
            {%- set state.num_calls = state.num_calls + message.tool_calls | length -%}
        {%- endif -%}
        {{- '<|im_end|>\n' -}}
    {%- else -%}
        {{- raise_exception('Unknown role: ' ~ message.role) -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\n' -}}
    {{- '@THOUGHT@' if enable_thinking is defined and enable_thinking else '@NO_THOUGHT@' -}}
{%- endif -%}
"""

_XTML = r"""
{%- for message in messages -%}
    {%- if message.role in ['user', 'tool'] -%}
        {{- '<|open|>message role="' ~ message.role ~ '"<|sep|>' ~ text(message.content) ~ '@END@' -}}
    {%- elif message.role in ['system', 'developer'] -%}
        {%- if not loop.first -%}
            {{- '@SYSTEM@' ~ text(message.content) ~ '@END@' -}}
        {%- endif -%}
    {%- elif message.role == 'assistant' -%}
        {%- set thought = message.reasoning_content or message.reasoning -%}
        {{- '<|open|>message role="assistant"<|sep|>' -}}
        {%- if thought and loop.index0 > state.last_user -%}
            {{- '<|open|>think<|sep|>' ~ thought ~ '<|close|>think<|sep|>' -}}
        {%- endif -%}
        {{- '<|open|>response<|sep|>' ~ text(message.content) ~ '<|close|>response<|sep|>' -}}
        {%- if message.tool_calls -%}
            {{- write_calls(message.tool_calls, 0) -}}
        {%- endif -%}
        {{- '@END@' -}}
    {%- else -%}
        {{- raise_exception('Unknown role: ' ~ message.role) -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {%- set thinks = thinking if thinking is defined else (enable_thinking is defined and enable_thinking) -%}
    {{- '<|open|>message role="assistant"<|sep|><|open|>' ~ ('think' if thinks else 'response') ~ '<|sep|>' -}}
{%- endif -%}
"""

_ATTRIBUTE = r"""
{%- macro attribute(value) -%}
    {{- value | string | replace('&', '&amp;') | replace('"', '&quot;') -}}
{%- endmacro -%}
"""


def build(format_name: str) -> str:
    """The template of one format."""
    spec = FORMATS[format_name]
    literals = {
        "EXAMPLE": spec.example.replace("\n", "\\n"),
        "NO_THOUGHT": spec.no_thought,
        "THOUGHT": "<think>" if spec.opens_thought else "",
        "SYSTEM": '<|open|>message role="system"<|sep|>' if spec.is_xtml else "<|im_start|>system\\n",
        "END": "<|close|>message<|sep|><|end_of_msg|>" if spec.is_xtml else "<|im_end|>\\n",
    }
    body = (
        f"{{#- atom-tiny speaking {format_name}. Built by tools/builtin_model/templates.py; edit that. -#}}"
        + _MACROS
        + (_ATTRIBUTE if spec.is_xtml else "")
        + "{%- macro write_calls(tool_calls, first_index) -%}"
        + _CALLS[format_name]
        + "\n{%- endmacro -%}"
        + _SYSTEM
        + (_XTML if spec.is_xtml else _CHATML)
    )
    for name, literal in literals.items():
        body = body.replace(f"@{name}@", literal)
    return body


def main() -> int:
    """Writes the templates, or with --check says whether the committed ones are current (exit status 1 when not)."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check
    stale = []
    for name in FORMAT_NAMES:
        path = TEMPLATE_DIR / f"{name}.jinja"
        wanted = build(name)
        if is_check:
            stale += [name] if not path.exists() or path.read_text(encoding="utf-8") != wanted else []
        else:
            path.write_text(wanted, encoding="utf-8")
    if stale:
        print(f"stale chat templates: {', '.join(stale)}")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
