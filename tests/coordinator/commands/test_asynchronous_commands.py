"""Asynchronous runs on the command line: options, lines a period, staleness as a distribution."""

from pathlib import Path

import pytest

from coordinator.commands import _updates, exits, top
from coordinator.pushes import quantile
from tests.coordinator.commands.desk import Desk
from tests.coordinator.hall import Hall

ASKED = ("run", "--task", "digits", "--pool", "digits", "--budget", "60", "--rounds", "2", "--name", "r1")
ASP = (*ASKED, "--regime", "asp", "--min-boards", "3")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(Hall(tmp_path))
    desk.hall.add("a", "b", "c")
    return desk


def test_a_run_is_followed_period_by_period_and_looked_at_afterwards(desk: Desk) -> None:
    for board in desk.hall.boards:
        board.waited_seconds = 0.5
    done = desk.run(*ASP, "--staleness", "dynsgd")
    assert done.status == exits.OK
    periods = [line for line in done.output.splitlines() if line.startswith("period ")]
    assert [line.split(":")[0] for line in periods] == ["period 1/2", "period 2/2"]
    assert all("updates a:" in line and "staleness " in line for line in periods)
    settings = desk.run("runs", "--json").json[0]["settings"]
    assert (settings["policy"], settings["asynchronous"]["staleness"]) == ("omnilearn", "dynsgd")
    told = desk.run("rounds").output
    assert "grain gradient, staleness rule dynsgd, scale batch" in told
    assert "period 2: a staleness " in told
    data = desk.run("rounds", "--json").json
    assert {row["board"] for row in data["closed"]} == {"a", "b", "c"}
    assert all(row["parts"]["wait"]["seconds"] == 0.5 * row["orders"] for row in data["closed"])
    assert max(row["orders"] for row in data["closed"]) > 1, "accounts of one period and board come as one"
    status = desk.run("status").output
    assert "staleness: versions x updates" in status
    assert "regime asp" in status
    assert desk.run("top", "--once").status == exits.OK
    assert desk.run("boards").status == exits.OK


def test_top_shows_what_boards_waited_and_no_makespan(desk: Desk) -> None:
    for board in desk.hall.boards:
        board.waited_seconds = 0.5
    assert desk.hall.start(regime="asp", policy="equal", rounds=50, budget=60, min_boards=3).ok
    desk.hall.until(lambda: len(desk.hall.rows("round")) >= 3)
    seen = desk.run("top", "--once", "--json").documents[0]
    assert seen["rounds"][-1]["makespan_seconds"] is None
    closed = {row["board"]: row["closed"] for row in seen["board_rounds"]}
    assert min(closed.values()) > 0
    shown = {line[0]: line[top.COLUMNS.index("wait")] for line in top.rows(seen)}
    assert shown == {board: f"{0.5 * closed[board]:.1f} s" for board in ("a", "b", "c")}
    assert "makespan" not in " ".join(top.heading(seen))


def test_waits_for_slower_boards_are_told_by_board(desk: Desk) -> None:
    assert desk.run(*ASP, "--staleness", "ssp", "--staleness-option", "ahead=1").status == exits.OK
    row = desk.hall.rows("round")[-1]
    assert set(row["waited"]) == {"a", "b", "c"}
    # These boards close no accounts: whoever had to wait is not said to have waited 0 s.
    assert any(one["seconds"] is None and one["reason"] for one in row["waited"].values())
    status, told = desk.run("status").output, desk.run("rounds").output
    assert "waited for others, last period" in status
    for board, one in row["waited"].items():
        assert f"period 2: {board} waited for others {_updates.wait(one)}" in told
        assert _updates.wait(one) in status
    assert "waited for others" in desk.run("top", "--once").output


@pytest.mark.parametrize(
    ("seconds", "joules", "basis", "reason", "text"),
    [
        (3.0, 16.3, "emulated", "", "3.0 s, 16.3 J emulated"),
        (0.0, 0.0, "", "", "0.0 s"),
        (2.0, None, "", "not known", "2.0 s, ? J (not known)"),
        (None, None, "", "not over", "? (not over)"),
    ],
)
def test_a_wait_is_told_with_what_is_known_of_it(
    seconds: float | None, joules: float | None, basis: str, reason: str, text: str
) -> None:
    row = {"seconds": seconds, "joules": joules, "basis": basis, "reason": reason}
    assert _updates.wait(row) == text


def test_it_is_compared_with_a_synchronous_run_by_samples_seconds_and_joules(desk: Desk) -> None:
    assert desk.run(*ASP, "--policy", "equal").status == exits.OK
    synchronous = [word if word != "r1" else "r2" for word in ASKED]
    assert desk.run(*synchronous, "--policy", "equal").status == exits.OK
    done = desk.run("compare", "r1", "r2")
    assert done.status == exits.OK, done.complaint
    assert "r1" in done.output
    rows = {name: desk.hall.rows("round", name)[-1]["accepted_in_all"] for name in ("r1", "r2")}
    assert rows == {"r1": 120, "r2": 120}


def test_options_reach_the_run(desk: Desk) -> None:
    more = ("--grain", "model", "--staleness", "hinge", "--staleness-option", "b=2", "--bound", "9")
    assert desk.run(*ASP, *more, "--alpha", "0.5", "--policy", "equal").status == exits.OK
    found = desk.run("runs", "--json").json[0]["settings"]
    assert found["policy"] == "equal"
    assert found["asynchronous"] == {
        "grain": "model",
        "staleness": "hinge",
        "staleness_options": {"b": 2},
        "bound": 9,
        "scale": "none",
        "alpha": 0.5,
        "momentum": 0.0,
        "allow_large": False,
    }
    row = desk.hall.rows("round")[0]
    assert (row["grain"], row["rule"], row["scale"], row["bound"]) == ("model", "hinge", "none", 9)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--grain", "model", "--server-momentum", "0.5"), "momentum is for grain gradient, not for model"),
        (("--momentum", "0.9"), "give the coordinator's (--server-momentum)"),
        (("--alpha", "0.3"), "--alpha is for --grain model"),
        (("--staleness", "fresh"), "no staleness rule 'fresh'; there are consgd"),
        (("--staleness", "ssp", "--staleness-option", "ahead=0"), "ahead = 0: it must be at least 1"),
        (("--policy", "adaptive"), "policy adaptive"),
    ],
)
def test_what_cannot_be_is_refused_at_submit(desk: Desk, options: tuple[str, ...], text: str) -> None:
    done = desk.run(*ASP, *options)
    assert done.status != exits.OK
    assert text in done.complaint


def test_asynchronous_options_go_with_no_other_regime(desk: Desk) -> None:
    done = desk.run(*ASKED, "--grain", "model", "--update-scale", "none")
    assert done.status == exits.USAGE
    assert "--grain, --update-scale: only with --regime asp, not with pma" in done.complaint


def test_a_distribution_is_told_whole_or_by_its_quartiles() -> None:
    assert _updates.distribution({}) == "none"
    assert _updates.distribution({"10": 1, "2": 6, "0": 8}) == "0 x8, 2 x6, 10 x1"
    wide = {str(age): 10 for age in range(20)}
    assert _updates.distribution(wide) == "0 | 4 | 9 | 14 | 19 (least, quartiles, greatest)"
    assert quantile({"3": 1}, 0.5) == 3
