"""Closed loop with noisy readings: what the savings of exact costs are worth when costs are measured."""

from statistics import fmean

import numpy as np
import pytest

from coordinator.controller import Carry, Member, Memory, Pool, Reading, policies
from coordinator.controller.memories import observe
from coordinator.controller.steady import Truth, steady

BUDGET, FLOOR, ROUNDS = 60_000, 64, 60
SLOWED_FROM = 25  # one board loses 40 % of its speed
BEFORE, AFTER = range(5, SLOWED_FROM), range(SLOWED_FROM + 5, ROUNDS + 1)


class Noisy:
    """A run decided by noisy readings and judged by true costs; how often its shares changed."""

    def __init__(self, fleet: tuple[Truth, ...], name: str, seed: int, noise: float, **given: object) -> None:
        random = np.random.default_rng(seed)
        policy, options = policies.find(name), policies.options(name, given)
        memories: dict[str, Memory] = {}
        previous: dict[str, int] = {}
        carry: Carry = {}
        self.joules: dict[int, float] = {}
        self.seconds: dict[int, float] = {}
        self.changes = 0
        for number in range(1, ROUNDS + 1):
            members = tuple(
                Member(
                    t.board,
                    memories.get(t.board),
                    FLOOR,
                    previous=previous.get(t.board),
                    waiting_watts_prior=t.waiting_watts,
                )
                for t in fleet
            )
            found = policy.allocate(Pool(members, BUDGET, number, carry=carry), options)
            assert sum(found.shares.values()) == BUDGET
            previous, carry = found.shares, found.carry
            self.changes += found.changed
            slow = np.array(
                [1 / 0.6 if number >= SLOWED_FROM and t.board == "arm-8core-a" else 1.0 for t in fleet]
            )
            jitter = 1 + noise * random.standard_normal((2, len(fleet)))
            n = np.array([found.shares[t.board] for t in fleet])
            times = n * slow / np.array([t.samples_per_second for t in fleet])
            active = np.array([t.active_watts for t in fleet])
            waiting = np.array([t.waiting_watts for t in fleet])
            makespan = float(times.max())
            self.seconds[number] = makespan
            self.joules[number] = float(times @ active + (makespan - times) @ waiting)
            seconds, joules = times * jitter[0], times * active * jitter[0] * jitter[1]
            for i, truth in enumerate(fleet):
                seen = Reading(
                    truth.board,
                    number,
                    int(n[i]),
                    float(seconds[i]),
                    float(joules[i]),
                    "emulated",
                    wait_seconds=float(makespan - times[i]),
                    wait_joules=float((makespan - times[i]) * waiting[i]),
                )
                memories[truth.board] = observe(memories.get(truth.board), seen)


def means(
    fleet: tuple[Truth, ...], name: str, seeds: int = 8, noise: float = 0.05, **given: object
) -> list[float]:
    """Joules and seconds before, joules and seconds after, changes of shares."""
    runs = [Noisy(fleet, name, seed, noise, **given) for seed in range(seeds)]
    return [
        fmean(run.joules[r] for run in runs for r in BEFORE),
        fmean(run.seconds[r] for run in runs for r in BEFORE),
        fmean(run.joules[r] for run in runs for r in AFTER),
        fmean(run.seconds[r] for run in runs for r in AFTER),
        fmean(run.changes for run in runs),
    ]


def test_min_energy_keeps_more_than_half_of_its_gain_under_noise(eleven: tuple[Truth, ...]) -> None:
    time_only = means(eleven, "time-only")
    saving = means(eleven, "min-energy", slack=None, deadband=0.05)
    exact = [
        steady(policies.find(name), policies.options(name, given), eleven, BUDGET, floor=FLOOR).joules
        for name, given in (("time-only", {}), ("min-energy", {"slack": None}))
    ]
    assert saving[0] < time_only[0] - 0.5 * (exact[0] - exact[1])
    assert saving[2] < time_only[2]
    assert saving[4] < 12


def test_slack_keeps_the_makespan_near_its_limit_and_still_saves(eleven: tuple[Truth, ...]) -> None:
    time_only, saving = means(eleven, "time-only"), means(eleven, "min-energy")
    assert saving[0] < 0.975 * time_only[0]
    assert saving[1] < 1.12 * time_only[1]
    assert saving[3] < 1.12 * time_only[3]


def test_time_only_stays_near_the_least_makespan_with_few_changes(eleven: tuple[Truth, ...]) -> None:
    least = BUDGET / sum(t.samples_per_second for t in eleven)
    slower = BUDGET / (sum(t.samples_per_second for t in eleven) - 0.4 * 240)
    found = means(eleven, "time-only")
    assert found[1] < 1.07 * least
    assert found[3] < 1.07 * slower
    assert found[4] < 20


@pytest.mark.parametrize("name", ["time-only", "low-energy", "min-energy", "min-time", "profiled"])
def test_without_noise_shares_change_only_when_a_board_does(name: str, eleven: tuple[Truth, ...]) -> None:
    run = Noisy(eleven, name, 0, 0.0)
    assert len({round(run.joules[r], 6) for r in range(8, SLOWED_FROM)}) == 1
    assert run.changes <= 8
