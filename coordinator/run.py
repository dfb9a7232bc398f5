"""All of a run that survives a restart of the coordinator, as one plain value. Pure."""

import math
from typing import Any

from msgspec import Struct

from coordinator.allocation import Control, controlled
from coordinator.assignments import Assignment
from coordinator.controller import Weights
from coordinator.events import Prepared
from coordinator.pieces import Queue
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
    fingerprint: str | None
    control: Control
    queue: Queue
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
    if s.momentum is not None and not 0 <= s.momentum < 1:
        raise ValueError(f"momentum must be at least 0 and below 1, not {s.momentum}")
    if s.weight_decay is not None and not 0 <= s.weight_decay < math.inf:
        raise ValueError(f"weight_decay must not be negative, but is {s.weight_decay}")


def begin(prepared: Prepared, term: int, boot: str) -> RunState:
    """A run that waits for its boards. Raises ValueError for a policy, option or weight that is not one."""
    s = prepared.settings
    check(s)
    control = controlled(s.policy, s.policy_options, Weights(s.w_t, s.w_e), s.regime, s.fixed_cost)
    return RunState(
        prepared.run,
        s,
        term,
        boot,
        prepared.task_hash,
        prepared.manifest,
        prepared.fingerprint,
        control,
        Queue(prepared.pool_samples or 0),
    )
