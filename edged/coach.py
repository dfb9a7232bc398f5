"""Gives the training child its jobs and hears how they go: pace, emulated activity, process groups.

What an order leads to is the state machine's word; processes are `child`'s.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from edged import work
from edged.cargo import Cargo
from edged.child import Child
from edged.messages import Join, Train
from edged.sizing import Sizing
from edged.waiting import Waiting
from probes.emulated import Activity

PATIENCE_SECONDS = 15.0
"""So long the first order of a group is held back for the watts of waiting; then it goes without them."""


class Plan(Struct, frozen=True):
    """What of the settings the daemon needs while it runs. `pools` are paths by name; `threads` None is
    torch's choice, `micro_batch` None has it tried how many samples at once fit into memory, and
    `seconds_per_sample` None lets the child measure an emulated board's pace."""

    board: str
    fleet: str
    pools: dict[str, str]
    folders: tuple[str, ...]
    threads: int | None = None
    micro_batch: int | None = None
    emulate: bool = False
    seconds_per_sample: float | None = None


class Shelves(Struct, frozen=True):
    """Where pools and tasks are from now on: paths by name, and folders. Put on the agent's queue."""

    pools: dict[str, str]
    folders: tuple[str, ...]


class Coach:
    """One board's. `address` tells the board's own address towards the broker."""

    def __init__(
        self,
        plan: Plan,
        *,
        child: Child,
        cargo: Cargo,
        activity: Activity,
        waiting: Waiting,
        address: Callable[[], str],
        failed: Callable[[str, str], None],
        sizing: Sizing | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._child = child
        self._cargo = cargo
        self._activity = activity
        self._waiting = waiting
        self._address = address
        self._failed = failed
        self._sizing = sizing
        self._clock = clock
        self._pace = plan.seconds_per_sample
        self._held: tuple[work.Job, float] | None = None
        self._tried: work.Job | None = None

    @property
    def holding(self) -> bool:
        """True while an order is held back so that the board can be seen to wait."""
        return self._held is not None

    def move(self, shelves: Shelves) -> None:
        """Orders from now on are trained on what lies there."""
        self._plan = replace(self._plan, pools=shelves.pools, folders=shelves.folders)

    def train(self, order: Train) -> None:
        """Give the order to the child. The first one of a group waits until it is known how many samples fit
        into memory, and then for the watts of waiting: its joules could not be told otherwise."""
        if order.pool not in self._plan.pools:
            self._failed(order.order, f"pool {order.pool} is not in this board's settings any more")
            return
        job = work.Job(
            board=self._plan.board,
            order=order,
            model=str(self._cargo.model_path(order.model)),
            update=str(self._cargo.update_path(order.order)),
            pool=self._plan.pools[order.pool],
            folders=self._plan.folders,
            threads=self._plan.threads,
            emulate=self._plan.emulate,
            seconds_per_sample=self._pace,
            address=self._address() if order.rendezvous is not None else "",
            kept=str(self._cargo.kept) if order.rendezvous is not None else "",
        )
        if order.rendezvous is None:
            self._give(job if order.grain != "gradient" else replace(job, micro_batch=self._known(order)))
        else:
            self._size(job)

    def meet(self, join: Join) -> None:
        """All ranks of the order are ready."""
        self._child.meet(work.Meet(join.order, join.group, join.peers, join.formation_seconds))

    def cancel(self, order: str) -> None:
        """Take the order back."""
        if self._tried is not None and self._tried.order.order == order:
            self._stop_trying()
        elif self._held is not None and self._held[0].order.order == order:
            self._held = None
        elif self._child.cancel(order):
            self._activity.end(self._clock())

    def kill(self, now: float) -> None:
        """The child hangs."""
        self._stop_trying()
        self._child.kill()
        self._activity.end(now)

    def heard(self, word: work.Word, now: float) -> None:
        """A word of the child."""
        if isinstance(word, work.Ready):
            self._child.heard_ready()
        elif isinstance(word, work.Prepared):
            self._pace = word.seconds_per_sample if self._plan.emulate else None
        elif isinstance(word, work.Begun) and not word.by_stretches:
            self._activity.begin(min(word.at_seconds, now))
        elif isinstance(word, work.Stepped):
            for begin, end in word.stretches:
                self._activity.begin(begin)
                self._activity.end(end)
        elif isinstance(word, work.Failed):
            self.rested(word.order, now, failed=True)
        elif isinstance(word, work.Finished):
            self.rested(word.order, min(word.at_seconds, now))

    def rested(self, order: str, at_seconds: float, *, failed: bool = False) -> None:
        """The child computes no more for this order: an emulated meter falls back to the watts of waiting."""
        self._activity.end(at_seconds)
        self._child.heard(order, failed=failed)

    def tend(self, now: float) -> None:
        """Now and then."""
        self._child.tend(now)
        self._look_at_size()
        if self._held is not None and (self._waiting.known or now >= self._held[1]):
            job, self._held = self._held[0], None
            self._give(job)

    def close(self) -> None:
        """The process ends."""
        self._stop_trying()
        self._child.close()

    def _known(self, order: Train) -> int | None:
        """Samples at once of an order that is one batch: as set, or as found for an earlier group; it is not
        worth a trial, for an order that does not fit costs nobody but this board."""
        if self._plan.micro_batch is not None or self._sizing is None:
            return self._plan.micro_batch
        known = self._sizing.size(order)
        return known.samples if known is not None and known.most else None

    def _size(self, job: work.Job) -> None:
        """With as many samples at once as fit, which may have to be tried first."""
        order, plan = job.order, self._plan
        if plan.micro_batch is not None or self._sizing is None:
            self._hold(replace(job, micro_batch=plan.micro_batch))
            return
        known = self._sizing.size(order)
        if known is not None:
            self._hold(replace(job, micro_batch=known.samples if known.most else None))
            return
        self._child.kill()  # the memory that it still holds would be missing
        try:
            self._sizing.begin(order, job.pool, plan.folders, plan.threads)
            self._tried = job
        except OSError as error:
            self._failed(order.order, f"the process that tries sizes cannot be started: {error}")

    def _look_at_size(self) -> None:
        found = self._sizing.found() if self._sizing is not None and self._tried is not None else None
        if found is None or self._tried is None:
            return
        job, self._tried = self._tried, None
        if found.most and not found.samples:
            text = f"a single sample of task {job.order.task} does not fit into its memory to be trained on"
            self._failed(job.order.order, text)
        else:
            self._hold(replace(job, micro_batch=found.samples if found.most else None))

    def _stop_trying(self) -> None:
        self._tried = None
        if self._sizing is not None:
            self._sizing.stop()

    def _hold(self, job: work.Job) -> None:
        if self._waiting.known:
            self._give(job)
        else:
            self._held = (job, self._clock() + PATIENCE_SECONDS)

    def _give(self, job: work.Job) -> None:
        try:
            self._child.train(job)
        except OSError as error:
            self._failed(job.order.order, f"the training process cannot be started: {error}")
