"""What a task is (one file in this folder, or a user's own), and how tasks are found by name or path.

A task is a module: model, data, loss and held-out figures of one learning problem. Task modules import
neither torch nor numpy at the top, so that a board without torch can list them; files that start with `_`
are helpers. Nothing here trains.
"""

from edged.tasks._contract import (
    BUILTIN,
    Batch,
    Data,
    Defaults,
    OtherPoolError,
    PoolError,
    PoolInfo,
    Prepared,
    Preparing,
    Progress,
    Task,
    TaskError,
)
from edged.tasks._discovery import ENTRY_POINTS, FOLDER, find, names, options_of, source_of, task_hash

__all__ = [
    "BUILTIN",
    "ENTRY_POINTS",
    "FOLDER",
    "Batch",
    "Data",
    "Defaults",
    "OtherPoolError",
    "PoolError",
    "PoolInfo",
    "Prepared",
    "Preparing",
    "Progress",
    "Task",
    "TaskError",
    "find",
    "names",
    "options_of",
    "source_of",
    "task_hash",
]
