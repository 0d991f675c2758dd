"""`python -m benchmarks PART...`: runs the project's benchmarks and prints one table.

A part is a module of this package with `run() -> list[dict]`, each row holding name, value, unit and, where there is
one, bar (the figure to reach). Figures on a shared machine are ratios within one run; `docs/performance.md` keeps them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
from pathlib import Path
from typing import Any

PARTS = ("scheduler", "wire", "frontend", "engine", "structured")
EXTRA_PARTS = ("start", "load_tools", "gpu", "peers", "rounding")


def machine() -> str:
    """One line that names the machine class a figure was taken on, without its host name."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        names = [line.split(":", 1)[1].strip() for line in lines]
        model = f"{len(names)} x {names[0]}" if names else model
    return f"{model}, Python {platform.python_version()}"


def run_part(part: str) -> list[dict[str, Any]]:
    """Run one part and print its rows as they come."""
    try:
        module = importlib.import_module(f"benchmarks.{part}")
    except ModuleNotFoundError as error:
        if error.name != f"benchmarks.{part}":
            raise
        sys.exit(f"no benchmark named {part!r}; there are {', '.join((*PARTS, *EXTRA_PARTS))}")
    rows: list[dict[str, Any]] = module.run()
    for row in rows:
        bar = f"   (bar {row['bar']})" if "bar" in row else ""
        print(f"{part:10} {row['name']:60} {row['value']:>12.4g} {row['unit']}{bar}", flush=True)
    return [{"part": part, **row} for row in rows]


def main() -> None:
    """Entry point of `make bench`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", default=["all"], help=f"all, or any of {', '.join((*PARTS, *EXTRA_PARTS))}")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    options = parser.parse_args()
    parts = PARTS if options.parts == ["all"] else options.parts
    print(f"machine: {machine()}")
    rows = [row for part in parts for row in run_part(part)]
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
