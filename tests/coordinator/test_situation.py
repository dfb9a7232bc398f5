"""What is read out of a run's rows: readings, waiting, communication, the present point."""

from collections.abc import Callable

import pytest
from msgspec import structs

from coordinator.advice import advise
from coordinator.comparison import Recorded
from coordinator.simulator.boards import VirtualBoard
from coordinator.situation import UntoldError, joules_of, situation

Record = Callable[..., Recorded]


def test_the_newest_readings_are_in_it_also_those_after_the_last_decision(record: Record) -> None:
    where = situation(record("a"))
    assert {name: len(memory.history) for name, memory in where.memories.items()} == {"fast": 4, "slow": 4}
    assert where.shares == {"fast": 160, "slow": 40}
    assert [e.board for e in where.evidence] == ["fast", "slow"]


def test_the_present_point_is_of_the_present_rule_without_the_first_equal_round(record: Record) -> None:
    present = situation(record("a")).present
    assert (present.label, present.rounds) == ("time-only (w_e = 0)", 3)
    assert present.makespan_seconds == pytest.approx(1.6)
    assert present.joules == pytest.approx(1.6 * (5 + 3))


def test_waiting_of_a_second_and_more_is_evidence(record: Record) -> None:
    fast, slow = situation(record("a", policy="equal")).evidence
    assert fast.waits == ((3.0, 9.0),) * 4
    assert slow.waits == ()


def test_idle_watts_stand_for_waiting_that_was_never_seen(record: Record) -> None:
    run = record("a", policy="equal")
    last = {**run.decisions[-1], "idle_watts": {"fast": 9.0, "slow": 1.5}}
    _, slow = situation(structs.replace(run, decisions=(*run.decisions[:-1], last))).evidence
    assert slow.waiting_watts == 1.5


def test_a_run_that_has_decided_nothing_says_so(record: Record) -> None:
    run = record("a")
    with pytest.raises(UntoldError, match="run a has decided nothing yet"):
        situation(Recorded(run.run))
    settings = {**run.settings, "regime": "asp"}
    with pytest.raises(UntoldError, match="advice is for pma, ddp and hfl-ddp"):
        situation(structs.replace(run, run={**run.run, "settings": settings}))


SILOS = (
    VirtualBoard("fast", 100, 5, 3, silo="attic"),
    VirtualBoard("slow", 25, 4, 1, silo="attic"),
    VirtualBoard("alone", 50, 5, 1, silo="cellar"),
)


def test_a_silo_is_looked_at_alone(record: Record) -> None:
    run = record("a", boards=SILOS, regime="hfl-ddp", batch=20)
    where = situation(run, "attic")
    assert (where.regime, sorted(where.shares), where.budget) == ("ddp", ["fast", "slow"], 100)
    assert [e.board for e in where.evidence] == ["fast", "slow"]
    assert where.present.makespan_seconds is None
    assert "of silo attic alone" in where.notes[0]
    answer = advise(where, draws=10)
    assert sum(answer.predictions[0].shares.values()) == 100
    assert situation(run, "cellar").shares == {"alone": 100}


@pytest.mark.parametrize(
    ("changes", "silo", "text"),
    [
        ({"regime": "hfl-ddp"}, None, "has silos, each with samples of its own: .*--silo`: attic, cellar"),
        ({"regime": "hfl-ddp"}, "loft", "has no silo loft: ask for one with `advise --silo`: attic, cellar"),
        ({"regime": "ddp"}, "attic", "run a is ddp and has no silos: leave --silo out"),
    ],
)
def test_a_silo_has_to_be_named_where_there_are_some(
    record: Record, changes: dict[str, str], silo: str | None, text: str
) -> None:
    run = record("a", boards=SILOS, batch=20, **changes)
    with pytest.raises(UntoldError, match=text):
        situation(run, silo)


def test_joules_are_unknown_as_soon_as_one_part_is(record: Record) -> None:
    bare = VirtualBoard("bare", 50, 5, 1, metered=False)
    run = record("a", boards=(bare, VirtualBoard("fast", 100, 5, 3)))
    assert joules_of(run.closed) is None
    assert situation(run).present.joules is None
