"""The pages: links that lead somewhere, decisions with numbers of their own."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_every_relative_link_leads_to_a_file() -> None:
    dead = []
    for page in PAGES:
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                dead.append(f"{page.relative_to(ROOT)}: {target}")
    assert dead == []


def test_no_two_decisions_share_a_number() -> None:
    numbers = Counter(path.name.split("-")[0] for path in (ROOT / "docs/decisions").glob("*.md"))
    assert [number for number, count in numbers.items() if count > 1] == []
