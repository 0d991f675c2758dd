"""`python spec/codegen [--check]`: write everything that derives from spec/, or show what is out of date."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# Run as a folder, Python puts the folder itself on the path, where our `metrics` could hide somebody's package.
sys.path[0] = str(FOLDER.parent)

from codegen.registry import diff, find_emitters, run_emitters, write  # noqa: E402  # the path above is what makes it importable


def main(argv: list[str] | None = None) -> int:
    """Exit status: 0 done or nothing differs, 1 `--check` found a difference, 2 a spec file or an emitter is wrong."""
    parser = argparse.ArgumentParser(prog="spec/codegen", description=__doc__, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="write nothing; print a diff and exit 1 when one is found")
    parser.add_argument("--root", type=Path, default=FOLDER.parent.parent, help="repository to read and write")
    arguments = parser.parse_args(argv)
    result = run_emitters(find_emitters(FOLDER), arguments.root / "spec")
    for error in result.errors:
        print(error, file=sys.stderr)
    if arguments.check:
        difference = diff(arguments.root, result.files) if not result.errors else ""
        sys.stdout.write(difference)
        return 2 if result.errors else int(bool(difference))
    for path in write(arguments.root, result.files):
        print(path)
    return 2 if result.errors else 0


if __name__ == "__main__":
    sys.exit(main())
