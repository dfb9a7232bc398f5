"""Replies that would be too large for a message: shortened, and they say so."""

from pathlib import Path
from typing import Any

import pytest

from coordinator import brevity
from edged.codec import MAX_JSON_BYTES
from edged.controls import GetBoards, GetRounds, GetRuns, GetStatus, Reply
from edged.messages import encode
from tests.coordinator.hall import Hall


@pytest.fixture
def hall(tmp_path: Path) -> Hall:
    return Hall(tmp_path)


def told(last: int, bytes_: int = 1000) -> dict[str, Any]:
    rows = [{"round": n, "pad": "x" * bytes_} for n in range(1, 401)][-last:]
    return {"rounds": rows, "board_rounds": [], "closed": [], "decisions": [], "controls": []}


def test_what_fits_is_told_whole() -> None:
    assert brevity.rounds(told, 20, 100_000) == told(20)


@pytest.mark.parametrize("most", [5_000, 50_000, 150_000])
def test_of_too_many_rounds_the_newest_are_told(most: int) -> None:
    data = brevity.rounds(told, 200, most)
    numbers = [row["round"] for row in data["rounds"]]
    assert brevity.size({**data, "shortened": ""}) <= most
    assert numbers == list(range(401 - len(numbers), 401))
    assert len(numbers) > 0.7 * most / 1030
    assert data["shortened"] == f"the newest {len(numbers)} of 200 rounds: more does not fit into one reply"


def test_a_round_that_is_too_large_by_itself_goes_without_its_decision() -> None:
    data = brevity.rounds(lambda n: {**told(n), "decisions": ["x" * 9000]}, 1, 8192)
    assert data["decisions"] == []
    assert "without its decisions" in data["shortened"]


def test_of_too_many_rows_the_first_are_told() -> None:
    data = brevity.rows("runs", told(100)["rounds"], 20_000)
    assert 15 <= len(data["runs"]) <= 20
    assert data["runs"][0]["round"] == 301
    assert f"the first {len(data['runs'])} of 100 runs" in data["shortened"]


def test_whatever_else_is_too_large_is_refused_in_words() -> None:
    done = brevity.reply(Reply("q1", True, data={"x": "y" * 10_000}), 8192)
    assert (done.id, done.ok) == ("q1", False)
    assert "10,008 bytes, more than the 8,192" in done.text


def test_a_long_run_of_a_large_fleet_is_told_within_what_the_broker_takes(hall: Hall) -> None:
    hall.broker.max_packet_bytes = 24_000
    hall.kill()
    hall.add(*(f"b{n}" for n in range(12)))
    hall.start(rounds=15, budget=1200)
    hall.until(hall.over, 600)
    for action in (GetRounds(last=200), GetRounds(last=200, brief=True), GetStatus(), GetBoards(), GetRuns()):
        reply = hall.ask(action)
        assert reply.ok, reply.text
        assert len(encode(reply)) < 24_000 < MAX_JSON_BYTES
    reply = hall.ask(GetRounds(last=200))
    assert "of 15 rounds" in reply.text
    assert reply.data["rounds"][-1]["round"] == 15


def test_only_the_newest_decision_brings_the_memories_it_was_made_of(hall: Hall) -> None:
    hall.add("a", "b")
    hall.start(rounds=4)
    hall.until(hall.over)
    decisions = hall.ask(GetRounds(last=4)).data["decisions"]
    assert ["memories" in row for row in decisions] == [False, False, False, True]
    assert not any("memories" in row for row in hall.ask(GetStatus()).data["decisions"])
