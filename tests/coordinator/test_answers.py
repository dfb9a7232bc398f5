"""What operators ask while a run goes on and without one: done, or refused with what would be."""

from pathlib import Path

import pytest
from msgspec import structs

from edged import controls
from edged.controls import SiloSettings
from tests.coordinator.hall import Hall


@pytest.fixture
def hall(tmp_path: Path) -> Hall:
    return Hall(tmp_path)


def test_weights_are_changed_while_the_run_goes_on(hall: Hall) -> None:
    hall.add("a", "b", "c")
    hall.start(rounds=6)
    hall.until(lambda: len(hall.rows("round")) == 2)
    reply = hall.ask(controls.SetWeights(w_e=0.5))
    assert reply.ok
    assert reply.data["w_t"] == 0.5
    assert sum(reply.data["shares"].values()) == 300
    hall.until(lambda: hall.server.rounds is not None and hall.server.rounds.state.round == reply.from_round)
    decision = hall.rows("decision")[-1]
    assert (decision["w_t"], decision["w_e"]) == (0.5, 0.5)
    assert (hall.rows("round")[-1]["round"], hall.rows("round")[-1]["w_e"]) == (decision["round"] - 1, 0.0)
    hall.until(hall.over)
    control = next(row for row in hall.rows("control") if row["what"] == "weights")
    assert control["who"] == "tester@bench"
    assert control["from_round"] == reply.from_round


@pytest.mark.parametrize(("w_e", "w_t"), [(1.5, None), (-0.1, None), (0.0, 0.0), (None, 2.0)])
def test_weights_out_of_range_are_refused_with_the_range(
    hall: Hall, w_e: float | None, w_t: float | None
) -> None:
    hall.add("a")
    hall.start()
    hall.until(lambda: hall.server.rounds is not None)
    reply = hall.ask(controls.SetWeights(w_e, w_t))
    assert not reply.ok
    assert "between 0 and 1" in reply.text


def test_without_a_run_changes_are_refused_and_questions_answered(hall: Hall) -> None:
    hall.add("a")
    hall.turn()
    for action in (controls.SetWeights(0.5), controls.Pause(), controls.Stop(), controls.SetPolicy("equal")):
        reply = hall.ask(action)
        assert not reply.ok
        assert "no run is going on" in reply.text
    assert hall.ask(controls.GetStatus()).data["run"] is None
    assert [row["board"] for row in hall.ask(controls.GetBoards()).data["boards"]] == ["a"]
    assert hall.ask(controls.GetRuns()).data["runs"] == []
    assert "no run yet" in hall.ask(controls.GetRounds()).text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"task": "no-such-task"}, "no-such-task"),
        ({"task": "/tmp/evil.py"}, "by name"),
        ({"policy": "no-such-policy"}, "there are"),
        ({"policy": "./evil.py"}, "by name"),
        ({"policy_options": {"betta": 1}}, "betta"),
        ({"w_t": 0.0, "w_e": 0.0}, "between 0 and 1"),
        ({"regime": "bsp"}, "pma, ddp, hfl-ddp"),
        ({"silos": {"a": SiloSettings()}}, "silos are for regime hfl-ddp, not for pma"),
        (
            {"regime": "hfl-ddp", "silos": {"a": SiloSettings(("x",)), "b": SiloSettings(("x",))}},
            "x: named in more than one silo",
        ),
        (
            {"regime": "hfl-ddp", "silos": {"a": SiloSettings(budget=10)}},
            "the silos' budgets add up to 10, the run's is",
        ),
        ({"regime": "ddp", "policy": "oort"}, "oort"),
        ({"fixed_cost": "fitt"}, "none or fit"),
    ],
)
def test_a_run_that_cannot_be_is_refused_at_once(hall: Hall, changes: dict[str, object], words: str) -> None:
    reply = hall.start(**changes)
    assert not reply.ok
    assert words in reply.text


def test_a_run_that_cannot_be_prepared_says_why(hall: Hall) -> None:
    assert hall.start(options={"broken": True}).ok
    hall.turn()
    assert "broken" in hall.ask(controls.GetStatus()).data["failure"]
    assert ("failed", {"run": "r1", "reason": "task digits has no option broken"}) in hall.followed
    assert hall.start().ok


def test_one_run_at_a_time_and_each_name_once(hall: Hall) -> None:
    hall.add("a")
    hall.start()
    assert "r1 is not over" in hall.start(name="r2").text
    hall.until(hall.over)
    assert "another --name" in hall.start().text
    assert hall.start(name="r2").ok


def test_pause_stop_drain_and_forget(hall: Hall) -> None:
    a, b = hall.add("a", "b")
    hall.start(rounds=50)
    hall.until(lambda: len(hall.rows("round")) == 1)
    assert hall.ask(controls.Pause()).ok
    assert "already" in hall.ask(controls.Pause()).text
    hall.until(lambda: hall.server.rounds is not None and hall.server.rounds.state.phase == "paused")
    assert hall.ask(controls.Drain("b")).ok
    assert "no board x" in hall.ask(controls.Drain("x")).text
    assert "connected" in hall.ask(controls.Forget("b")).text
    number = len(hall.rows("round"))
    assert hall.ask(controls.Resume()).ok
    hall.until(lambda: len(hall.rows("round")) > number + 1)
    assert hall.rows("round")[-1]["shares"] == {"a": 300}
    b.link.close()
    hall.boards.remove(b)
    hall.turn()
    assert hall.ask(controls.Forget("b")).ok
    assert hall.broker.retained(hall.topics.of("birth", board="b")) is None
    assert [row["board"] for row in hall.ask(controls.GetBoards()).data["boards"]] == ["a"]
    assert hall.ask(controls.Stop()).ok
    changes = [(row["what"], row["who"]) for row in hall.rows("control")]
    whose = "tester@bench"
    assert changes == [(what, whose) for what in ("start", "pause", "drain", "resume", "forget", "stop")]
    hall.until(hall.over)
    assert hall.server.store.history.runs()[0]["reason"] == "stopped by tester@bench"
    hall.until(lambda: a.phase == "idle")


def test_a_board_that_missed_too_often_can_be_readmitted(hall: Hall) -> None:
    hall.add("a", "b")
    hall.start(rounds=50)
    hall.until(lambda: len(hall.rows("round")) == 1)
    assert "b is not drained" in hall.ask(controls.Readmit("b")).text
    assert hall.server.rounds is not None
    memories = hall.server.rounds.state.control.memories
    memories["b"] = structs.replace(memories["b"], misses=6)
    assert "b takes part again" in hall.ask(controls.Readmit("b")).text
    assert memories["b"].misses == 0


def test_another_policy_from_the_next_round_on(hall: Hall) -> None:
    hall.add("a", "b", "c")
    hall.start(rounds=6)
    hall.until(lambda: len(hall.rows("round")) == 2)
    assert "there are" in hall.ask(controls.SetPolicy("nonsense")).text
    assert "by name" in hall.ask(controls.SetPolicy("/tmp/x.py")).text
    reply = hall.ask(controls.SetPolicy("equal"))
    assert reply.data["shares"] == {"a": 100, "b": 100, "c": 100}
    hall.until(lambda: len(hall.rows("round")) == reply.from_round)
    assert hall.rows("round")[-1]["shares"] == {"a": 100, "b": 100, "c": 100}
    assert hall.ask(controls.SetPolicy("energy-only")).ok
    hall.until(hall.over)
    assert (hall.rows("decision")[-1]["w_t"], hall.rows("decision")[-1]["w_e"]) == (0.0, 1.0)


def test_a_damaged_store_is_an_answer_and_not_silence(hall: Hall) -> None:
    hall.server.store._connection.execute("DROP TABLE runs")
    reply = hall.ask(controls.GetRuns())
    assert not reply.ok
    assert "no such table" in reply.text
