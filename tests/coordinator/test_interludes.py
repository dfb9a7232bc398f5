"""What happened to a run beside its rounds: its words, and where it stands among them."""

from typing import Any

import pytest

from coordinator.interludes import placed, told
from coordinator.store import Row, Store
from tests.coordinator.play import settings

BY_ANN = {"run": "r1", "from_round": 4, "who": "ann@desk"}


@pytest.mark.parametrize(
    ("row", "regime", "text"),
    [
        (
            {"what": "weights", "w_t": 1.0, "w_e": 0.0},
            "pma",
            "weights w_t 1, w_e 0 from round 4 on, by ann@desk",
        ),
        (
            {"what": "weights", "w_t": 0.5, "w_e": 0.5},
            "asp",
            "weights w_t 0.5, w_e 0.5 from period 4 on, by ann@desk",
        ),
        (
            {"what": "policy", "policy": "adaptive", "options": {"deadband": 0.05}},
            "ddp",
            "policy adaptive, deadband 0.05 from round 4 on, by ann@desk",
        ),
        ({"what": "drain", "board": "pi4"}, "pma", "drain pi4 from round 4 on, by ann@desk"),
        ({"what": "forget", "board": "pi4"}, "pma", "forget pi4, by ann@desk"),
        ({"what": "pause"}, "pma", "pause, by ann@desk"),
        ({"what": "pause", "who": "", "reason": "full"}, "pma", "pause, by the coordinator itself: full"),
        ({"what": "stop", "reason": "stopped by ann@desk"}, "pma", "stop, by ann@desk"),
        ({"what": "restart", "host": "pi5", "term": 3}, "pma", "coordinator restarted on pi5, term 3"),
    ],
)
def test_each_is_told_in_a_line(row: dict[str, Any], regime: str, text: str) -> None:
    assert told({**BY_ANN, **row}, regime) == text


def test_they_stand_where_they_happened() -> None:
    rounds = [{"at": 10.0}, {"at": 20.0}]
    rows = [{"what": "stop", "at": 25.0}, {"what": "start", "at": 1.0}, {"what": "pause", "at": 20.0}]
    rows += [{"what": "resume", "at": 15.0}, {"what": "drain", "at": 12.0}, {"what": "policy", "at": 2.0}]
    found = {after: [row["what"] for row in those] for after, those in placed(rounds, rows).items()}
    assert found == {0: ["policy"], 1: ["drain", "resume"], 2: ["pause", "stop"]}


def test_coordinators_that_took_a_run_up_are_those_since_it_began(tmp_path: Any) -> None:
    now = [2e9]
    store = Store(tmp_path, clock=lambda: now[0])
    for happens in ("start", "r1", "start", "start", "end", "start", "r2"):
        now[0] += 1
        if happens == "start":
            store.raise_term("boot", f"host{now[0] - 2e9:g}")
        elif happens == "end":
            store.save([Row("r1", "control", {"run": "r1", "what": "stop"})])
            store.end_run("r1", "stopped", False)
        else:
            store.add_run(happens, settings(), "hash")
    history = store.history
    assert [(row["term"], row["host"]) for row in history.restarts("r1", 9)] == [(2, "host3"), (3, "host4")]
    assert [row["term"] for row in history.restarts("r1", 1)] == [3]
    assert history.restarts("r2", 9) == []
    store.close()
