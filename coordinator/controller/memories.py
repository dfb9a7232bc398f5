"""From readings to what is known of a board: moving averages, misses, waiting watts.

Joules of another basis or scope start a new average: measured and estimated ones, those of the wall and of a
processor are never mixed.
"""

import math

from msgspec.structs import replace

from coordinator.controller import Memory, Reading, Settings
from coordinator.controller.fit import fixed_cost

DEFAULTS = Settings()
WAITING_HORIZON_SECONDS = 60.0  # older waiting than this is forgotten in proportion
SHORTEST_WAIT_SECONDS = 1.0  # below it a meter sees mostly its own granularity


def average(old: float | None, new: float, beta: float) -> float:
    """x_hat = beta x + (1 - beta) x_hat; the first value starts it."""
    return new if old is None else beta * new + (1 - beta) * old


def observe(memory: Memory | None, reading: Reading, settings: Settings = DEFAULTS) -> Memory:
    """The memory after one accepted reading of the board."""
    memory = memory or Memory(reading.board)
    beta, n = settings.beta, reading.samples
    joules = reading.joules if reading.joules else None  # a compute window of 0 J is a broken sensor
    kind, old_kind = (reading.basis, reading.scope), (memory.basis, memory.scope)
    rebased = joules is not None and memory.joules_per_sample is not None and kind != old_kind
    # Its waiting came before the change.
    memory = _without_waiting(memory) if rebased else _with_waiting(memory, reading, settings)
    utility = _loss_utility(reading)
    history = memory.history
    if rebased:
        history = tuple((samples, seconds, None) for samples, seconds, _ in history)
    history = (*history, (n, reading.seconds, joules))[-settings.history :]
    changes: dict[str, object] = {
        "misses": 0,
        "round": reading.round,
        "participations": memory.participations + 1,
        "history": history,
        "loss_utility": memory.loss_utility if utility is None else utility,
        "seconds_per_sample": average(memory.seconds_per_sample, reading.seconds / n, beta),
    }
    if joules is not None:
        old = None if rebased else memory.joules_per_sample
        uncertainty = reading.uncertainty_joules
        changes |= {
            "joules_per_sample": average(old, joules / n, beta),
            "basis": reading.basis,
            "scope": reading.scope,
            "joules_round": reading.round,
            "relative_uncertainty": None if uncertainty is None else uncertainty / joules,
        }
    memory = replace(memory, **changes)
    return _with_fixed_costs(memory, settings, rebased) if settings.fixed_cost == "fit" else memory


def missed(memory: Memory) -> Memory:
    """The memory after a round without the board's report; what was known stays, stale."""
    return replace(memory, misses=memory.misses + 1)


def rejoined(memory: Memory) -> Memory:
    """The memory of a board that is back after it left the pool: its last costs count again."""
    return replace(memory, misses=0)


def _loss_utility(reading: Reading) -> float | None:
    """|B| sqrt(mean loss^2); from the plain sum it is a lower bound (Jensen), used where no squares came."""
    if reading.loss_square_sum is not None and reading.loss_square_sum >= 0:
        return math.sqrt(reading.samples * reading.loss_square_sum)
    return None if reading.loss_sum is None else abs(reading.loss_sum)


def _with_waiting(memory: Memory, reading: Reading, settings: Settings) -> Memory:
    seconds, joules = reading.wait_seconds, reading.wait_joules
    if seconds is None or joules is None or seconds < SHORTEST_WAIT_SECONDS:
        return memory
    seconds += memory.waiting_seconds
    joules += memory.waiting_joules
    watts = joules / seconds if seconds >= settings.waiting_seconds else memory.waiting_watts
    keep = min(1.0, WAITING_HORIZON_SECONDS / seconds)
    return replace(memory, waiting_seconds=seconds * keep, waiting_joules=joules * keep, waiting_watts=watts)


def _without_waiting(memory: Memory) -> Memory:
    return replace(memory, waiting_seconds=0.0, waiting_joules=0.0, waiting_watts=None)


def _with_fixed_costs(memory: Memory, settings: Settings, rebased: bool) -> Memory:
    """Fit a where n varied enough; keep the older a otherwise. Then tau is the average of (t - a)/n."""
    times = [(n, seconds) for n, seconds, _ in memory.history]
    energies = [(n, joules) for n, _, joules in memory.history if joules is not None]
    a = fixed_cost(times, memory.fixed_seconds)
    b = fixed_cost(energies, None if rebased else memory.fixed_joules)
    changes: dict[str, object] = {"fixed_seconds": a, "fixed_joules": b}
    for name, fixed, values in (("seconds_per_sample", a, times), ("joules_per_sample", b, energies)):
        if fixed is not None and values:
            slope: float | None = None
            for n, value in values:
                slope = average(slope, max(value - fixed, 0.05 * value) / n, settings.beta)
            changes[name] = slope
    return replace(memory, **changes)
