"""`python -m atom.entrypoints.scripted_server --script FILE.jsonl`: the real server, with given texts for answers.

Owns the command line. For people who write clients: every wire format, delay and fault on demand, without a model's
moods. docs/scripted-server.md has the format of the file.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from atom.builtin_model import resolve
from atom.entrypoints.openai import lifecycle
from atom.entrypoints.openai.app import create_app
from atom.entrypoints.openai.chat_encoders import load_chat_encoder
from atom.entrypoints.openai.chat_profile import probe_chat_encoder
from atom.entrypoints.openai.interpreter import tune_interpreter
from atom.entrypoints.openai.serving import ChatModel
from atom.entrypoints.openai_server import address_of, run_loop
from atom.entrypoints.scripted.script import Script, load_scripts
from atom.entrypoints.scripted.serving import ScriptedServing
from atom.entrypoints.scripted.tokens import ScriptedTokenizer
from atom.model_engine.arg_utils import ServerConfig, SettingsParser, add_cli_args, server_config_from_args

logger = logging.getLogger("atom.scripted")


def main(argv: Sequence[str] | None = None) -> None:
    """The command. Exits with 2 for a wrong command line or script file."""
    parser = SettingsParser(prog="python -m atom.entrypoints.scripted_server", description=__doc__)
    parser.add_argument("--script", type=Path, required=True, help="JSONL file, one answer a line")
    parser.add_argument("--port", type=int, help="the same as --server-port")
    parser.add_argument("--model-name", default="scripted", help="the served name (default: scripted)")
    parser.add_argument("--max-model-len", type=int, default=4096, help="context length (default: 4096)")
    add_cli_args(parser, ["server", "limits"])
    arguments = parser.parse_args(argv)
    if arguments.port is not None:
        arguments.server_port = arguments.port
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        server = server_config_from_args(arguments)
        scripts = load_scripts(arguments.script)
        serving = build_serving(
            scripts,
            server,
            folder=arguments.script.parent,
            name=arguments.model_name,
            max_model_len=arguments.max_model_len,
        )
        listening = lifecycle.bind_socket(server.host, server.server_port)
        listening.listen(lifecycle.BACKLOG)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    tune_interpreter()
    logger.info("%d scripts at %s", len(scripts), address_of(listening))

    async def run() -> int:
        with lifecycle.StopSignals().installed() as signals:
            return await lifecycle.serve(create_app(serving), serving, listening, signals)

    sys.exit(run_loop(run()))


def build_serving(
    scripts: Sequence[Script],
    server: ServerConfig,
    *,
    folder: Path = Path("."),
    name: str = "scripted",
    max_model_len: int = 4096,
) -> ScriptedServing:
    """A serving context over scripts, with the shipped model's tokenizer and template. Raises ValueError."""
    model = resolve("atom-tiny")
    encoder = load_chat_encoder(model.path, model.chat_template)
    assert encoder is not None  # the shipped model has a template
    return ScriptedServing(
        scripts,
        ScriptedTokenizer.load(model.path),
        ChatModel(encoder, probe_chat_encoder(encoder)),
        server,
        model_path=model.path,
        folder=folder,
        served_model_names=(name,),
        max_model_len=max_model_len,
    )


if __name__ == "__main__":
    main()
