"""Following a run: coordinator and broker come and go, runs that never begin or are gone, last figures."""

from typing import Any

import pytest
from msgspec.structs import replace

from coordinator.commands._follow import Follower
from edged.messages import FleetState, Waiting

UP = FleetState("c1", 1, "up", "pi", run="r1", rounds=3, phase="running")


class Watch:
    """A follower of r1, and what it said on standard error."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.evaluations: list[dict[str, Any]] = []
        self.follower = Follower("r1", 300, self._fetch, as_json=False)
        self.capsys = capsys
        self.row: dict[str, Any] = {
            "round": 3,
            "accepted_in_all": 300,
            "ordered": 100,
            "accepted": 100,
            "makespan_seconds": 1.0,
            "longest": "a",
            "compute_joules_by_basis": {},
            "joules_unknown_of": [],
            "shares": {"a": 100},
        }

    def see(self, **changes: Any) -> list[str]:
        self.follower.see(replace(UP, **changes))
        return self.capsys.readouterr().err.splitlines()

    def told(self) -> list[str]:
        return self.capsys.readouterr().out.splitlines()

    def _fetch(self, last: int) -> dict[str, Any]:
        return {"rounds": [self.row], "evaluations": self.evaluations}


@pytest.fixture
def watch(capsys: pytest.CaptureFixture[str]) -> Watch:
    return Watch(capsys)


@pytest.mark.parametrize(("run", "phase"), [(None, "idle"), ("r0", "done")])
def test_a_run_that_could_not_begin_ends_it_whatever_ran_before(
    watch: Watch, run: str | None, phase: str
) -> None:
    watch.see(phase="preparing")
    watch.see(run=run, phase=phase, reason="run r1 could not begin: no option foo")
    assert watch.follower.done
    assert watch.follower.reason == "run r1 could not begin: no option foo"


def test_another_run_of_a_similar_name_is_not_ours(watch: Watch) -> None:
    watch.see(run="r10", phase="done", reason="run r10 could not begin: no option foo")
    assert not watch.follower.done


def test_a_coordinator_that_is_gone_and_back_is_said_though_its_will_knows_no_run(watch: Watch) -> None:
    assert watch.see(run=None, phase="idle", link="lost") == [
        "the coordinator is gone; the run goes on when it is back"
    ]
    assert watch.see(run=None, phase="idle", link="lost") == []
    assert "when the coordinator is back" in watch.follower.farewell()
    assert watch.see() == ["the coordinator is back"]
    assert watch.see(run=None, link="lost") == ["the coordinator is gone; the run goes on when it is back"]


def test_a_coordinator_that_lost_the_run_is_not_followed_for_ever(watch: Watch) -> None:
    watch.see(phase="preparing")
    for _ in range(3):
        assert not watch.follower.done
        watch.see(boot="c2", run=None, phase="idle")
    assert watch.follower.done
    assert "it has no run; `edged-coordinator runs`" in watch.follower.reason


def test_one_state_older_than_the_run_ends_nothing(watch: Watch) -> None:
    for _ in range(4):
        watch.see(run="r0", phase="done")
        watch.see()
    assert not watch.follower.done


def test_a_round_beyond_the_last_says_why_there_is_one(watch: Watch) -> None:
    watch.follower.see(replace(UP, rounds=2, last={"run": "r1", "round": 3}))
    assert watch.told()[0].startswith("round 3/2 (a short last round makes up for lost samples): makespan")
    again = Watch(watch.capsys)
    again.follower.see(replace(UP, last={"run": "r1", "round": 3}))
    assert again.told()[0].startswith("round 3/3: makespan")


def test_the_last_figures_are_those_of_the_last_round(watch: Watch) -> None:
    watch.see(phase="done", last={"run": "r1", "round": 3}, reason="all 300 samples are accepted")
    watch.evaluations = []
    assert not watch.follower.measured()
    watch.evaluations = [{"round": 3, "accuracy": 0.5}]
    assert watch.follower.measured()


def test_a_round_that_waits_long_says_for_whom_once(watch: Watch) -> None:
    soon = (Waiting("a", "to be ready for the other ranks", 2.0, 60.0),)
    late = (Waiting("a", "to be ready for the other ranks", 12.0, 48.0), Waiting("b", "training", 3.0, 60.0))
    assert watch.see(round=1, waiting=soon) == []
    assert watch.see(round=1, waiting=late) == ["round 1 waits for a to be ready for the other ranks"]
    assert watch.see(round=1, waiting=late) == []


def test_a_round_whose_emulated_boards_fell_behind_says_that_its_figures_are_invalid(watch: Watch) -> None:
    watch.row["behind_pace"] = 0.229
    (said,) = watch.see(last={"run": "r1", "round": 3})
    assert "23 % of its steps took longer" in said
    assert "invalid" in said
