"""Exit statuses of `edged`, all of them. docs/install.md has the same table; a test holds it to this one."""

from typing import Final

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
NOT_RUNNING: Final = 3
NOT_INSTALLED: Final = 4
NO_SYSTEMD: Final = 69
FAULT: Final = 70
CONFIG: Final = 78
NOT_FOUND: Final = 127
INTERRUPTED: Final = 130

MEANINGS: Final = {
    OK: "done; of `run`: ended by SIGTERM or Ctrl-C, with the coordinator told",
    FAILED: "it could not be done, or `doctor` found what fails",
    USAGE: "a wrong option or argument, or no such task",
    NOT_RUNNING: "of `status`: the service does not run",
    NOT_INSTALLED: "of `status`: there is no service",
    NO_SYSTEMD: "of `install`: this system has no systemd",
    FAULT: "a fault of edged itself, or its output cannot be written",
    CONFIG: "the configuration cannot be used",
    NOT_FOUND: "of `probe measure`: the command cannot be started; all others are the command's own",
    INTERRUPTED: "ended by Ctrl-C",
}
