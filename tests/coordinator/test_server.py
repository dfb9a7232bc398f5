"""A coordinator and its boards over one broker: runs end, survive kills, and answer their operator."""

import re
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from coordinator.runs import name_of
from edged import controls
from edged.messages import Energy, FleetState, Report, Steady, decode, encode
from edged.weights import arrays
from tests.coordinator.hall import Hall
from tests.coordinator.stand_ins import Unmeasuring


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


@pytest.mark.parametrize(
    ("changes", "rate"),
    [
        ({}, 0.1),
        ({"learning_rate_batch": 20}, 0.05),  # the task's own batch is 10
        ({"batch": 60, "learning_rate": 0.02, "learning_rate_batch": 20}, 0.06),
    ],
)
def test_the_learning_rate_is_linear_in_the_batch_where_it_is_asked_for(
    hall: Hall, changes: dict[str, float], rate: float
) -> None:
    hall.add("a")
    assert hall.start(regime="ddp", **changes).ok
    hall.until(lambda: hall.server.rounds is not None)
    assert hall.server.rounds is not None
    assert hall.server.rounds.state.settings.learning_rate == pytest.approx(rate)


def test_a_run_is_named_after_its_task_and_the_date_where_there_is_one() -> None:
    assert name_of("/srv/My Task.py", 1.8e9) == "my-task-20270115-080000"
    assert re.fullmatch(r"digits-[0-9a-f]{8}", name_of("digits", 20.0)), "a clock without battery"


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
    assert [row["accepted"] for row in hall.rows("round")] == [300] * 3
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
    assert [row["accepted"] for row in hall.rows("round")] == [300] * 3


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
    assert [row["accepted"] for row in hall.rows("round")] == [300] * 3


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


def test_models_that_were_measured_late_go_too(tmp_path: Path) -> None:
    hall = Hall(tmp_path, examiner=Unmeasuring)
    hall.add("a", "b")
    hall.start(rounds=6)
    hall.until(lambda: any(what == "finished" for what, _ in hall.followed))
    assert len(hall.server.store.checkpoints.versions("r1")) == 7
    assert isinstance(hall.server._examiner, Unmeasuring)
    hall.server._examiner.wake()
    hall.until(hall.over)
    assert hall.server.store.checkpoints.versions("r1") == ["r1.4", "r1.5", "r1.6"]


def test_a_state_that_this_program_cannot_read_ends_its_run_and_not_the_service(hall: Hall) -> None:
    hall.add("a", seconds_per_sample=1e6)
    hall.start()
    hall.until(lambda: hall.server.rounds is not None and hall.server.rounds.state.round == 1)
    hall.server.store.save(state=("r1", b'{"run":"r1","phase":5}'))
    hall.kill()
    assert hall.server.rounds is None
    assert "another version" in hall.server.store.history.runs()[0]["reason"]
    assert hall.start(name="r2").ok


def test_deadlines_stand_still_until_a_restarted_coordinator_finds_its_broker(hall: Hall) -> None:
    (a,) = hall.add("a", seconds_per_sample=0.1)
    hall.start()
    hall.until(lambda: a.phase == "training")
    hall.broker.stop()
    hall.kill()
    hall.turn(1000)
    hall.broker.start()
    hall.until(hall.over)
    assert [row["status"] for row in hall.rows("board_round")] == ["accepted"] * 3


def test_a_former_coordinators_last_word_is_replaced(hall: Hall) -> None:
    hall.turn()
    topic = hall.topics.of("fleet")
    hall.operator.publish(topic, encode(FleetState("former", 1, "lost", "lab")), retain=True)
    hall.until(lambda: decode(FleetState, hall.broker.retained(topic) or b"").boot == hall.server.boot, 2)


def test_what_a_kill_left_half_begun_or_half_ended_is_put_in_order(hall: Hall) -> None:
    hall.add("a")
    hall.start(rounds=1)
    hall.until(hall.over)
    store = hall.server.store
    store._connection.execute("UPDATE runs SET ended = NULL, complete = NULL, reason = ''")
    store.add_run("r0", controls.RunSettings("digits", "digits", 1, 1), "h")
    hall.kill()
    assert hall.server.rounds is None
    ended = {row["run"]: (row["complete"], row["reason"]) for row in hall.server.store.history.runs()}
    assert ended["r1"] == (True, "all 300 samples are accepted")
    assert ended["r0"] == (False, "the coordinator ended before it began")


def test_a_merge_that_fails_pauses_the_run_and_resuming_tries_again(hall: Hall) -> None:
    hall.add("a", "b")
    hall.start()
    hall.until(lambda: hall.server.rounds is not None and hall.server.rounds.state.round == 1)
    in_the_way = hall.server.store.checkpoints.model("r1.1")
    in_the_way.mkdir()
    hall.until(lambda: hall.server.rounds is not None and hall.server.rounds.state.paused)
    assert "could not be merged" in hall.ask(controls.GetStatus()).data["fleet"]["reason"]
    in_the_way.rmdir()
    assert hall.ask(controls.Resume()).ok
    hall.until(hall.over)
    assert [row["accepted"] for row in hall.rows("round")] == [300] * 3


def test_absurd_but_finite_figures_do_not_spoil_the_stored_state(hall: Hall) -> None:
    _, liar = hall.add("a", "b")
    publish = liar.publish

    def lie(route: str, payload: bytes, **fields: str | int) -> None:
        if route == "report":
            huge = Energy(1e308, basis="measured", uncertainty_joules=1e308)
            report = structs.replace(decode(Report, payload), energy=huge, loss_sum=1e308)
            payload = encode(structs.replace(report, steady=Steady(1, 1e-300, 1e308)))
        publish(route, payload, **fields)

    liar.publish = lie  # type: ignore[method-assign]
    hall.start(w_t=0.5, w_e=0.5, rounds=5)
    hall.until(lambda: len(hall.rows("round")) == 3)
    hall.kill()
    assert hall.server.rounds is not None
    hall.until(hall.over)
    assert "internal_errors" not in hall.odd()
    assert sum(row["accepted"] for row in hall.rows("round")) == 1500
