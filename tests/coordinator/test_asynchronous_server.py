"""Asynchronous updates through the whole coordinator and an in-memory broker: files, topics, kills."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edged import controls
from edged.controls import AsynchronousSettings
from edged.link import Message
from edged.messages import FleetState, decode
from edged.weights import arrays
from tests.coordinator.hall import Hall
from tests.coordinator.stand_ins import Unmeasuring


@pytest.fixture
def hall(tmp_path: Path) -> Hall:
    return Hall(tmp_path)


def start(hall: Hall, **changes: Any) -> controls.Reply:
    asynchronous = AsynchronousSettings(**changes.pop("asynchronous", {}))
    plain = {"regime": "asp", "policy": "equal", "budget": 60, "rounds": 3, "asynchronous": asynchronous}
    return hall.start(**{**plain, **changes})


def pushes(hall: Hall) -> list[dict[str, Any]]:
    return [row for row in hall.rows("push") if row["status"] == "accepted"]


def moved(hall: Hall) -> float:
    """How far the stored updates must have moved each number, by the rates that were recorded."""
    steps = {board.name: board.step_size for board in hall.boards}
    return sum(float(0.1 * row["scale"] * row["factor"] * steps[row["board"]]) for row in pushes(hall))


def check(hall: Hall, samples: int) -> None:
    """Every sample once, every version from one update, and the model is the sum of its updates."""
    rows = pushes(hall)
    assert [row["model"] for row in rows] == list(range(1, len(rows) + 1))
    places = [(e, i) for row in rows for e, start, stop in row["pieces"] for i in range(start, stop)]
    assert len(places) == len(set(places)) == samples
    final = dict(arrays(hall.server.store.checkpoints.model(f"r1.{len(rows)}")))["w"]
    np.testing.assert_allclose(final - np.linspace(-1, 1, 3000), moved(hall), rtol=1e-3)


def test_each_update_makes_a_version_and_the_model_is_their_sum(hall: Hall) -> None:
    hall.add("a", "b", "c")
    assert start(hall, asynchronous={"staleness": "dynsgd"}).ok
    hall.until(hall.over)
    check(hall, 180)
    rounds = hall.rows("round")
    assert [row["round"] for row in rounds] == [1, 2, 3]
    assert [(row["round"], row["accuracy"]) for row in hall.rows("evaluation")] == [
        (n, 0.5) for n in range(4)
    ]
    assert hall.odd() == {}
    assert [hall.odd(board.name) for board in hall.boards] == [{}, {}, {}]


def test_boards_get_their_models_alone(hall: Hall) -> None:
    hall.add("a", "b", "c")
    start(hall)
    hall.until(hall.over)
    shared = [
        event
        for event in iter(
            lambda: hall.operator.events.get_nowait() if hall.operator.events.qsize() else None, None
        )
        if isinstance(event, Message) and "/model/" in event.topic
    ]
    assert shared == []
    assert hall.server.rounds is not None
    sent = hall.server.distribution.published_bytes
    length = hall.server.store.checkpoints.model(hall.server.rounds.state.version).stat().st_size
    orders = len(hall.rows("push"))
    assert set(sent) == {"r1"}
    assert orders * length * 0.8 <= sent["r1"] <= (orders + 3) * length


def test_only_versions_that_somebody_needs_stay_on_the_disk(hall: Hall) -> None:
    hall.add("a", "b", "c")
    start(hall, rounds=6)
    most = 0
    while not hall.over():
        hall.turn()
        most = max(most, len(hall.server.store.checkpoints.versions("r1")))
    keep = hall.server.config.store.keep_checkpoints
    assert most <= keep + 3 + 3
    assert not list((hall.folder / "store/runs/r1/updates").glob("*"))
    ends = [row["model"] for row in hall.rows("round")][-keep:]
    assert hall.server.store.checkpoints.versions("r1") == [f"r1.{number}" for number in ends]


def test_a_version_that_is_being_made_outlives_a_measurement(tmp_path: Path) -> None:
    hall = Hall(tmp_path, examiner=Unmeasuring)
    hall.add("a", "b")
    start(hall)
    hall.until(lambda: hall.server.rounds is not None and hall.server.rounds.state.merges >= 3)
    assert hall.server.rounds is not None
    coming = hall.server.store.checkpoints.model(f"r1.{hall.server.rounds.state.merges + 1}")
    coming.write_bytes(b"half of it")
    assert isinstance(hall.server._examiner, Unmeasuring)
    hall.server._examiner.wake()
    hall.server.step(0.0)
    assert [row["round"] for row in hall.rows("evaluation")] == [0]
    assert coming.exists()


def test_what_a_board_did_not_hear_of_a_version_is_wanted_and_comes_to_it_alone(hall: Hall) -> None:
    for board in hall.add("a", "b", "c"):
        board.lossy = True
    start(hall, budget=30, rounds=2)
    hall.until(hall.over)
    check(hall, 60)


def test_a_coordinator_killed_again_and_again_neither_loses_nor_doubles_an_update(hall: Hall) -> None:
    hall.add("a", "b", "c")
    start(hall, rounds=5, asynchronous={"staleness": "polynomial"})
    for moment in (0.3, 0.15, 0.75, 0.4, 0.2, 0.6, 0.35, 0.5):
        end = hall.now + moment
        while hall.now < end and not hall.over():
            hall.turn()
        hall.kill()
    hall.until(hall.over)
    check(hall, 300)


def test_a_board_killed_in_its_order_loses_no_sample(hall: Hall) -> None:
    _, b = hall.add("a", "b", seconds_per_sample=0.05)
    start(hall)
    hall.until(lambda: b.phase == "training")
    b.link.kill()
    hall.boards.remove(b)
    hall.add("b", boot="second")
    hall.until(hall.over)
    rows = pushes(hall)
    assert sum(row["samples"] for row in rows) == 180
    assert hall.rows("round")[-1]["accepted_in_all"] == 180


def test_everybody_hears_of_staleness_and_update_counts(hall: Hall) -> None:
    hall.add("a", "b", "c")
    start(hall)
    hall.until(hall.over)
    told = hall.ask(controls.GetStatus()).data["fleet"]["pushes"]
    assert {board: found["updates"] for board, found in told.items()} == {
        board: sum(row["board"] == board for row in pushes(hall)) for board in "abc"
    }
    assert all(sum(found["staleness"].values()) == found["updates"] for found in told.values())
    state = decode(FleetState, hall.server.herald.payload(99, "up"))
    assert {board: found.updates for board, found in state.pushes.items()} == {
        board: found["updates"] for board, found in told.items()
    }


def test_a_refusal_at_submit_names_the_setting(hall: Hall) -> None:
    reply = start(hall, asynchronous={"staleness": "fresh"})
    assert not reply.ok
    assert "no staleness rule 'fresh'; there are consgd" in reply.text
    reply = start(hall, policy="adaptive")
    assert "policy adaptive" in reply.text


def test_an_update_of_another_model_is_refused_and_costs_an_order(hall: Hall) -> None:
    a, _ = hall.add("a", "b")
    a.tensor = "x"
    start(hall, rounds=1)
    hall.until(hall.over)
    assert {row["board"] for row in pushes(hall)} == {"b"}
    assert hall.odd("a")["refused_updates"] > 0
    texts = hall.server.counters.of("a")["refused_updates"][1]
    assert "'gradient/w' is missing" in texts
