"""The way into a program of edged: Ctrl-C has its answer before anything else is imported.

Imports take seconds on a slow board. An interrupt meanwhile ends the process at once, with 130 and without a
traceback.
`python -m edged.entry MODULE TEXT` is `MODULE.main(TEXT)` behind this.
"""

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module

INTERRUPTED = 130


def guard() -> None:
    """From here to `unguard`, or to a handler of the program's own, SIGINT ends the process; one that waits
    since before `hand_over` does so now. Where SIGINT is ignored (nohup) that stays."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def unguard() -> None:
    """The imports are done: SIGINT raises KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def run(load: Callable[[], Callable[[], None]]) -> None:
    """Call the program that `load` imports. Ctrl-C that it does not answer ends it with 130, and so does one
    while the process goes down."""
    guard()
    program = load()
    try:
        unguard()
        program()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        guard()


def hand_over(module: str, text: str) -> None:
    """Become `MODULE.main(TEXT)` in this process. SIGINT waits until `guard` runs there."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.execv(sys.executable, [sys.executable, "-m", "edged.entry", module, text])


if __name__ == "__main__":
    guard()
    sys.exit(import_module(sys.argv[1]).main(sys.argv[2]))
