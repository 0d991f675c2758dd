"""`python -m tools.aiter_contract`: fetch the pinned wheel and check the contract (`make aiter-contract`).

`--tree` checks another one instead, a wheel or a folder such as an installation's site-packages. `--show` prints
signatures as the contract writes them, for whoever moves the pin. Exit status: 0 kept, 1 broken, 2 nothing to check.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from pathlib import Path

from atom_spec.aiter import CALLABLES, PACKAGE, SOURCE_LINES, TABLES, VERSION

from tools.aiter_contract.check import check
from tools.aiter_contract.fetch import FetchError, fetch
from tools.aiter_contract.resolve import Resolver
from tools.aiter_contract.signatures import read_source, written
from tools.aiter_contract.tree import SourceTree


def main(argv: list[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="tools.aiter_contract", description=__doc__, allow_abbrev=False)
    parser.add_argument("--tree", type=Path, help="a wheel or a folder to check instead of the pinned wheel")
    parser.add_argument("--show", nargs="+", metavar="NAME", help="print signatures and check nothing")
    arguments = parser.parse_args(argv)
    try:
        tree = SourceTree(arguments.tree or fetch())
    except (FetchError, OSError, zipfile.BadZipFile) as error:
        print(f"aiter-contract: {error}", file=sys.stderr)
        return 2
    if arguments.show:
        return show(tree, arguments.show)
    findings = check(tree)
    for finding in findings:
        print(f"ERROR {finding}")
    rows = sum(len(table.rows) for table in TABLES)
    what = arguments.tree or f"{PACKAGE} {VERSION}"
    print(
        f"{what}: {len(CALLABLES)} callables, {rows} rows of kernel tables, {len(SOURCE_LINES)} lines of source; "
        f"{len(findings)} errors"
    )
    return 1 if findings else 0


def show(tree: SourceTree, names: list[str]) -> int:
    """Print `name: signature` for each; exit status 1 when one is not there."""
    resolver = Resolver(tree)
    status = 0
    for name in names:
        found = resolver.find(name)
        if found is None:
            print(f"{name}: there is no such callable")
            status = 1
            continue
        source = read_source(found)
        print(f"{name}: {written(source.parameters)}  # {source.place}")
    return status


if __name__ == "__main__":
    sys.exit(main())
