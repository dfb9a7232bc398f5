"""`rounds` tells what else happened to a run, between the rounds where it happened."""

from pathlib import Path

from edged.controls import Pause
from tests.coordinator.commands.desk import Desk
from tests.coordinator.hall import Hall


def test_rounds_tell_what_happened_between_them(tmp_path: Path) -> None:
    desk = Desk(Hall(tmp_path))
    desk.hall.add("a", "b", "c")
    desk.hall.start(rounds=6)
    desk.hall.until(lambda: len(desk.hall.rows("round")) == 2)
    desk.run("weights", "--w-e", "0.25")
    desk.run("boards", "drain", "c")
    desk.hall.until(lambda: len(desk.hall.rows("round")) == 3)
    desk.hall.ask(Pause())
    desk.hall.until(lambda: desk.hall.server.fleet_state().phase == "paused")
    desk.hall.kill()
    desk.hall.turn()
    desk.run("resume")
    desk.hall.until(desk.hall.over)
    told = desk.run("rounds").output.splitlines()
    between = [line.split(maxsplit=3)[3] for line in told if line.startswith("- ")]
    assert [text.partition(", by")[0] for text in between] == [
        "weights w_t 0.75, w_e 0.25 from round 4 on",
        "drain c from round 4 on",
        "pause",
        "coordinator restarted on " + desk.hall.server.host + ", term 2",
        "resume",
    ]
    shown = [line.split()[0] if line[0] != "-" else line.split()[3].strip(",") for line in told[2:]]
    assert shown == ["1", "2", "weights", "drain", "3", "pause", "4", "coordinator", "resume", "5", "6"]
    data = desk.run("rounds", "--json").json
    assert [row["what"] for row in data["controls"]] == ["start", "weights", "drain", "pause", "resume"]
    assert [row["term"] for row in data["restarts"]] == [2]
    newest = desk.run("rounds", "--last", "1", "--json").json
    assert newest["controls"] == newest["restarts"] == []
