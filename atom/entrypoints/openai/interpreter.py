"""What a server's process asks of the Python interpreter. Only a program's `main` does, never a library: it is global.

Knows nothing of requests.
"""

from __future__ import annotations

import gc
import sys

# Objects made between two looks for garbage in cycles. Python's own 700 has it look after every few dozen tokens of a
# few hundred streams, and finds nothing; requests leave next to no cycles.
_GARBAGE_THRESHOLD = 20_000
# Seconds after which a thread that tokenizes may take the interpreter from a busy event loop. It asks three times a
# request: at Python's own 0.005 s, requests wait in front of two threads that do little but wait themselves.
_SWITCH_INTERVAL = 0.0005


def tune_interpreter() -> None:
    """To be called once, when everything is loaded: what exists by now lives as long as the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE_THRESHOLD, 10, 10)
    sys.setswitchinterval(_SWITCH_INTERVAL)
