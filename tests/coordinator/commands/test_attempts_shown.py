"""How attempts, ranks that are left out and silos are shown: status, top, rounds and boards."""

from pathlib import Path
from typing import Any

import pytest

from coordinator.commands import boards, rounds, status, top
from tests.coordinator.commands.desk import Desk
from tests.coordinator.hall import Hall

DIED = "rpi4: its process was restarted"
OUT = {"rpi4": "its process was restarted"}


@pytest.fixture
def seen(tmp_path: Path) -> Any:
    """What `top --json` has of a run that goes on."""
    desk = Desk(Hall(tmp_path))
    desk.hall.add("a", "b")
    desk.hall.start(rounds=6)
    desk.hall.until(lambda: bool(desk.hall.server.fleet_state().waiting))
    return desk.run("top", "--once", "--json").json


def group(**changes: Any) -> dict[str, Any]:
    plain = {"standing": "training", "attempt": 1, "boards": ["n100"], "failures": [], "left_out": {}}
    return {**plain, **changes}


def test_ranks_are_told_of_where_an_attempt_failed(seen: Any) -> None:
    run = seen["status"]["run"]
    run["groups"] = {"all": group()}
    assert not [line for line in status.lines(seen["status"]) if "attempt" in line]
    run["groups"] = {"attic": group(attempt=2, failures=[DIED], left_out=OUT), "cellar": group()}
    lines = list(status.lines(seen["status"]))
    at = lines.index("silo attic: attempt 2, training, with n100")
    assert lines[at + 1 : at + 3] == [
        f"  attempt 1 failed: {DIED}",
        "  left out of this round: rpi4 (its process was restarted)",
    ]
    assert f"silo attic: attempt 2, training; before: {DIED}" in list(top.heading(seen))


def test_rounds_that_are_over_tell_their_attempts() -> None:
    silo = {"accepted": 600, "attempts": 2, "failures": [DIED], "left_out": OUT}
    assert rounds.again({"silos": {"all": silo}}) == [
        f"the ranks done with attempt 2; failed before: {DIED}",
        "the ranks without rpi4: its process was restarted",
    ]
    lost = {**silo, "accepted": 0, "left_out": {}}
    assert rounds.again({"silos": {"attic": lost}}) == [f"silo attic given up; failed before: {DIED}"]
    assert rounds.again({}) == []


def test_boards_stand_behind_their_silos(seen: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for board, silo in zip(seen["boards"], ("attic", "cellar"), strict=True):
        board["silo"] = silo
    assert [line[0] for line in top.rows(seen)] == ["a", "b"]
    seen["status"]["run"]["settings"]["regime"] = "hfl-ddp"
    assert [line[0] for line in top.rows(seen)] == ["attic/a", "cellar/b"]
    boards.show(seen["boards"])
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["board", "silo"]
    assert first.split()[:2] == ["a", "attic"]
