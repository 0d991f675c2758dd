"""A program in a pseudo terminal: keys go in, the screen's text comes out."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Seconds after which something that has to happen has failed to; far more than any machine needs.
PATIENCE = 120.0
CTRL_C, CTRL_D, ENTER, UP, ALT_ENTER = "\x03", "\x04", "\r", "\x1b[A", "\x1b\r"
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>78])")


class Terminal:
    """`raw`: everything that was written so far, escapes included."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self.process = process
        self.raw = ""
        self._fd = fd
        self._seen = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end inside a character

    @property
    def text(self) -> str:
        return _ESCAPES.sub("", self.raw)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def wait_for(self, text: str, timeout: float = PATIENCE) -> str:
        """Read until `text` appears behind what was waited for before; returns what came up to its end."""
        deadline = time.monotonic() + timeout
        while text not in self.text[self._seen :]:
            assert time.monotonic() < deadline, f"{text!r} did not come: {self.text[self._seen :]!r}"
            has_ended = self.process.poll() is not None  # asked first: what it wrote before that is to be read yet
            if not self._read(0.1) and has_ended:
                raise AssertionError(f"the program ended before {text!r}: {self.text[self._seen :]!r}")
        start, self._seen = self._seen, self.text.index(text, self._seen) + len(text)
        return self.text[start : self._seen]

    def end(self, timeout: float = PATIENCE) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + timeout
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "the program goes on"
            self._read(0.1)
        while self._read(0.1):
            pass
        return self.process.returncode

    def _read(self, seconds: float) -> bool:
        if not select.select([self._fd], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self._fd, 65536)
        except OSError:  # the other side is closed
            return False
        self.raw += self._decoder.decode(piece)
        return bool(piece)


def _begin_in_terminal() -> None:
    """As a shell starts a program: with its terminal, and with interrupts, which background jobs ignore."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def chat_terminal(*flags: str, **environment: str) -> Iterator[Terminal]:
    """`atom chat` in a terminal of 100 columns; killed at the end if it still runs."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    base = {key: value for key, value in os.environ.items() if key not in ("OPENAI_API_KEY", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "atom.cli", "chat", *flags],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=base | {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "PYTHONUTF8": "1"} | environment,
        start_new_session=True,
        preexec_fn=_begin_in_terminal,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait(PATIENCE)
        os.close(ours)
