"""What this board can train, asked of a child process: tasks are code, and torch's record is large.

The agent imports none of it. One bad task or pool is an error of its own, never the end of the list.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

import msgspec
from msgspec import Struct

from edged import __version__, regimes
from edged.events import Inventory
from edged.messages import PoolOffer

STOCK_SECONDS = 300.0


class Stock(Struct, frozen=True):
    """`can` for the state machine; `offer` are fields of the birth; `troubles` are for the log: what (`pool
    mnist`) cannot be used, and why."""

    can: Inventory
    offer: dict[str, Any]
    troubles: dict[str, str] = {}


class Info(Struct, frozen=True):
    """Size of a pool and the hash of what is in it."""

    samples: int
    fingerprint: str


class Pool(Struct, frozen=True):
    """What lies at a configured path: data that these tasks can train on, or why not."""

    info: Info | None = None
    tasks: tuple[str, ...] = ()
    error: str = ""


class Listing(Struct, frozen=True):
    """The part of `edged.pools.Inventory` that a birth needs; importing that would import every task."""

    tasks: dict[str, str] = {}
    task_errors: dict[str, str] = {}
    pools: dict[str, Pool] = {}
    torch: str | None = None


def take_stock(pools: Mapping[str, str], folders: tuple[str, ...], queue: SimpleQueue[object]) -> None:
    """Ask in a thread; a Stock comes on the queue."""

    def ask() -> None:
        queue.put(stock_of(listing_of(pools, folders)))

    threading.Thread(target=ask, name="edged-stock", daemon=True).start()


def stock_of(listing: Listing) -> Stock:
    """What is offered: a pool without a readable task is listed with its error, and not offered."""
    usable = {name: pool.info.fingerprint for name, pool in listing.pools.items() if pool.info is not None}
    offers = {
        name: PoolOffer(
            fingerprint=pool.info.fingerprint if pool.info else "",
            samples=pool.info.samples if pool.info else 0,
            tasks=pool.tasks,
            error=pool.error[:2000],
        )
        for name, pool in listing.pools.items()
    }
    versions = {"edged": __version__, "python": sys.version.split()[0]}
    if listing.torch:
        versions["torch"] = listing.torch
    errors = {name: text[:2000] for name, text in listing.task_errors.items()}
    offer = {"tasks": listing.tasks, "task_errors": errors, "pools": offers, "versions": versions}
    return Stock(Inventory(listing.tasks, usable, regimes.names()), offer, troubles_of(listing))


def troubles_of(listing: Listing) -> dict[str, str]:
    """What the owner has to mend, by pool and task. A pool that one task reads and another calls broken is
    among it, with the tasks that it serves."""
    pools = {}
    for name, pool in listing.pools.items():
        if pool.error and pool.tasks:
            pools[f"pool {name}"] = f"serves {', '.join(pool.tasks)} alone: {pool.error}"
        elif not pool.tasks:
            pools[f"pool {name}"] = f"cannot be used: {pool.error}"
    tasks = {f"task {name}": f"cannot be used: {error}" for name, error in listing.task_errors.items()}
    return {**pools, **tasks}


def listing_of(pools: Mapping[str, str], folders: tuple[str, ...]) -> Listing:
    """The inventory by a child; where there is none, a Listing whose one task error says why."""
    request = json.dumps({"pools": dict(pools), "folders": list(folders)})
    try:
        code, answer = _asked(request.encode())
        if code == 0:
            return msgspec.json.decode(answer, type=Listing)
        fault = f"exit code {code}; its words are in this board's log"
    except (OSError, subprocess.TimeoutExpired, msgspec.DecodeError) as error:
        fault = str(error)
    return Listing(task_errors={"inventory": f"tasks and pools cannot be listed: {fault}"})


def _asked(request: bytes) -> tuple[int, bytes]:
    """The child's exit code and answer. Ctrl-C is the agent's to answer, with whom the child ends."""
    command = [sys.executable, "-m", "edged.pools"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        atexit.register(child.kill)
        try:
            answer, _ = child.communicate(request, timeout=STOCK_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            raise
        finally:
            atexit.unregister(child.kill)
    return child.returncode, answer
