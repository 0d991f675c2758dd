"""`atom serve [MODEL] …`, `atom chat …` and `atom bench …`: the modules of the same purpose, under one name.

Owns the choice of the command only; flags are the modules' own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

_USAGE = """usage: atom serve [MODEL] [flags]   serve a model over HTTP; atom serve --help lists the flags
       atom chat [flags]           talk to a running server; atom chat --help lists the flags
       atom bench [flags]          measure a running server"""


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the `atom` script. Exits with 2 for a command that does not exist."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = arguments.pop(0) if arguments else None
    if command == "serve":
        from atom.entrypoints.openai_server import main as serve

        serve(serve_arguments(arguments))
    elif command == "chat":
        from atom.chat.main import main as chat

        chat(arguments)
    elif command == "bench":
        from atom.benchmarks.benchmark_serving import main as bench

        bench(arguments)
    elif command in ("-h", "--help"):
        print(_USAGE)
    else:
        print(_USAGE, file=sys.stderr)
        sys.exit(2)


def serve_arguments(arguments: Sequence[str]) -> list[str]:
    """The module's arguments: a leading MODEL is --model MODEL."""
    if arguments and not arguments[0].startswith("-"):
        return ["--model", *arguments]
    return list(arguments)


if __name__ == "__main__":
    main()
