"""Commands that look: status, boards, rounds, runs, top, doctor; against a whole coordinator in memory."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from coordinator.commands import exits
from coordinator.comparison import Recorded
from edged.controls import Pause
from edged.messages import Birth, encode
from tests.coordinator.commands.desk import Desk
from tests.coordinator.hall import Hall

Record = Callable[..., Recorded]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(Hall(tmp_path))


def run_of_three(desk: Desk) -> None:
    desk.hall.add("a", "b", "c")
    desk.hall.start(rounds=6)
    desk.hall.until(lambda: len(desk.hall.rows("round")) == 2)
    desk.hall.until(lambda: bool(desk.hall.server.fleet_state().waiting))


def test_status_says_what_the_round_waits_for(desk: Desk) -> None:
    run_of_three(desk)
    lines = desk.run("status").output.splitlines()
    assert "run r1: running, round 3 of 6, 600 of 1,800 samples accepted" in lines
    waiting = lines[lines.index("waiting for") + 1]
    assert waiting.split()[0] in "abc"
    assert "since" in waiting
    assert "at most" in waiting
    assert any(line.startswith("last round 2: makespan ") and "J emulated" in line for line in lines)
    assert sum(line.startswith("  round ") for line in lines) == 3
    assert "boards: 3 of 3 connected" in lines


def test_status_counts_what_was_refused(desk: Desk) -> None:
    run_of_three(desk)
    desk.hall.operator.publish(desk.hall.topics.of("report", board="a"), b"{nonsense")
    desk.hall.turn()
    desk.hall.operator.publish(desk.hall.topics.of("request"), b"{nonsense")
    desk.hall.turn()
    lines = desk.run("status").output.splitlines()
    at = lines.index("  a: malformed reports 1")
    assert lines[at + 1].startswith("    malformed reports, last: report: JSON is malformed")
    at = lines.index("  coordinator: malformed requests 1")
    assert lines[at + 1].startswith("    malformed requests, last: request: ")


def test_status_shows_what_boards_count_themselves(desk: Desk) -> None:
    desk.hall.add("a")
    desk.hall.turn()
    desk.hall.boards[0].say(counters={"reconnects": 3, "refused_orders": 0})
    desk.hall.turn()
    lines = desk.run("status").output.splitlines()
    assert lines[lines.index("what boards count themselves") + 1] == "  a: reconnects 3"


def test_status_of_a_paused_run(desk: Desk) -> None:
    run_of_three(desk)
    assert desk.hall.ask(Pause()).ok
    assert "r1: running, to be paused" in desk.run("status").output
    desk.hall.until(lambda: desk.hall.server.fleet_state().phase == "paused")
    shown = desk.run("status").output
    assert "r1: paused, round 3 of 6" in shown
    assert "`edged-coordinator resume` goes on" in shown


def test_status_without_a_run_says_how_to_start_one(desk: Desk) -> None:
    assert "edged-coordinator run" in desk.run("status").output
    assert desk.run("status", "--json").json["run"] is None


def test_boards_are_listed_with_what_keeps_them_out(desk: Desk) -> None:
    assert "no board was heard of yet" in desk.run("boards").output
    run_of_three(desk)
    desk.hall.boards[2].link.kill()
    desk.hall.turn()
    output = desk.run("boards").output
    assert [line.split()[0] for line in output.splitlines()[:4]] == ["board", "a", "b", "c"]
    assert "c: link lost" in output
    rows = desk.run("boards", "--json").json
    assert [row["link"] for row in rows] == ["up", "up", "lost"]


def test_rounds_show_makespan_joules_shares_and_reason(desk: Desk) -> None:
    run_of_three(desk)
    output = desk.run("rounds", "--last", "1").output
    assert "run r1" in output
    assert " emulated" in output
    assert "a:" in output
    assert "50.0 %" in output
    assert [row["round"] for row in desk.run("rounds", "--json").json["rounds"]] == [1, 2]


def test_rounds_of_a_run_that_is_not_there_are_refused(desk: Desk) -> None:
    run_of_three(desk)
    done = desk.run("rounds", "r9")
    assert done.status == exits.REFUSED
    assert "no run r9" in done.complaint


def test_runs_and_rounds_can_be_read_without_a_coordinator(
    desk: Desk, record: Record, store: Callable[..., Path], tmp_path: Path
) -> None:
    desk.hall.server.close()
    folder = store(record("one"), record("two", policy="equal"))
    runs = desk.run("runs", "--store", folder, "--json").json
    assert {row["run"] for row in runs} == {"one", "two"}
    assert "complete" in desk.run("runs", "--store", folder).output
    assert "run one" in desk.run("rounds", "one", "--store", folder).output
    missing = desk.run("rounds", "three", "--store", folder)
    assert missing.status == exits.FAILED
    assert "no run three in this store; there are: " in missing.complaint
    nowhere = desk.run("runs", "--store", tmp_path / "nowhere")
    assert (nowhere.status, "no runs are stored there" in nowhere.complaint) == (exits.FAILED, True)


def test_runs_are_listed_by_the_coordinator(desk: Desk) -> None:
    assert "no run was started yet" in desk.run("runs").output
    run_of_three(desk)
    assert "going on" in desk.run("runs").output


def test_runs_show_the_policy_that_holds_by_now(desk: Desk) -> None:
    run_of_three(desk)
    assert "adaptive, w_e 0 " in desk.run("runs").output
    desk.run("weights", "--w-e", "0.5")
    assert "adaptive, w_e 0.5 (began as adaptive, w_e 0)" in desk.run("runs").output
    desk.run("policy", "equal")
    desk.hall.turn()
    assert "equal (began as adaptive, w_e 0)" in desk.run("runs").output
    now = desk.run("runs", "--json").json[0]["now"]
    assert (now["policy"], now["w_e"], now["changes"]) == ("equal", 0.5, 2)


def test_top_shows_each_board_with_share_seconds_joules_wait_cost_and_basis(desk: Desk) -> None:
    run_of_three(desk)
    lines = desk.run("top", "--once").output.splitlines()
    assert lines[0].startswith("r1  running  round 3/6  adaptive")
    heading = next(i for i, line in enumerate(lines) if line.startswith("board"))
    assert [line.split()[0] for line in lines[heading + 1 : heading + 4]] == ["a", "b", "c"]
    assert all("emulated" in line for line in lines[heading + 1 : heading + 4])
    assert any("w_e 0 (1-2)" in line for line in lines)
    assert desk.run("top", "--once", "--json").documents[0]["status"]["run"]["run"] == "r1"


def test_top_shows_how_w_e_went(desk: Desk) -> None:
    run_of_three(desk)
    desk.run("weights", "--w-e", "0.5")
    desk.hall.until(lambda: len(desk.hall.rows("round")) == 5)
    assert "w_e 0 (1-3), 0.5 (4-5)" in desk.run("top", "--once").output


def test_status_and_top_tell_what_needs_a_look(desk: Desk) -> None:
    run_of_three(desk)
    lost = desk.hall.boards[1]
    lost.mute = True
    desk.hall.server.boards.born(Birth(lost.name, lost.boot, 1, "lost"))
    desk.hall.until(lambda: bool(desk.hall.server.lookout.alerts))
    for command in (("status",), ("top", "--once")):
        assert any(
            "alert" in line and "b: link lost" in line for line in desk.run(*command).output.splitlines()
        )


def test_doctor_is_content_with_a_fleet_that_works(desk: Desk) -> None:
    run_of_three(desk)
    done = desk.run("doctor", "--json")
    verdicts = {finding["what"]: finding["verdict"] for finding in done.json}
    assert verdicts["broker"] == verdicts["access list"] == verdicts["coordinator"] == "ok"
    assert verdicts["store"] == "ok"
    assert "fail" not in verdicts.values()
    assert done.status == exits.OK


def test_doctor_says_whose_store_it_looked_at(desk: Desk, tmp_path: Path) -> None:
    elsewhere = tmp_path / "other.toml"
    elsewhere.write_text(f'[store]\nfolder = "{tmp_path / "nothing"}"\n')
    findings = {finding["what"]: finding["text"] for finding in desk.run("doctor", "--json").json}
    assert "where a coordinator started with these settings keeps its runs: 0 runs" in findings["store"]
    findings = {
        finding["what"]: finding["text"]
        for finding in desk.run("doctor", "--json", "--config", elsewhere).json
    }
    assert findings["store"].startswith(f"{tmp_path / 'nothing'}, where a coordinator started with these")
    assert findings["store"].endswith("there is none yet, the first start makes one")


def test_doctor_names_a_broker_that_is_away_and_fails(desk: Desk) -> None:
    desk.hall.broker.stop()
    done = desk.run("doctor")
    assert done.status == exits.FAILED
    assert "FAIL  broker: broker localhost:1883 TCP" in done.output
    assert "-> is the broker running there" in done.output
    assert done.output.count("FAIL") == 1


def test_doctor_names_what_the_access_list_withholds(desk: Desk) -> None:
    desk.hall.broker.refused_filters.add(desk.hall.topics.filter("report"))
    done = desk.run("doctor")
    assert done.status == exits.FAILED
    assert "SUBACK" in done.output
    assert "board/+/report" in done.output


def test_doctor_notices_an_access_list_that_grants_all_and_delivers_nothing(desk: Desk) -> None:
    desk.hall.broker.silent = True
    done = desk.run("doctor")
    assert done.status == exits.FAILED
    assert "FAIL  access list: localhost:1883 echo: the broker accepts us but delivers nothing" in done.output
    assert "check the ACL for edged/v1/main/board/cli-" in done.output


def test_doctor_warns_of_a_clock_and_of_a_missing_sensor(desk: Desk) -> None:
    desk.hall.add("a")
    desk.hall.turn()
    desk.hall.boards[0].say(clock_seconds=desk.hall.now + 3600)
    desk.hall.turn()
    output = desk.run("doctor").output
    assert "warn  board a: its clock is 3,600 s ahead" in output
    assert "warn  board a: no energy sensor" in output


def test_doctor_without_a_coordinator_says_how_to_start_one(desk: Desk) -> None:
    desk.hall.server.close()
    done = desk.run("doctor")
    assert "warn  coordinator: no coordinator of fleet main answers" in done.output
    assert done.status == exits.OK


def test_what_a_board_says_of_itself_steers_no_terminal(desk: Desk) -> None:
    desk.hall.add("a")
    desk.hall.turn()
    hostile = replace(
        desk.hall.server.fleet.boards["a"].birth, model="pi\x1b[2J\nb: fine", boot="boot2", conn=9
    )
    desk.hall.operator.publish(desk.hall.topics.of("birth", board="a"), encode(hostile), retain=True)
    desk.hall.turn()
    for command in (("boards",), ("status",), ("top", "--once"), ("doctor",), ("boards", "--json")):
        done = desk.run(*command)
        assert "\x1b" not in done.output + done.complaint
    assert r"pi\x1b[2J\nb: fine" in desk.run("boards").output


def test_a_password_file_that_is_not_there_is_a_fault_of_the_configuration(desk: Desk) -> None:
    desk.config.write_text(desk.config.read_text() + "[broker]\npassword_file = '/nowhere/password'\n")
    done = desk.run("status")
    assert done.status == exits.CONFIG
    assert "broker.password_file: /nowhere/password: No such file" in done.complaint
