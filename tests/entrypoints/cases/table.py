"""docs/http-cases.md, made of the registry."""

from __future__ import annotations

import re
from pathlib import Path

from tests.entrypoints.cases import answers, lifecycle, messages, prompts, sampling, streams  # noqa: F401  # each registers its cases
from tests.entrypoints.cases.registry import CASES

PAGE = Path(__file__).parents[3] / "docs" / "http-cases.md"
_HEAD = """\
<!-- Written by `python -m tests.entrypoints.cases`; the sentences stand beside the checks there. -->

# HTTP cases

Faults that users of servers like this one reported, each as a check against a running one. The requests lie beside the
checkout; what is expected is in our words here, and in the checks of `tests/entrypoints/cases`. `pytest
tests/entrypoints/test_http_cases.py` runs them against the shipped model or, where the model's words matter, the
[scripted server](scripted-server.md).

"""


def page() -> str:
    """The page."""
    rows = ["| case | result | what holds |", "|---|---|---|"]
    for case_id in sorted(CASES, key=lambda name: int(re.sub(r"\D", "", name))):
        case = CASES[case_id]
        held = "held, one decision differs" if case.differs else "held"
        rows.append(f"| {case_id} | {held} | {' '.join(filter(None, (case.holds, case.differs)))} |")
    differing = sum(bool(case.differs) for case in CASES.values())
    summary = f"{len(CASES)} cases: all hold; in {differing} of them a decision of ours differs in one point.\n"
    return _HEAD + "\n".join(rows) + "\n\n" + summary
