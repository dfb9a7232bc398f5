"""What this board can train: its tasks with their hashes, its pools with the tasks that can read them.

Runs as `python -m edged.pools` in a child of the agent, with `{"pools": {name: path}, "folders": [...]}` as
JSON on the command line or standard input. It runs task files but loads no data, no torch and no numpy.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from edged import tasks
from edged.tasks import BUILTIN, OtherPoolError, PoolError, PoolInfo, Task, TaskError


class Pool(msgspec.Struct, frozen=True):
    """A pool of this board: what is in it and which tasks can read it, or `error` where none can."""

    path: str
    info: PoolInfo | None = None
    tasks: tuple[str, ...] = ()
    error: str = ""


class Inventory(msgspec.Struct, frozen=True):
    """Tasks by hash of their source, tasks that cannot be used and why, pools; torch's version or None."""

    tasks: dict[str, str]
    task_errors: dict[str, str]
    pools: dict[str, Pool]
    torch: str | None


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pools by name -> path as in the board's config, and the folders with task files of the owner."""

    pools: dict[str, str] = {}
    folders: tuple[str, ...] = (str(tasks.FOLDER),)


def inventory(pools: Mapping[str, str], folders: Sequence[Path] = (tasks.FOLDER,)) -> Inventory:
    """Lists everything, never raises for one bad task or pool: that one carries its error."""
    found: dict[str, Task] = {}
    hashes: dict[str, str] = {}
    errors: dict[str, str] = {}
    for name in tasks.names(folders):
        try:
            found[name] = tasks.find(name, folders)
            hashes[name] = tasks.task_hash(name, folders)
        except TaskError as error:
            errors[name] = str(error)
            found.pop(name, None)
    return Inventory(
        tasks=hashes,
        task_errors=errors,
        pools={name: inspect(Path(path), found) for name, path in pools.items()},
        torch=torch_version(),
    )


def inspect(path: Path, found: Mapping[str, Task]) -> Pool:
    """A pool as the tasks see it. What a task calls its own but broken is the error, before "not mine"."""
    if path.parts[:1] != BUILTIN.parts and not path.is_dir():
        what = "is a file, expected the pool's folder" if path.exists() else "no such folder"
        return Pool(str(path), error=f"{path}: {what}")
    infos: dict[str, PoolInfo] = {}
    broken: list[str] = []
    for name, task in found.items():
        try:
            infos[name] = task.inspect(path)
        except OtherPoolError:
            continue
        except PoolError as error:
            broken.append(f"{name}: {error}")
        except Exception as error:
            # A user's task is foreign code: its fault must not hide the board's other pools.
            broken.append(f"{name}: {type(error).__name__}: {error}")
    if not infos:
        return Pool(str(path), error="; ".join(broken) or f"{path}: {_unknown(path, found)}")
    info = next(iter(infos.values()))
    agreeing = tuple(name for name, other in infos.items() if other.fingerprint == info.fingerprint)
    odd = [f"{name}: reads {path} as other data" for name in infos if name not in agreeing]
    return Pool(str(path), info, agreeing, "; ".join(odd + broken))


def _unknown(path: Path, found: Mapping[str, Task]) -> str:
    """Why no task took it, where each said "not mine"."""
    with contextlib.suppress(OSError):
        if path.is_dir() and next(path.iterdir(), None) is None:
            return "the folder is empty"
    return f"no task knows this data (tasks: {', '.join(found) or 'none'})"


def torch_version() -> str | None:
    """The installed torch by its package record, without importing it."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def main(arguments: Sequence[str]) -> int:
    """Prints the inventory as JSON; 2 where the request is not one, 1 where nobody listens any more."""
    text = arguments[0] if arguments else sys.stdin.read()
    try:
        request = msgspec.json.decode(text, type=Request)
    except msgspec.DecodeError as error:
        sys.stderr.write(f"edged.pools: {error}\n")
        return 2
    # A user's task that prints must not spoil the JSON.
    with contextlib.redirect_stdout(sys.stderr):
        listing = inventory(request.pools, [Path(folder) for folder in request.folders])
    try:
        sys.stdout.write(msgspec.json.encode(listing).decode() + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
