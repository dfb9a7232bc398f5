"""What a board is remembered by: averages, misses, waiting watts, and no mixing of bases."""

import msgspec
import pytest

from coordinator.controller import Memory, Reading, Settings
from coordinator.controller.memories import missed, observe, rejoined


def test_the_first_reading_starts_the_average_and_the_next_moves_it_half_way() -> None:
    memory = observe(None, Reading("a", 1, 100, 1.0, 5.0, "measured"))
    assert (memory.seconds_per_sample, memory.joules_per_sample) == (0.01, 0.05)
    memory = observe(memory, Reading("a", 2, 100, 2.0, 15.0, "measured"))
    assert memory.seconds_per_sample == pytest.approx(0.015)
    assert memory.joules_per_sample == pytest.approx(0.10)
    assert (memory.round, memory.participations) == (2, 2)


def test_beta_is_the_weight_of_the_newest_reading() -> None:
    settings = Settings(beta=0.3)
    memory = observe(None, Reading("a", 1, 10, 1.0, None), settings)
    memory = observe(memory, Reading("a", 2, 10, 2.0, None), settings)
    assert memory.seconds_per_sample == pytest.approx(0.3 * 0.2 + 0.7 * 0.1)


def test_joules_of_another_basis_start_anew() -> None:
    memory = observe(None, Reading("a", 1, 100, 1.0, 50.0, "estimated"))
    memory = observe(memory, Reading("a", 2, 100, 1.0, 5.0, "measured", uncertainty_joules=0.5))
    assert (memory.joules_per_sample, memory.basis) == (0.05, "measured")
    assert memory.relative_uncertainty == pytest.approx(0.1)


def test_joules_and_watts_of_another_scope_start_anew() -> None:
    def reading(round: int, joules: float, scope: str) -> Reading:
        return Reading(
            "a", round, 100, 1.0, joules, "measured", wait_seconds=20.0, wait_joules=joules, scope=scope
        )

    memory = observe(observe(None, reading(1, 10.0, "package")), reading(2, 10.0, "package"))
    assert (memory.joules_per_sample, memory.waiting_watts) == (0.1, 0.5)
    memory = observe(memory, reading(3, 40.0, "wall"))
    assert (memory.joules_per_sample, memory.scope, memory.waiting_watts) == (0.4, "wall", None)
    memory = observe(memory, reading(4, 40.0, "wall"))
    assert (memory.joules_per_sample, memory.waiting_watts) == (0.4, 2.0)


def test_a_round_without_joules_keeps_the_old_ones_and_their_round() -> None:
    memory = observe(None, Reading("a", 1, 100, 1.0, 5.0, "measured"))
    for joules in (None, 0.0):  # a compute window of zero joules is a broken sensor, not a free sample
        memory = observe(memory, Reading("a", 2, 100, 1.0, joules, "measured"))
        assert (memory.joules_per_sample, memory.joules_round, memory.round) == (0.05, 1, 2)


def test_a_report_ends_the_row_of_misses() -> None:
    memory = missed(missed(observe(None, Reading("a", 1, 100, 1.0, None))))
    assert (memory.misses, memory.seconds_per_sample) == (2, 0.01)
    assert observe(memory, Reading("a", 4, 100, 1.0, None)).misses == 0
    assert rejoined(memory).misses == 0
    assert missed(Memory("new")).misses == 1


def test_waiting_watts_are_believed_after_enough_waiting() -> None:
    def wait(memory: Memory | None, round: int, seconds: float, watts: float) -> Memory:
        return observe(
            memory,
            Reading("a", round, 1, 1.0, None, wait_seconds=seconds, wait_joules=seconds * watts),
        )

    memory = wait(None, 1, 4.0, 2.0)
    assert memory.waiting_watts is None
    memory = wait(memory, 2, 0.5, 9.0)  # shorter than a meter can tell
    memory = wait(memory, 3, 6.0, 2.0)
    assert memory.waiting_watts == pytest.approx(2.0)
    for round in range(4, 60):
        memory = wait(memory, round, 20.0, 3.0)
    assert memory.waiting_watts == pytest.approx(3.0, rel=1e-3)
    assert memory.waiting_seconds <= 60.0


def test_loss_utility_uses_squares_where_they_come() -> None:
    squares = observe(None, Reading("a", 1, 100, 1.0, None, loss_sum=100.0, loss_square_sum=400.0))
    assert squares.loss_utility == pytest.approx(100 * 2.0)
    assert observe(None, Reading("a", 1, 100, 1.0, None, loss_sum=150.0)).loss_utility == 150.0
    assert observe(None, Reading("a", 1, 100, 1.0, None)).loss_utility is None


def test_a_memory_survives_the_store() -> None:
    memory = observe(None, Reading("a", 1, 100, 1.0, 5.0, "measured"), Settings(fixed_cost="fit"))
    assert msgspec.json.decode(msgspec.json.encode(memory), type=Memory) == memory


@pytest.mark.parametrize(
    ("samples", "seconds", "joules", "said"),
    [
        (0, 1.0, None, "a: a reading needs at least one sample, not 0"),
        (1, 0.0, None, "a: seconds must be finite and above 0, not 0.0"),
        (1, float("nan"), None, "a: seconds must be finite"),
        (1, 1.0, -1.0, "a: joules must be finite and not negative, not -1.0"),
        (1, 1.0, float("inf"), "a: joules must be finite"),
    ],
)
def test_a_reading_that_cannot_be_is_refused(
    samples: int, seconds: float, joules: float | None, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Reading("a", 1, samples, seconds, joules)


@pytest.mark.parametrize("wrong", [{"beta": 0.0}, {"beta": 1.1}, {"history": 1}, {"misses_to_floor": 7}])
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        msgspec.convert(wrong, Settings)
