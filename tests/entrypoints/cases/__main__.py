"""`python -m tests.entrypoints.cases`: write docs/http-cases.md."""

from __future__ import annotations

from tests.entrypoints.cases.table import PAGE, page

PAGE.write_text(page(), encoding="utf-8")
print(PAGE)
