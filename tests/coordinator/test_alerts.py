"""What needs a look, told from facts alone; and that it reaches whoever looks, as it begins and ends."""

import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from coordinator.alerts import KINDS, Alert, AlertOptions, Facts, Seen, Waited, alerts
from edged.controls import GetStatus
from edged.messages import Birth, EnergyChannel, Power
from tests.coordinator.hall import Hall


@pytest.fixture
def hall(tmp_path: Path) -> Iterator[Hall]:
    made = Hall(tmp_path)
    yield made
    made.server.close()


WELL = Seen("pi4", "up", True, 2.0, "measured", "measured")
OPTIONS = AlertOptions()


def kinds(facts: Facts, options: AlertOptions = OPTIONS) -> list[str]:
    return [f"{alert.kind} {alert.board}".strip() for alert in alerts(facts, options)]


def test_all_is_well() -> None:
    assert kinds(Facts((WELL,), (Waited("pi4", "40 samples", 3.0, 30.0),))) == []
    assert kinds(Facts()) == []


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (structs.replace(WELL, link="lost"), ["board-silent pi4"]),
        (structs.replace(WELL, heard_seconds_ago=31.0), ["board-silent pi4"]),
        (structs.replace(WELL, link="lost", takes_part=False), []),
        (structs.replace(WELL, link="closed"), []),
        (structs.replace(WELL, basis="estimated"), ["energy-lost pi4"]),
        (structs.replace(WELL, basis=""), ["energy-lost pi4"]),
        (structs.replace(WELL, basis=None), []),
        (structs.replace(WELL, energy_reason="coverage below 0.5"), ["energy-lost pi4"]),
        (structs.replace(WELL, promised="estimated", basis="estimated"), []),
        (structs.replace(WELL, promised="", basis=""), []),
    ],
)
def test_a_board_that_is_silent_or_has_lost_its_meter(seen: Seen, expected: list[str]) -> None:
    assert kinds(Facts((seen,))) == expected


def test_an_order_past_its_deadline_and_one_that_ran_out() -> None:
    late = Waited("pi4", "to train", 40.0, 0.0)
    gone = Waited("pi5", "nothing for too long", 90.0, None, expired=True)
    assert kinds(Facts((), (late, gone))) == ["round-late pi4", "round-late pi5"]


def test_points_that_wait_are_told_before_they_are_lost() -> None:
    assert kinds(Facts(spool_bytes=60, spool_limit_bytes=100)) == ["spool-growing"]
    assert kinds(Facts(spool_bytes=40, spool_limit_bytes=100)) == []
    assert kinds(Facts(sending_state="settings", sending_text="no database")) == ["telemetry"]
    assert kinds(Facts(sending_state="away", sending_text="refused")) == [], "an outage waits on the disk"
    assert kinds(Facts(spool_problem="No space left")) == ["telemetry"]
    assert kinds(Facts(dropped_rounds=2)) == ["spool-growing"]
    assert kinds(Facts(problem="the disk is full")) == ["store"]


def test_every_kind_names_the_way_out() -> None:
    facts = Facts(
        (structs.replace(WELL, link="lost"), structs.replace(WELL, board="pi5", basis="estimated")),
        (Waited("pi4", "to train", 40.0, 0.0),),
        problem="the disk is full",
        spool_bytes=60,
        spool_limit_bytes=100,
        spool_problem="No space left",
    )
    found = alerts(facts, OPTIONS)
    assert [alert.kind for alert in found] == list(KINDS)
    assert all(alert.way_out for alert in found)
    assert all(alert.board in alert.text for alert in found)


def test_a_board_that_goes_away_is_told_once_and_again_when_it_is_back(hall: Hall) -> None:
    seen: list[tuple[str, bool]] = []
    hall.server.onlookers.append(
        lambda what, value: seen.append((value[0].id, value[1])) if what == "alert" else None
    )
    [board] = hall.add("b0")
    hall.turn()
    hall.start(rounds=1000)
    hall.until(lambda: len(hall.rows("round")) >= 2)
    board.mute = True
    hall.server.boards.born(Birth("b0", board.boot, 1, "lost"))
    hall.until(lambda: bool(seen))
    status = hall.ask(GetStatus()).data
    assert status["alerts"][0]["kind"] == "board-silent"
    assert seen == [("board-silent:b0", True)]
    hall.server.boards.born(Birth("b0", board.boot, 1, "up"))
    hall.until(lambda: len(seen) == 2)
    assert seen[1] == ("board-silent:b0", False)


def test_the_operators_command_gets_it_as_json(tmp_path: Path, hall: Hall) -> None:
    told, command = tmp_path / "told", tmp_path / "notify"
    command.write_text(f"#!/bin/sh\ncat >> {told}\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    hall.server.lookout._options = AlertOptions(command=(str(command),))
    channel = EnergyChannel("m", "board", "measured", headline=True)
    hall.server.boards.born(Birth("b0", "boot", 1, "up", channels=(channel,)))
    hall.server.boards.powered(Power("b0", "boot", "m", "estimated", {"m": 3.0}))
    hall.until(lambda: bool(hall.server.lookout.alerts))
    hall.turn()
    until = time.monotonic() + 30
    while not (told.exists() and told.read_text()):
        assert time.monotonic() < until
        hall.turn()
    assert '"kind":"energy-lost"' in told.read_text()
    assert '"begins":true' in told.read_text()


def test_a_command_that_cannot_be_run_is_counted_and_stops_nothing(hall: Hall) -> None:
    hall.server.lookout._options = AlertOptions(command=("/nonexistent/notify",))
    hall.server.lookout._tell(Alert("store", "", "x"), True)
    hall.until(lambda: bool(hall.odd().get("failed_alert_commands")))
