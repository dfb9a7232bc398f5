"""Optimizer states that a silo keeps to itself between rounds, as files that outlive the training child.

With `keep` nothing of them travels to the coordinator; a rank that has none takes them from one that has.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edged import weights

if TYPE_CHECKING:
    from edged.gloo import Group

KEPT_ROUNDS = 2
"""A round that is done again begins from the state before it."""


def taken(folder: Path, run: str, before: int, group: Group) -> dict[str, Any]:
    """The newest state from an earlier round of the run, the same on all ranks; empty if none has one."""
    mine = max((number for number in _rounds(folder, run) if number < before), default=0)
    newest = [int(values[0]) for values in group.gather([float(mine)])]
    best = max(newest)
    if not best:
        return {}
    data = group.share(_path(folder, run, best).read_bytes() if mine == best else b"", newest.index(best))
    temporary = folder / f"{run}.taken"
    temporary.write_bytes(data)
    state = weights.load_torch(temporary)
    temporary.unlink()
    return state


def leave(folder: Path, run: str, number: int, state: Mapping[str, Any]) -> None:
    """Keep the state of a finished round; older ones than are needed go."""
    if state:
        weights.save(_path(folder, run, number), state)
        for old in _rounds(folder, run)[:-KEPT_ROUNDS]:
            _path(folder, run, old).unlink(missing_ok=True)


def _path(folder: Path, run: str, number: int) -> Path:
    return folder / f"{run}.{number}.safetensors"


def _rounds(folder: Path, run: str) -> list[int]:
    names = [path.name.split(".") for path in folder.glob(f"{run}.*.safetensors")]
    return sorted(int(parts[1]) for parts in names if len(parts) == 3 and parts[1].isdigit())
