"""`run`: submitted to a live coordinator and followed, or served in the foreground; and how it ends."""

from pathlib import Path

import pytest

from coordinator.commands import exits
from tests.coordinator.commands.desk import Desk
from tests.coordinator.hall import Hall

ASKED = ("run", "--task", "digits", "--pool", "digits", "--budget", "300", "--rounds", "3", "--name", "r1")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(Hall(tmp_path))


def test_a_run_is_followed_round_by_round_to_its_end(desk: Desk) -> None:
    desk.hall.add("a", "b")
    done = desk.run(*ASKED, "--w-e", "0.25")
    assert done.status == exits.OK
    lines = done.output.splitlines()
    assert lines[0] == "run r1 is being prepared"
    rounds = [line for line in lines if line.startswith("round ")]
    assert [line.split(":")[0] for line in rounds] == ["round 1/3", "round 2/3", "round 3/3"]
    assert all("J" in line and "emulated" in line for line in rounds)
    assert "accuracy 50.0 %" in lines[-2]
    assert lines[-1] == "run r1: all 900 samples are accepted"
    control = desk.hall.rows("decision")[0]
    assert (control["w_t"], control["w_e"]) == (0.75, 0.25)


def test_json_is_a_document_a_line(desk: Desk) -> None:
    desk.hall.add("a", "b")
    documents = desk.run(*ASKED, "--json").documents
    assert [document["event"] for document in documents] == [
        "submitted",
        "round",
        "round",
        "round",
        "finished",
    ]
    assert documents[-1]["complete"]
    assert documents[-1]["evaluation"]["accuracy"] == 0.5


def test_detached_it_only_submits(desk: Desk) -> None:
    desk.hall.add("a")
    done = desk.run(*ASKED, "--detach")
    assert done.output == "run r1 is being prepared\n"
    desk.hall.until(desk.hall.over)


def test_settings_reach_the_run(desk: Desk) -> None:
    desk.hall.add("a", "b", "c")
    options = ("--batch", "5", "--lr", "0.2", "--seed", "7", "--boards", "a, b", "--policy", "equal")
    desk.run(*ASKED, *options, "--optimizer-state", "keep", "--no-evaluate")
    settings = desk.run("runs", "--json").json[0]["settings"]
    assert (settings["batch"], settings["learning_rate"], settings["seed"]) == (5, 0.2, 7)
    assert (settings["boards"], settings["policy"]) == (["a", "b"], "equal")
    assert (settings["optimizer_state"], settings["evaluate"]) == ("keep", False)
    assert desk.hall.rows("round")[0]["shares"] == {"a": 150, "b": 150}


def test_a_run_that_is_stopped_ends_with_a_failure(desk: Desk) -> None:
    desk.hall.add("a")
    desk.hall.start()
    desk.hall.until(lambda: len(desk.hall.rows("round")) == 1)
    done = desk.run(*ASKED)
    assert done.status == exits.REFUSED
    assert "run r1 is not over" in done.complaint


def test_a_run_that_cannot_be_prepared_says_why(desk: Desk) -> None:
    done = desk.run(*ASKED, "--task-option", "broken=1")
    assert done.status == exits.FAILED
    assert "task digits has no option broken" in done.complaint


def test_after_another_run_one_that_cannot_be_prepared_says_why_too(desk: Desk) -> None:
    desk.hall.add("a")
    desk.hall.start(name="r0", rounds=1)
    desk.hall.until(desk.hall.over)
    done = desk.run(*ASKED, "--task-option", "broken=1")
    assert done.status == exits.FAILED
    assert "task digits has no option broken" in done.complaint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--w-e", "2"), "between 0 and 1"),
        (("--policy", "balanced", "--w-e", "0.3"), "take --policy adaptive"),
        (("--name", "Not So"), "--name"),
        (("--deadline-floor", "-1"), "--deadline-floor: Expected"),
        (("--boards", "a,B!"), "--boards: Expected"),
        (("--lr", "nan"), "--lr nan: it must be a finite number"),
        (("--w-e", "nan"), "--w-e nan"),
        (("--momentum", "inf"), "--momentum inf"),
        (("--deadline-limit", "inf"), "--deadline-limit inf"),
        (("--budget", "0"), "--budget"),
        (("--option", "x"), "key=value"),
    ],
)
def test_a_wrong_option_is_named(desk: Desk, options: tuple[str, ...], words: str) -> None:
    done = desk.run(*ASKED, *options)
    assert done.status == exits.USAGE
    assert words in done.complaint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--task", "chess"), "chess"),
        (("--policy", "best"), "no policy 'best'"),
        (("--regime", "gossip"), "regime 'gossip'"),
        (("--task", "./mine.py"), "by name"),
    ],
)
def test_what_the_coordinator_does_not_have_is_refused(
    desk: Desk, options: tuple[str, ...], words: str
) -> None:
    done = desk.run(*ASKED, *options)
    assert done.status == exits.REFUSED
    assert words in done.complaint


def test_without_a_broker_nothing_is_served(desk: Desk) -> None:
    desk.hall.broker.stop()
    done = desk.run(*ASKED)
    assert done.status == exits.NO_BROKER
    assert "broker localhost:1883 TCP" in done.complaint


def test_without_a_coordinator_detaching_is_refused(desk: Desk) -> None:
    desk.hall.server.close()
    assert desk.run(*ASKED, "--detach").status == exits.NOBODY


def test_without_a_coordinator_it_serves_in_the_foreground(desk: Desk) -> None:
    desk.hall.add("a", "b")
    desk.hall.turn()
    desk.hall.server.close()
    done = desk.run(*ASKED, "--w-e", "0.25")
    assert done.status == exits.OK
    assert "serving this run here" in done.complaint
    rounds = [line for line in done.output.splitlines() if line.startswith("round ")]
    assert [line.split(":")[0] for line in rounds] == ["round 1/3", "round 2/3", "round 3/3"]
    assert done.output.endswith("run r1: all 900 samples are accepted\n")
    # The hall's coordinator had the first term of this store.
    assert desk.run("rounds", "r1", "--store", desk.hall.folder / "store", "--json").json["rounds"]


def test_in_the_foreground_a_store_in_use_is_named(desk: Desk) -> None:
    desk.hall.server.link.close()
    done = desk.run(*ASKED)
    assert done.status == exits.FAILED
    assert "in use by another coordinator on this machine" in done.complaint


def test_in_the_foreground_a_run_that_cannot_begin_says_why(desk: Desk) -> None:
    desk.hall.server.close()
    done = desk.run(*ASKED, "--task-option", "broken=1")
    assert done.status == exits.FAILED
    assert "task digits has no option broken" in done.complaint
    assert desk.run(*ASKED, "--policy", "best").status == exits.REFUSED


def test_in_the_foreground_an_unfinished_run_of_the_store_has_a_way_out(desk: Desk) -> None:
    desk.hall.add("a")
    desk.hall.start(name="r0")
    desk.hall.until(lambda: len(desk.hall.rows("round", "r0")) == 1)
    desk.hall.server.close()
    done = desk.run(*ASKED)
    assert done.status == exits.REFUSED
    assert "run r0 stands unfinished" in done.complaint
    assert "`edged-coordinator serve` goes on with it" in done.complaint
