"""Commands that change a run, typed against a whole coordinator with scripted boards, in memory."""

from pathlib import Path

import pytest

from coordinator.commands import exits
from tests.coordinator.commands.desk import Desk
from tests.coordinator.hall import Hall


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(Hall(tmp_path))


def run_of_three(desk: Desk, rounds: int = 6) -> None:
    desk.hall.add("a", "b", "c")
    desk.hall.start(rounds=rounds)
    desk.hall.until(lambda: len(desk.hall.rows("round")) == 2)


def test_weights_tell_from_which_round_and_what_the_shares_would_become(desk: Desk) -> None:
    run_of_three(desk)
    done = desk.run("weights", "--w-e", "0.5")
    assert done.status == exits.OK
    assert "w_t 0.5, w_e 0.5 from round 4 on" in done.output
    assert "would become" in done.output
    assert [line.split()[0] for line in done.output.splitlines()[2:5]] == ["a", "b", "c"]


def test_weights_as_json_carry_the_whole_answer(desk: Desk) -> None:
    run_of_three(desk)
    answer = desk.run("weights", "--w-e", "0.25", "--json").json
    assert answer["from_round"] == 4
    assert (answer["data"]["w_t"], answer["data"]["w_e"]) == (0.75, 0.25)
    assert sum(answer["data"]["shares"].values()) == 300


def test_weights_without_options_only_tell_what_holds(desk: Desk) -> None:
    run_of_three(desk)
    done = desk.run("weights")
    assert "w_t 1, w_e 0" in done.output
    assert "would become" not in done.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--w-e", "nan"), "--w-e nan: it must be a finite number"),
        (("--w-e", "1.5"), "between 0 and 1"),
        (("--w-t", "-1"), "between 0 and 1"),
        (("--w-e", "0", "--w-t", "0"), "both 0"),
        (("--w-e", "much"), "--w-e"),
    ],
)
def test_weights_out_of_range_are_refused_before_anybody_is_asked(
    desk: Desk, options: tuple[str, ...], words: str
) -> None:
    desk.hall.broker.stop()
    done = desk.run("weights", *options)
    assert done.status == exits.USAGE
    assert words in done.complaint
    assert "Traceback" not in done.complaint


def test_another_policy_gives_the_next_shares(desk: Desk) -> None:
    run_of_three(desk)
    done = desk.run("policy", "equal")
    assert "policy equal from round 4 on" in done.output
    desk.hall.until(lambda: len(desk.hall.rows("round")) == 4)
    assert desk.hall.rows("round")[-1]["shares"] == {"a": 100, "b": 100, "c": 100}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("policy", "best"), "no policy 'best'"),
        (("policy", "adaptive", "--option", "deadbond=1"), "deadbond"),
        (("policy", "adaptive", "--option", "deadband=7"), "deadband"),
        (("boards", "drain", "z"), "no board z is known; known are: a, b, c"),
        (("boards", "forget", "a"), "a is connected"),
    ],
)
def test_what_the_coordinator_refuses_ends_with_its_words(
    desk: Desk, arguments: tuple[str, ...], words: str
) -> None:
    run_of_three(desk)
    done = desk.run(*arguments)
    assert (done.status, done.output) == (exits.REFUSED, "")
    assert words in done.complaint
    assert len(done.complaint.strip().splitlines()) == 1


def test_an_option_that_is_no_pair_is_a_usage_fault(desk: Desk) -> None:
    done = desk.run("policy", "adaptive", "--option", "deadband")
    assert done.status == exits.USAGE
    assert "key=value" in done.complaint


def test_pause_and_resume(desk: Desk) -> None:
    run_of_three(desk)
    assert "no round begins after the running one" in desk.run("pause").output
    assert "paused already" in desk.run("pause").complaint
    assert "goes on" in desk.run("resume", "--json").json["text"]


def test_stop_ends_the_run_and_keeps_what_was_accepted(desk: Desk) -> None:
    run_of_three(desk)
    done = desk.run("stop", "--yes")
    assert "run r1 is stopped with" in done.output
    desk.hall.until(desk.hall.over)
    assert "no run is going on" in desk.run("stop").complaint


def test_a_board_is_drained_and_readmitted(desk: Desk) -> None:
    run_of_three(desk)
    assert "b gets no samples from round 4 on" in desk.run("boards", "drain", "b").output
    desk.hall.until(lambda: len(desk.hall.rows("round")) == 4)
    assert "b" not in desk.hall.rows("round")[-1]["shares"]
    assert "drained by the operator" in desk.run("boards").output
    assert "takes part again" in desk.run("boards", "readmit", "b").output


@pytest.mark.parametrize(
    "arguments", [("boards", "drown", "a"), ("boards", "drain"), ("boards", "drain", "A b")]
)
def test_a_board_command_that_is_none_is_a_usage_fault(desk: Desk, arguments: tuple[str, ...]) -> None:
    done = desk.run(*arguments)
    assert done.status == exits.USAGE
    assert "boards" in done.complaint


def test_without_a_coordinator_it_says_who_was_there_last(desk: Desk) -> None:
    desk.hall.turn()
    assert desk.hall.server.link.status().stage == "up"
    desk.hall.server.close()
    done = desk.run("pause")
    assert done.status == exits.NOBODY
    assert "no coordinator of fleet main answers at localhost:1883" in done.complaint
    assert "is gone (closed)" in done.complaint


def test_without_a_broker_host_port_and_stage_are_named(desk: Desk) -> None:
    desk.hall.broker.stop()
    done = desk.run("pause", "--broker", "pi.lan:1884")
    assert done.status == exits.NO_BROKER
    assert "broker pi.lan:1884 TCP: " in done.complaint


@pytest.mark.parametrize("broker", ["pi:port", "pi:0", "pi:99999", ":1883", ""])
def test_a_broker_that_is_no_address_is_refused(desk: Desk, broker: str) -> None:
    done = desk.run("pause", "--broker", broker)
    assert done.status == exits.USAGE
    assert "host:port" in done.complaint


def test_a_configuration_that_is_wrong_names_its_key(desk: Desk) -> None:
    desk.config.write_text("[broker]\nprot = 1883\n")
    done = desk.run("pause")
    assert done.status == exits.CONFIG
    assert "broker.prot: no such key" in done.complaint
