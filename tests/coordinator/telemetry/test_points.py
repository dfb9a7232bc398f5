"""What is written of a round: nothing added that must not be, nothing unknown as 0."""

from coordinator.events import Note
from coordinator.telemetry.chronicle import Chronicle, predictions, time_only
from coordinator.telemetry.points import waiting_share
from coordinator.telemetry.schema import Point
from tests.coordinator.play import Play
from tests.coordinator.telemetry.takers import SETTINGS, board_row, closed_row, round_row


def chronicle() -> Chronicle:
    made = Chronicle("lab")
    made.points("begun", {"run": "r1", "settings": SETTINGS})
    return made


def only(points: list[Point]) -> Point:
    assert len(points) == 1
    return points[0]


def test_a_round_tells_joules_their_bounds_and_the_waiting() -> None:
    told = chronicle()
    told.points("board_round", board_row("pi4", seconds=4.0))
    told.points("board_round", board_row("pi5", seconds=2.0))
    found = only(told.points("round", round_row()))
    assert found.tags == {"fleet": "lab", "run": "r1", "regime": "pma", "policy": "adaptive"}
    assert found.fields["joules"] == found.fields["joules_calibrated"] == 20.0
    assert found.fields["uncertainty_joules"] == 1.0
    assert found.fields["coverage"] == 0.98
    assert found.fields["waiting_share"] == 0.25
    assert found.fields["elapsed_seconds"] == 5.0


def test_joules_of_unlike_bases_are_not_added() -> None:
    told = chronicle()
    found = only(told.points("round", round_row(compute_joules_by_basis={"measured": 4.0, "estimated": 6.0})))
    assert "joules" not in found.fields
    assert "joules_in_all" not in found.fields
    assert (found.fields["joules_measured"], found.fields["joules_estimated"]) == (4.0, 6.0)
    assert found.fields["basis"] == "estimated,measured"


def test_a_board_without_joules_takes_the_sum_away_for_good() -> None:
    told = chronicle()
    first = only(told.points("round", round_row(1, joules_unknown_of=["pi4"])))
    second = only(told.points("round", round_row(2)))
    assert "joules" not in first.fields
    assert second.fields["joules"] == 20.0
    assert "joules_in_all" not in second.fields
    assert first.fields["boards_without_joules"] == 1


def test_a_part_whose_joules_are_unknown_has_none() -> None:
    found = only(chronicle().points("closed", closed_row(wait_joules=None)))
    assert found.fields["wait_seconds"] == 2.0
    assert "wait_joules" not in found.fields
    assert found.fields["run"] == "r1"


def test_a_board_whose_joules_lack_says_why() -> None:
    row = board_row(joules=None, joules_reason="the sensor went away", uncertainty_joules=None, coverage=None)
    found = only(chronicle().points("board_round", row))
    assert found.fields["joules_reason"] == "the sensor went away"
    assert "joules_per_sample" not in found.fields


def test_held_out_figures_stand_beside_the_seconds_and_joules_that_they_cost() -> None:
    told = chronicle()
    for number in (1, 2, 3):
        told.points("round", round_row(number))
    found = only(
        told.points("evaluation", {"run": "r1", "round": 2, "loss": 0.4, "accuracy": 0.9, "error": ""})
    )
    assert found.fields["heldout_loss"] == 0.4
    assert (found.fields["heldout_seconds"], found.fields["heldout_joules"]) == (10.0, 40.0)
    lacking = only(told.points("evaluation", {"run": "r1", "round": 3, "error": "no pool here"}))
    assert "heldout_loss" not in lacking.fields
    assert lacking.fields["reason"] == "not known: no pool here"


def test_a_run_that_is_taken_up_again_goes_on_with_its_totals() -> None:
    told = Chronicle("lab")
    told.begin("r1", SETTINGS, [round_row(1), round_row(2)])
    found = only(told.points("round", round_row(3)))
    assert found.fields["elapsed_seconds"] == 15.0
    assert found.fields["joules_in_all"] == 60.0


def test_a_change_of_the_operator_is_an_event_in_words_and_numbers() -> None:
    row = {"run": "r1", "from_round": 4, "who": "ann@desk", "what": "weights", "w_t": 0.5, "w_e": 0.5}
    found = only(chronicle().points("control", row))
    assert found.fields["kind"] == "weights"
    assert "from round 4 on, by ann@desk" in str(found.fields["text"])
    assert found.fields["w_e"] == 0.5


def test_something_odd_is_an_event_of_its_board() -> None:
    found = only(chronicle().points("note", Note("pi4", "duplicate_reports", "reported before")))
    assert found.tags["board"] == "pi4"
    assert found.fields["kind"] == "duplicate_reports"
    assert only(chronicle().points("note", Note("-", "strange_topics", "x"))).tags["board"] == "-"


def test_of_all_time_until_the_longest_is_done_the_others_wait_a_share() -> None:
    assert waiting_share([4.0, 2.0, 0.0]) == 0.5
    assert waiting_share([3.0, 3.0]) == 0.0
    assert waiting_share([]) is None


def test_a_decision_tells_what_shares_by_time_alone_would_take() -> None:
    play = Play(policy="adaptive", w_t=0.0, w_e=1.0, rounds=4)
    for _ in range(3):
        play.end_round()
    decision = play.rows("decision")[-1]
    settings = {"regime": "pma", "batch": 10}
    predicted = predictions(decision, settings)
    by_time = time_only(decision, settings)
    assert by_time is not None
    assert sum(by_time.shares.values()) == sum(decision["decision"]["shares"].values())  # type: ignore[index]
    assert predicted["time_only_seconds"] is not None
    assert predicted["predicted_seconds"] is not None
    assert predicted["time_only_seconds"] < predicted["predicted_seconds"], "energy alone takes longer"


def test_asynchronous_updates_are_told_with_their_staleness() -> None:
    row = board_row("pi4", updates=7, dropped=1, staleness={"0": 3, "1": 2, "6": 2})
    found = only(chronicle().points("board_round", row)).fields
    told = ("updates", "updates_too_old", "staleness_least", "staleness_median", "staleness_most")
    assert tuple(found[name] for name in told) == (7, 1, 0, 1, 6)
    late = only(chronicle().points("board_round", {**row, "updates": 0, "staleness": {}})).fields
    assert late["updates"] == 0
    assert "staleness_median" not in late
    assert "updates" not in only(chronicle().points("board_round", board_row("pi4"))).fields
