"""The environment that chat templates are written for, sandboxed.

Owns what a template can call and see: the filters, globals and block tags that Hugging Face gives chat templates.
Knows no messages and no model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment

_MUTATION = re.compile(r"\.\s*(append|extend|insert|pop|remove|clear|update|setdefault|sort|reverse)\s*\(")


class TemplateRaisedError(jinja2.TemplateError):
    """The template itself refused its input, by raise_exception."""


class GenerationBlock(Extension):
    """`{% generation %} ... {% endgeneration %}`: marks the assistant's part for training; renders its body."""

    tags = {"generation"}  # noqa: RUF012  (the base class declares it so)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The statements between the two tags."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON without HTML escapes, unlike Jinja's own filter."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
        default=_plain,
    )


def _plain(value: Any) -> Any:
    """A lazy sequence, such as what the `map` filter returns, as a list."""
    if isinstance(value, Iterator):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _raise_exception(message: str) -> NoReturn:
    raise TemplateRaisedError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def changes_data(source: str) -> bool:
    """Whether a template's text calls what changes a list or a mapping: it must be given copies then."""
    return _MUTATION.search(source) is not None


def chat_template_environment(mutable: bool = False) -> SandboxedEnvironment:
    """A fresh environment; nothing in it reaches Python's internals.

    mutable: templates may change lists and mappings, as those written for other engines do with their own queues.
    """
    kind = SandboxedEnvironment if mutable else ImmutableSandboxedEnvironment
    environment = kind(trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlock, loopcontrols])
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment
