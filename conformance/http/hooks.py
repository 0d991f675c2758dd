"""What schemathesis loads beside its own checks: bounded requests, declared refusals, the order of streams.

The only module that knows schemathesis' objects. Each check sees every answer; a failure is an AssertionError. How
often each check had something to hold is written to the file that COUNTS_VARIABLE names, since a check that never
applies finds nothing either.
"""

from __future__ import annotations

import atexit
import json
import os
from collections import Counter
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import schemathesis
from schemathesis import CheckContext, HookContext, Response
from schemathesis.generation import GenerationMode
from schemathesis.generation.meta import TestPhase
from schemathesis.specs.openapi.checks import is_unexpected_http_status_case

from conformance.http.bounds import bounded
from conformance.http.refusals import Refusal, error_message, find_refusal, read_refusals
from conformance.http.streams import ORDERS, check_stream

_Case: TypeAlias = schemathesis.Case[Any]
COUNTS_VARIABLE = "CONFORMANCE_COUNTS"
_OK = 200
_streams: Counter[str] = Counter()  # by operationId
_refused: Counter[str] = Counter()  # by the name under x-refusals


@atexit.register
def _write_counts() -> None:
    if path := os.environ.get(COUNTS_VARIABLE):
        Path(path).write_text(json.dumps({"streams": _streams, "refusals": _refused}), encoding="utf-8")


@cache
def _refusals() -> list[Refusal]:
    return read_refusals(json.loads(files("atom_spec").joinpath("openapi.json").read_text(encoding="utf-8")))


def _is_valid(case: _Case) -> bool:
    """Whether the contract allows the request. Requests that schemathesis spoils on purpose are not allowed."""
    is_positive = case.meta is not None and case.meta.generation.mode == GenerationMode.POSITIVE
    return is_positive and not is_unexpected_http_status_case(case)


def _operation_id(case: _Case) -> str:
    return str(case.operation.definition.raw["operationId"])


@schemathesis.hook
def before_call(context: HookContext, case: _Case, kwargs: dict[str, Any]) -> None:
    """Bound what is drawn. The contract's own examples go out as they stand."""
    is_example = case.meta is not None and case.meta.phase.name == TestPhase.EXAMPLES
    if _is_valid(case) and not is_example and isinstance(case.body, dict):
        case.body = bounded(_operation_id(case), case.body)


@schemathesis.check
def declared_refusal(context: CheckContext, response: Response, case: _Case) -> None:
    """A request that its schema allows is refused only for a reason that the contract declares."""
    if not _is_valid(case) or response.status_code not in (400, 404) or not response.content:
        return
    message = error_message(response.json())
    found = find_refusal(_refusals(), _operation_id(case), response.status_code, message)
    assert found is not None, f"no x-refusals entry of {_operation_id(case)} is this {response.status_code}: {message}"
    _refused[found.name] += 1


@schemathesis.check
def stream_order(context: CheckContext, response: Response, case: _Case) -> None:
    """The events of a stream have the framing and the order of their API; streams come where they were asked for."""
    content_type = response.headers.get("content-type", [""])[0]
    is_stream = content_type.startswith("text/event-stream")
    body = case.body if isinstance(case.body, dict) else {}
    if response.status_code != _OK or not _is_valid(case) or _operation_id(case) not in ORDERS:
        return
    assert is_stream == bool(body.get("stream")), f"stream is {body.get('stream')!r}, the answer is {content_type}"
    if is_stream:
        assert not response.stream_cut_short, "the stream did not end"
        check_stream(_operation_id(case), response.content.decode(), body)
        _streams[_operation_id(case)] += 1
