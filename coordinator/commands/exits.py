"""Exit statuses of `edged-coordinator`, all of them, and the errors that end a command with one.

docs/operate.md has the same table; a test holds it to this one.
"""

from typing import Final

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
NOBODY: Final = 3
REFUSED: Final = 4
NO_BROKER: Final = 69
FAULT: Final = 70
CONFIG: Final = 78
INTERRUPTED: Final = 130

MEANINGS: Final = {
    OK: "done",
    FAILED: "it could not be done, or a run ended before all its samples were accepted",
    USAGE: "a wrong option or argument",
    NOBODY: "the broker is there, but no coordinator answers",
    REFUSED: "the coordinator answers, and refuses",
    NO_BROKER: "the broker cannot be reached, or refuses this client",
    FAULT: "a fault of edged itself",
    CONFIG: "the configuration cannot be used",
    INTERRUPTED: "ended by Ctrl-C",
}


class CommandError(Exception):
    """Ends the command with `status`; the text names what, where and the way out."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        self.status = status
