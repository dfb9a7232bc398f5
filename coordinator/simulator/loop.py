"""A run without messages: decide, spend, learn, round after round; as `world` where nothing goes wrong.

The same functions of `allocation` decide and learn, in the same order, so that shares, seconds and joules are
those of `world` (a test holds them to each other) at a fraction of its time. Lost boards and redealt pieces
are `world`'s; here a board that returns nothing just misses. Seconds and joules come from the caller.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from coordinator import allocation
from coordinator.allocation import Control
from coordinator.controller import Allocation
from coordinator.controller.batches import steps_for
from coordinator.opening import SETTLE_SECONDS
from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.steps import Together, together
from edged.ceilings import State
from edged.messages import Energy, Part, Parts, Report, Steady

NOBODY = "loop.1.loop.1"  # an order id: no message is ever sent here


class Spent(Struct, frozen=True):
    """What an order costs a board. Watts are None where nobody knows them."""

    seconds: float
    active_watts: float | None
    waiting_watts: float | None
    link_seconds: float = 0.0
    link_watts: float | None = None


class Costs(Protocol):
    """Where seconds and watts come from: drawn for virtual boards, or recorded."""

    def spend(self, round: int, board: str, samples: int, at_seconds: float) -> Spent | None:
        """Of this order; None where no update of the board counts in this round. An order of 0 samples
        costs waiting only."""


class Virtual:
    """Virtual boards, drawn as `world` draws them with that seed. Throttling goes by the time of the run."""

    def __init__(self, boards: Iterable[VirtualBoard], seed: int = 1) -> None:
        self._boards = {b.id: (b, random.Random(f"{seed}/{b.id}")) for b in boards}

    def spend(self, round: int, board: str, samples: int, at_seconds: float) -> Spent | None:
        """See Costs."""
        spec, rng = self._boards[board]
        seconds, watts = spec.draw(rng, at_seconds, samples) if samples else (0.0, 0.0)
        link = spec.download_seconds + spec.upload_seconds
        if not spec.metered:
            return Spent(seconds, None, None, link)
        return Spent(seconds, watts, spec.waiting_watts, link, spec.link_watts)


class Lived(Struct, frozen=True):
    """One round. Joules are None where those of some board are not known."""

    round: int
    shares: dict[str, int]
    seconds: dict[str, float]
    makespan_seconds: float
    wall_seconds: float
    wait_seconds: float
    link_seconds: float
    compute_joules: float | None
    wait_joules: float | None
    link_joules: float | None
    reason: str = ""
    together: Together | None = None

    @property
    def joules(self) -> float | None:
        """Of the whole fleet for the whole round."""
        parts = (self.compute_joules, self.wait_joules, self.link_joules)
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


class Work(Struct, frozen=True):
    """What every round of a run is about. `batch` is local in pma, of all ranks together otherwise."""

    budget: int
    batch: int
    window: str = "compute"
    step_communication_seconds: float = 0.0


def live(control: Control, boards: Mapping[int, Sequence[str]], work: Work, costs: Costs) -> Iterator[Lived]:
    """The rounds that `boards` names with their members; the control remembers, as in a run."""
    accounts: dict[str, Report] = {}
    learnt: State = {}
    now = SETTLE_SECONDS  # a run begins when no further board has appeared for so long
    for number in sorted(boards):
        members = tuple(boards[number])
        decision = allocation.allocate(control, members, work.budget, number, work.batch)
        allocation.adopt(control, decision)
        for board, account in accounts.items():
            allocation.settle_account(control, board, account)
        spent = {b: costs.spend(number, b, decision.shares.get(b, 0), now) for b in members}
        lived, accounts = _round(control, decision, spent, work, (number, learnt))
        learnt = lived.together.learnt if lived.together is not None else learnt
        now += lived.wall_seconds
        yield lived


def _round(
    control: Control,
    decision: Allocation,
    spent: Mapping[str, Spent | None],
    work: Work,
    before: tuple[int, State],
) -> tuple[Lived, dict[str, Report]]:
    """The round of that number, with what the ranks' own rule had learnt before it."""
    number, learnt = before
    shares = decision.shares
    trained = {b: s for b, s in spent.items() if s is not None and shares.get(b)}
    inner, step_link = dict.fromkeys(trained, 0.0), 0.0
    seconds = {b: s.seconds for b, s in trained.items()}
    samples = {b: shares[b] for b in trained}
    found: Together | None = None
    if control.regime == "ddp" and trained:
        steps = steps_for(work.budget, work.batch)
        found = together(
            [shares[b] for b in trained],
            [s.seconds / shares[b] for b, s in trained.items()],
            steps,
            step_communication_seconds=work.step_communication_seconds,
            stepwise=allocation.stepwise(control),
            boards=list(trained),
            learnt=learnt,
        )
        inner, step_link = dict(zip(trained, found.wait_seconds, strict=True)), found.communication_seconds
        seconds = dict(zip(trained, found.compute_seconds, strict=True))
        samples = dict(zip(trained, found.samples, strict=True))
    links = {b: s.link_seconds + step_link for b, s in trained.items()}
    wall = max((seconds[b] + inner[b] + links[b] for b in trained), default=0.0)
    computed: list[float | None] = []
    waited: list[float | None] = []
    linked: list[float | None] = []
    accounts: dict[str, Report] = {}
    wait_seconds = 0.0
    for board, s in spent.items():
        if s is None:
            allocation.miss(control, board)
            continue
        busy = seconds.get(board, 0.0)
        link = links.get(board, 0.0)
        wait = wall - busy - link
        wait = wait if wait > 1e-9 * wall else 0.0  # what is left by rounding is no waiting
        wait_seconds += wait
        joules = _joules(s.active_watts, busy)
        computed.append(joules)
        waited.append(_joules(s.waiting_watts, wait))
        linked.append(_joules(s.waiting_watts if s.link_watts is None else s.link_watts, link))
        compute = Part(busy, joules)
        accounts[board] = _report(
            board, samples.get(board, 0), Parts(compute, Part(link, linked[-1]), Part(wait, waited[-1]))
        )
        if board in trained:
            allocation.learn(control, board, number, accounts[board], work.window)
    return Lived(
        number,
        dict(shares),
        seconds,
        wall if control.regime == "ddp" else max(seconds.values(), default=0.0),
        wall,
        wait_seconds,
        sum(links.values()),
        _sum(computed),
        _sum(waited),
        _sum(linked),
        decision.reason,
        found,
    ), accounts


def _report(board: str, samples: int, parts: Parts) -> Report:
    joules = parts.compute.joules
    return Report(
        board,
        "loop",
        NOBODY,
        "trained",
        0,
        samples,
        parts=parts,
        energy=Energy(joules, basis="simulated"),
        steady=Steady(samples, parts.compute.seconds, joules),
    )


def _joules(watts: float | None, seconds: float) -> float | None:
    # What did not happen used nothing, whoever knows its watts.
    return 0.0 if seconds == 0 else None if watts is None else watts * seconds


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
