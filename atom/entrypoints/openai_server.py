"""`python -m atom.entrypoints.openai_server`: parse, start the engine, serve.

Owns the order of startup. The engine's process is started first; while it loads weights, this process imports and loads
its own side (tokenizer, chat template, HTTP). Imports no torch, and little else before the engine runs.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from atom.model_engine.arg_utils import ServerConfig, config_from_args, parse_args, server_config_from_args
from atom.model_engine.engine_client import EngineStartError, ProcessEngineClient

if TYPE_CHECKING:
    from atom.config import Config
    from atom.entrypoints.openai.lifecycle import StopSignals
    from atom.entrypoints.openai.serving import TextSide

logger = logging.getLogger("atom.server")


class StartupError(Exception):
    """The server can not start; the message is for the user."""


def main(argv: Sequence[str] | None = None) -> None:
    """The command. Exits with 0 after a signal, 1 when the engine died or can not start, 2 for a wrong command line."""
    arguments = parse_args(argv, prog="python -m atom.entrypoints.openai_server")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        config, server = config_from_args(arguments), server_config_from_args(arguments)
        check_tool_call_parser(config.tool_call_parser)
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    sys.exit(run_loop(serve(config, server)))


def check_tool_call_parser(name: str) -> None:
    """Raise ValueError, with the list of names, for a parser that does not exist."""
    if name != "auto":
        from atom.entrypoints.openai.tool_parser.registry import get_format

        get_format(name)


def run_loop(work: Coroutine[Any, Any, int]) -> int:
    """Run to an exit code, on uvloop where there is one."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)


async def serve(config: Config, server: ServerConfig) -> int:
    """Start everything, serve, stop everything. Returns the exit code."""
    engine = ProcessEngineClient(config)
    starting = asyncio.create_task(engine.start())
    await asyncio.sleep(0)  # the process exists from here on; what follows runs beside it
    try:
        from atom.entrypoints.openai.lifecycle import StopSignals

        with StopSignals().installed() as signals:
            return await _serve(config, server, engine, starting, signals)
    except (StartupError, EngineStartError) as error:
        logger.error("can not start: %s", error)
        return 1
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await engine.shutdown()


async def _serve(
    config: Config,
    server: ServerConfig,
    engine: ProcessEngineClient,
    starting: asyncio.Task[None],
    signals: StopSignals,
) -> int:
    from atom.entrypoints.openai import lifecycle

    listening = _bind(server)
    try:
        loading = asyncio.create_task(asyncio.to_thread(_load, config))
        stopped = asyncio.create_task(signals.first.wait())
        done, _ = await asyncio.wait((loading, stopped), return_when=asyncio.FIRST_COMPLETED)
        if loading in done:
            text = loading.result()
            await asyncio.wait((starting, stopped), return_when=asyncio.FIRST_COMPLETED)
        if stopped.done():
            return 0
        stopped.cancel()
        starting.result()

        from atom.entrypoints.openai.app import create_app
        from atom.entrypoints.openai.interpreter import tune_interpreter
        from atom.entrypoints.openai.serving import ServingContext

        try:
            listening.listen(lifecycle.BACKLOG)
        except OSError as error:  # another server began to listen there in the meantime
            raise _no_address(server, error) from error
        try:
            serving = ServingContext.of(config, server, text, engine)
        except OSError as error:
            raise StartupError(f"--request-log: {error}") from error
        tune_interpreter()
        logger.info("serving %s at %s", ", ".join(serving.served_model_names), address_of(listening))
        try:
            return await lifecycle.serve(create_app(serving), serving, listening, signals)
        finally:
            serving.close()
    finally:
        listening.close()


def _load(config: Config) -> TextSide:
    """The text side, and on the way every module that serving needs."""
    from atom.entrypoints.openai import app  # noqa: F401  (imported early, beside the engine's start)
    from atom.entrypoints.openai.serving import load_text_side

    try:
        return load_text_side(config)
    except ValueError as error:
        raise StartupError(str(error)) from error


def _bind(server: ServerConfig) -> socket.socket:
    from atom.entrypoints.openai.lifecycle import bind_socket

    try:
        return bind_socket(server.host, server.server_port)
    except OSError as error:
        raise _no_address(server, error) from error


def _no_address(server: ServerConfig, error: OSError) -> StartupError:
    return StartupError(f"{server.host} port {server.server_port}: {error.strerror or error}")


def address_of(listening: socket.socket) -> str:
    """The URL that a listening socket answers at."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


if __name__ == "__main__":
    main()
