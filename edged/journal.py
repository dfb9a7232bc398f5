"""Log lines with the priority that the service manager's journal reads; plain ones in a terminal.

It sets nothing up: who starts the process gives this to its handler.
"""

import logging
import os
from collections.abc import Mapping

_PRIORITIES = ((logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
_DEBUG = 7


def as_error(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """The last words of a command, as an error where stderr is the journal: `edged status` looks for it."""
    return f"<3>{text}" if "JOURNAL_STREAM" in environment else text


class Lines(logging.Formatter):
    """`<3>ERROR text` where stderr is the journal (systemd.exec, JOURNAL_STREAM), else `ERROR text`."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        super().__init__("%(levelname)s %(message)s")
        self._told = "JOURNAL_STREAM" in environment

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        if not self._told:
            return text
        number = next((number for level, number in _PRIORITIES if record.levelno >= level), _DEBUG)
        # Each line of a traceback is an entry of its own there.
        return "\n".join(f"<{number}>{line}" for line in text.splitlines())
