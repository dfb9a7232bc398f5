"""A coordinator and its boards over one broker: runs end, survive kills, and answer their operator."""

from pathlib import Path

import numpy as np
import pytest

from edged import controls
from edged.messages import FleetState, decode, encode
from edged.weights import arrays
from tests.coordinator.hall import Hall


@pytest.fixture
def hall(tmp_path: Path) -> Hall:
    return Hall(tmp_path)


def test_boards_train_one_model_to_the_end_of_the_run(hall: Hall) -> None:
    hall.add("a", "b", "c")
    assert hall.start().ok
    hall.until(hall.over)
    rounds = hall.rows("round")
    assert [row["round"] for row in rounds] == [1, 2, 3]
    assert all(row["accepted"] == row["ordered"] == 300 for row in rounds)
    assert hall.server.store.history.runs()[0]["complete"] is True
    assert [(row["round"], row["accuracy"]) for row in hall.rows("evaluation")] == [
        (n, 0.5) for n in range(4)
    ]
    assert rounds[-1]["shares"]["a"] > rounds[-1]["shares"]["c"]
    merged = dict(arrays(hall.server.store.checkpoints.model("r1.3")))
    assert merged["n"] == 3
    assert np.all(merged["w"] > np.linspace(-1, 1, 3000))
    assert hall.odd() == {}
    assert [hall.odd(board.name) for board in hall.boards] == [{}, {}, {}]


def test_the_model_goes_out_once_whatever_the_number_of_boards(tmp_path: Path) -> None:
    sent = {}
    for names in ("ab", "abcdefgh"):
        hall = Hall(tmp_path / names)
        hall.add(*names)
        hall.start(budget=80)
        hall.until(hall.over)
        sent[names] = dict(hall.server.distribution.published_bytes)
        length = hall.server.store.checkpoints.model("r1.1").stat().st_size
        assert sent[names] == {f"r1.{n}": length for n in range(3)}
        hall.server.close()


def test_what_the_shared_topic_lost_is_wanted_and_answered(hall: Hall) -> None:
    for board in hall.add("a", "b", "c"):
        board.lossy = True
    hall.start()
    hall.until(hall.over)
    assert all(row["accepted"] == 300 for row in hall.rows("round"))
    lossless = hall.server.store.checkpoints.model("r1.1").stat().st_size
    assert max(hall.server.distribution.published_bytes.values()) < 3 * lossless


def test_a_killed_coordinator_goes_on_in_the_same_round_with_the_same_accounting(hall: Hall) -> None:
    hall.add("a", "b", "c")
    hall.start(rounds=6)
    for moment in (0.1, 0.4, 0.9, 1.6, 2.5, 3.1):
        end = hall.now + moment
        while hall.now < end:
            hall.turn()
        assert hall.server.rounds is not None
        term, state = hall.server.term, hall.server.rounds.state
        hall.kill()
        assert hall.server.term == term + 1
        assert (hall.server.rounds.state.round, hall.server.rounds.state.accepted) == (
            state.round,
            state.accepted,
        )
    hall.until(hall.over)
    rows = hall.rows("round")
    assert [row["round"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert all(row["accepted"] == row["ordered"] == 300 for row in rows)


def test_a_complete_update_on_the_disk_is_not_fetched_again(hall: Hall) -> None:
    hall.add("a", "b", seconds_per_sample=0.01)
    hall.start()
    spooled = hall.folder / "store" / "runs" / "r1" / "updates"
    hall.until(lambda: spooled.exists() and any(path.suffix == ".safetensors" for path in spooled.iterdir()))
    received = hall.server.collection.received_bytes
    hall.kill()
    hall.until(lambda: bool(hall.rows("round")))
    assert received > 0
    assert hall.server.collection.received_bytes < 2 * received
    assert hall.rows("round")[0]["accepted"] == 300


def test_a_dead_boards_pieces_are_dealt_first_in_the_next_round(hall: Hall) -> None:
    a, b = hall.add("a", "b", seconds_per_sample=0.1)
    hall.start()
    hall.until(lambda: b.phase == "training")
    assert b.order is not None
    lost = b.order.pieces
    b.link.kill()
    hall.boards.remove(b)
    (again,) = hall.add("b", boot="second")
    hall.until(lambda: len(hall.rows("round")) == 1)
    hall.until(lambda: a.order is not None and a.order.round == 2 and again.order is not None)
    assert a.order is not None
    assert again.order is not None
    dealt = [piece for order in (a.order, again.order) for piece in order.pieces]
    assert min(piece.start for piece in dealt) == lost[0].start
    hall.until(hall.over, 600)
    assert sum(row["accepted"] for row in hall.rows("round")) == 900


def test_a_broker_restart_loses_nothing(hall: Hall) -> None:
    hall.add("a", "b", "c")
    hall.start()
    hall.until(lambda: any(board.phase == "uploading" for board in hall.boards))
    hall.broker.stop()
    hall.turn(5)
    hall.broker.start()
    hall.until(hall.over)
    assert all(row["accepted"] == 300 for row in hall.rows("round"))


def test_a_full_disk_holds_the_run_up_and_is_said(hall: Hall) -> None:
    hall.add("a", "b")
    hall.start()
    hall.until(lambda: hall.server.rounds is not None and hall.server.rounds.state.round == 1)
    connection = hall.server.store._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    hall.until(lambda: bool(hall.server.execution.problem))
    status = hall.ask(controls.GetStatus())
    assert "disk is full" in status.data["problem"]
    hall.turn(5)
    connection.execute("PRAGMA max_page_count = 1000000")
    hall.until(hall.over)
    assert all(row["accepted"] == 300 for row in hall.rows("round"))


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
        ({"regime": "bsp"}, "pma"),
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
    hall.until(hall.over)
    assert hall.server.store.history.runs()[0]["reason"] == "stopped by tester@bench"
    hall.until(lambda: a.phase == "idle")


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


def test_the_fleets_state_is_retained_and_the_will_says_lost(hall: Hall) -> None:
    hall.add("a")
    hall.turn()
    topic = hall.topics.of("fleet")
    assert decode(FleetState, hall.broker.retained(topic) or b"").link == "up"
    assert hall.server.link.status().stage == "up"
    hall.kill()
    hall.turn()
    state = decode(FleetState, hall.broker.retained(topic) or b"")
    assert (state.link, state.boot) == ("up", hall.server.boot)
    hall.server.close()
    assert decode(FleetState, hall.broker.retained(topic) or b"").link == "closed"


def test_a_newer_coordinator_takes_over(hall: Hall) -> None:
    hall.turn()
    newer = FleetState("other", hall.server.term + 1, "up", "elsewhere")
    older = FleetState("other", hall.server.term - 1, "up", "elsewhere")
    hall.operator.publish(hall.topics.of("fleet"), encode(older), retain=True)
    hall.turn()
    assert not hall.server.deposed
    hall.operator.publish(hall.topics.of("fleet"), encode(newer), retain=True)
    hall.turn()
    assert "elsewhere" in hall.server.deposed


def test_only_the_newest_models_and_the_last_stay(hall: Hall) -> None:
    hall.add("a", "b")
    hall.start(rounds=6)
    hall.until(hall.over)
    assert hall.server.store.checkpoints.versions("r1") == ["r1.4", "r1.5", "r1.6"]
    assert list((hall.folder / "store" / "runs" / "r1" / "updates").iterdir()) == []
