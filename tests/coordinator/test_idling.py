"""Watts of a board without an order, and that policies take them for those of waiting."""

import pytest

from coordinator.allocation import Control, allocate
from coordinator.controller import Memory
from coordinator.idling import Idling
from edged.messages import Power


def power(joules: float, order: str | None = None, boot: str = "b1", basis: str = "measured") -> Power:
    return Power("a", boot, "cpu+ram", basis, {}, {"cpu": joules, "ram": 1.0, "other": 99.0}, order)


def heard(*messages: tuple[float, Power]) -> Idling:
    idling = Idling()
    for now, message in messages:
        idling.hear(message, now)
    return idling


def test_ten_idle_seconds_tell_the_watts_of_the_headline() -> None:
    assert heard(*((float(t), power(2.0 * t)) for t in range(10))).watts is None
    assert heard(*((float(t), power(2.0 * t)) for t in range(11))).watts == pytest.approx(2.0)


def test_seconds_with_an_order_are_not_idle_ones() -> None:
    idle = [(float(t), power(2.0 * t)) for t in range(11)]
    busy = [(11.0 + t, power(22.0 + 9.0 * t, "r.1.a.1")) for t in range(20)]
    assert heard(*idle, *busy, (31.0, power(500.0))).watts == pytest.approx(2.0)


def test_gaps_new_processes_and_counters_that_fall_back_are_left_out() -> None:
    idle = [(float(t), power(2.0 * t)) for t in range(12)]
    after = [(100.0, power(900.0)), (101.0, power(5.0, boot="b2")), (102.0, power(7.0, boot="b2"))]
    found = heard(*idle, *after)
    assert [found.seconds, found.joules] == pytest.approx([12.0, 24.0])


def test_joules_of_another_basis_start_anew() -> None:
    idle = [(float(t), power(2.0 * t)) for t in range(12)]
    assert heard(*idle, (12.0, power(30.0, basis="estimated"))).watts is None


def test_another_headline_starts_anew_and_the_two_counters_are_not_compared() -> None:
    idle = [(float(t), power(2.0 * t)) for t in range(12)]
    plug = [
        (
            12.0 + t,
            Power("a", "b1", "plug", "measured", {}, {"plug": 7000.0 + 5.0 * t, "cpu": 24.0, "ram": 1.0}),
        )
        for t in range(11)
    ]
    assert heard(*idle, plug[0]).watts is None
    assert heard(*idle, *plug).watts == pytest.approx(5.0)


def test_a_board_without_a_meter_tells_nothing() -> None:
    bare = Power("a", "b1")
    assert heard(*((float(t), bare) for t in range(20))).watts is None


def test_a_board_that_never_waits_is_charged_its_idle_watts_and_not_a_guess() -> None:
    memories = {
        "fast": Memory("fast", 0.001, 0.02, "measured", round=3, joules_round=3, waiting_watts=3.0),
        "slow": Memory("slow", 0.004, 0.012, "measured", round=3, joules_round=3),
    }
    control = Control("min-energy", {}, 1.0, 0.0, memories=memories)
    guessed = allocate(control, ("fast", "slow"), 1000, 4, 10)
    assert any("waiting watts taken as" in note and "slow" in note for note in guessed.notes)
    control.idle_watts = {"slow": 2.5}
    told = allocate(control, ("fast", "slow"), 1000, 4, 10)
    assert not any("waiting watts taken as" in note for note in told.notes)
    assert told.predicted_wait_joules != guessed.predicted_wait_joules
