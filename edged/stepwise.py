"""Batch sizes that synchronous ranks change among themselves every few steps, from their compute times. Pure.

Every rank hears the same times and comes to the same sizes; the global batch of a step is never changed
(ALGORITHMS 2.2, 3.4). What is learnt of ceilings is plain data, for the caller to keep over rounds.
"""

from collections.abc import Mapping, Sequence

from edged.ceilings import Ceilings, State
from edged.groups import Stepwise
from edged.splitting import clamped, whole

RULES = ("ema-batch", "omnilearn")


def batches(
    speeds: Sequence[float],
    batch: int,
    lower: Sequence[int] | None = None,
    upper: Sequence[int] | None = None,
) -> list[int]:
    """b_i of one step in proportion to the speeds: at least 1 each (or `lower`), in all exactly `batch`.

    Largest remainder, ties to the lowest rank. Raises ValueError for a batch that the bounds do not allow.
    """
    m = len(speeds)
    floors, caps = lower or [1] * m, upper or [batch] * m
    if batch < m:
        raise ValueError(f"a step of {batch} samples does not reach over {m} ranks")
    if not sum(floors) <= batch <= sum(caps):
        raise ValueError(f"a step of {batch} samples is not within the bounds {floors} to {caps}")
    return whole(clamped(speeds, batch, floors, caps), batch, caps)


class Adjuster:
    """One round's changes. Before the first the sizes are the schedule's (`speeds` is None), unless a ceiling
    that was learnt before forbids one of them."""

    def __init__(
        self,
        rule: Stepwise,
        shares: Sequence[int],
        steps: int = 1,
        boards: Sequence[str] = (),
        learnt: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        """`learnt` is `state` as another round of the same run left it, by names of `boards`."""
        if rule.rule not in RULES:
            raise ValueError(f"no step-level rule {rule.rule!r}; there are: {', '.join(RULES)}")
        total, m = sum(shares), len(shares)
        self._rule = rule
        self._smoothed: list[float] | None = None
        self._parts = [share / total for share in shares]
        self._batch = total / steps
        self._boards = list(boards) or [str(rank) for rank in range(m)]
        self._ceilings = Ceilings(rule.fall, learnt) if rule.fall is not None else None
        # Rounded so that what fits a round fits each of its steps, and that the whole has room.
        self._lower = [max(1, rule.lower // steps)] * m
        self._upper = None if rule.upper is None else [max(1, -(-rule.upper // steps))] * m
        self.speeds: list[float] | None = None
        self.changes = 0
        self.notes: list[str] = []
        """What was learnt of ceilings when it last heard."""
        if self._ceilings is not None:
            caps = self._caps(-(-total // steps))
            if any(part * self._batch > cap for part, cap in zip(self._parts, caps, strict=True)):
                self.speeds = list(self._parts)

    @property
    def state(self) -> State:
        """What is learnt of ceilings."""
        return self._ceilings.state if self._ceilings is not None else {}

    def sizes(self, batch: int) -> list[int]:
        """b_i of a step of so many samples, once there are speeds."""
        return batches(self.speeds or self._parts, batch, self._lower, self._caps(batch))

    def hear(self, seconds: Sequence[float], samples: Sequence[int]) -> bool:
        """Compute seconds and samples of every rank since the last call; True when the sizes change.

        ema-batch averages throughput and always follows it. omnilearn averages the time a sample since its
        last change, and changes all sizes once one of them is off by more than the deadband.
        """
        if any(n < 1 or t <= 0 for t, n in zip(seconds, samples, strict=True)):
            return False
        if self._rule.rule == "ema-batch":
            self._average([n / t for t, n in zip(seconds, samples, strict=True)])
            return self._become(list(self._smoothed or ()))
        self._average([t / n for t, n in zip(seconds, samples, strict=True)])
        speeds = [1 / time for time in self._smoothed or ()]
        present = {board: part * self._batch for board, part in zip(self._boards, self._parts, strict=True)}
        if self._ceilings is not None:
            self.notes = self._ceilings.hear(present, dict(zip(self._boards, speeds, strict=True)))
        wanted = self._wanted(speeds)
        off = max(abs(new - old) / old for new, old in zip(wanted, self._parts, strict=True))
        if off <= self._rule.deadband:
            return False
        if self._ceilings is not None:
            self._ceilings.changed(present, dict(zip(self._boards, speeds, strict=True)))
        self._smoothed = None
        return self._become(speeds)

    def _average(self, values: list[float]) -> None:
        old, beta = self._smoothed, self._rule.beta
        self._smoothed = (
            values if old is None else [beta * x + (1 - beta) * y for x, y in zip(values, old, strict=True)]
        )

    def _become(self, speeds: list[float]) -> bool:
        self.speeds, self.changes = speeds, self.changes + 1
        self._parts = self._wanted(speeds)
        return True

    def _wanted(self, speeds: Sequence[float]) -> list[float]:
        """Parts of the mean step, within the bounds."""
        real = clamped(speeds, self._batch, self._lower, self._caps(self._batch))
        return [value / self._batch for value in real]

    def _caps(self, batch: float) -> list[int]:
        """Given ones, lowered to what was learnt."""
        room = int(-(-batch // 1))
        given = self._upper or [room] * len(self._boards)
        return (
            given if self._ceilings is None else self._ceilings.caps(self._boards, given, self._lower, room)
        )
