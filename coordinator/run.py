"""All of a run that survives a restart of the coordinator, as one plain value. Pure."""

import math
from typing import Any

from msgspec import Struct, structs

from coordinator.allocation import Control, controlled
from coordinator.assignments import Assignment
from coordinator.controller import Memory, Weights
from coordinator.events import Prepared
from coordinator.group import Group
from coordinator.pushes import Pushes, check_size, settled
from coordinator.silos import ALL, SYNCHRONOUS, Silo, only
from edged.controls import RunSettings
from edged.messages import Manifest
from edged.orders import OPTIMIZER_STATES, OPTIMIZERS
from edged.topics import version_id


class RunState(Struct):
    """Times are monotonic seconds of the process that saved them; `clock` is the moment of the last event."""

    run: str
    settings: RunSettings
    term: int
    boot: str
    task_hash: str
    manifest: Manifest
    rule: Control
    """Policy, options and weights; what is learnt of boards is their silo's."""
    silos: dict[str, Silo]
    groups: dict[str, Group] = {}
    """Ranks of the running round, by silo."""
    unfit: dict[str, tuple[str, str]] = {}
    """Boards that cannot be ranks: the process that showed it, and why."""
    phase: str = "gathering"
    reason: str = ""
    round: int = 0
    merges: int = 0
    accepted: int = 0
    assignments: dict[str, Assignment] = {}
    open_count: int = 0
    costs: dict[str, float | None] = {}
    share_reason: str = ""
    share_rule: dict[str, Any] = {}
    """Policy and weights that gave the present shares: a change in mid-round holds from the next one on."""
    opened_seconds: float = 0.0
    drained: list[str] = []
    empty_rounds: int = 0
    not_before: float = 0.0
    paused: bool = False
    last: dict[str, Any] = {}
    clock: float = 0.0
    pushes: Pushes | None = None
    """Of regime asp."""

    @property
    def control(self) -> Control:
        """The control of the only silo; with several the run's rule, which knows no board."""
        only = self.silos.get(ALL)
        return self.rule if only is None else only.control

    def silo_of(self, board: str) -> Silo | None:
        """The silo that the board has an order or a memory in."""
        if ALL in self.silos:
            return self.silos[ALL]
        a = self.assignments.get(board)
        if a is not None and a.silo:
            return self.silos[a.silo]
        return next((silo for silo in self.silos.values() if board in silo.control.memories), None)

    def memory(self, board: str) -> Memory | None:
        """What is known of a board."""
        silo = self.silo_of(board)
        return None if silo is None else silo.control.memories.get(board)

    def silent(self, board: str) -> bool:
        """Whether it missed so many rounds that it is held at its floor, or has left the pool."""
        memory = self.memory(board)
        return memory is not None and memory.misses >= self.rule.settings.misses_to_floor

    @property
    def shares(self) -> dict[str, int]:
        """The shares of all boards, of whatever silo."""
        return {board: n for silo in self.silos.values() for board, n in silo.control.shares.items()}

    @property
    def stepping(self) -> bool:
        """True while some group of ranks still has to come to its end."""
        return any(group.standing not in ("done", "lost") for group in self.groups.values())

    @property
    def waiting_samples(self) -> int:
        """Samples that were lost and are not dealt again yet."""
        return sum(silo.queue.waiting_samples for silo in self.silos.values())

    @property
    def open_samples(self) -> int:
        """Samples that are ordered, and neither accepted nor lost."""
        return sum(a.samples for a in self.assignments.values() if a.open)

    @property
    def target(self) -> int:
        """Accepted samples that end the run."""
        return self.settings.rounds * self.settings.budget

    @property
    def version(self) -> str:
        """The newest model version."""
        return version_id(self.run, self.merges)

    @property
    def batch(self) -> int:
        """Local batch; settled before a run begins."""
        return self.settings.batch or 1

    def rebase(self, now: float) -> None:
        """Carry its times over to another process's clock, as if no time had passed in between."""
        moved = now - self.clock
        self.opened_seconds += moved
        self.not_before += moved
        self.clock = now
        for a in self.assignments.values():
            a.shift(moved)
            a.sent_seconds = None
        for group in self.groups.values():
            group.until_seconds += moved
        for pusher in self.pushes.boards.values() if self.pushes else ():
            pusher.not_before += moved


def check(s: RunSettings) -> None:
    """Raises ValueError naming the setting that no board could train with, and what it may be."""
    for name, value, known in (
        ("energy_window", s.energy_window, ("compute", "round")),
        ("optimizer", s.optimizer, (None, *OPTIMIZERS)),
        ("optimizer_state", s.optimizer_state, OPTIMIZER_STATES),
    ):
        if value not in known:
            raise ValueError(f"{name} is {' or '.join(k for k in known if k)}, not {value!r}")
    if s.batch is None or s.learning_rate is None:
        raise ValueError("batch and learning rate must be settled before a run begins")
    if not 0 < s.learning_rate < math.inf:
        raise ValueError(f"learning_rate must be above 0, not {s.learning_rate}")
    if s.learning_rate_batch is not None and s.regime not in SYNCHRONOUS:
        names = " and ".join(SYNCHRONOUS)
        raise ValueError(f"learning_rate_batch is for {names}, where batch is that of all ranks")
    if s.momentum is not None and not 0 <= s.momentum < 1:
        raise ValueError(f"momentum must be at least 0 and below 1, not {s.momentum}")
    if s.weight_decay is not None and not 0 <= s.weight_decay < math.inf:
        raise ValueError(f"weight_decay must not be negative, but is {s.weight_decay}")


def rate(asked: float, batch: int, settings: RunSettings) -> float:
    """What boards train with: linear in the batch over the one that the asked rate is for, where one is given
    (off by default; OmniLearn has the option, its rule is not known)."""
    reference = settings.learning_rate_batch
    return asked if reference is None else asked * batch / reference


def begin(prepared: Prepared, term: int, boot: str) -> RunState:
    """A run that waits for its boards. Raises ValueError for a policy, option or weight that is not one."""
    asynchronous = settled(prepared.settings)
    s = structs.replace(prepared.settings, asynchronous=asynchronous)
    check(s)
    check_size(s, prepared.manifest.length_bytes)
    control = controlled(s.policy, s.policy_options, Weights(s.w_t, s.w_e), s.regime, s.fixed_cost)
    several = s.regime == "hfl-ddp"  # formed when its boards are there
    first = only(s, control, prepared.fingerprint, prepared.pool_samples)
    return RunState(
        prepared.run,
        s,
        term,
        boot,
        prepared.task_hash,
        prepared.manifest,
        control,
        {} if several else {ALL: first},
        pushes=None if asynchronous is None else Pushes(asynchronous),
    )
