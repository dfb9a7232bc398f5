"""What `boards` remarks on a board, once."""

from coordinator.commands.boards import remarks


def test_what_keeps_a_board_out_is_not_told_again_as_the_last_odd_thing() -> None:
    lack = "duplicate id: pi at 192.0.2.1 and pi at 192.0.2.2 both use it; give one of them another id"
    row = {
        "lack": lack,
        "counters": {"duplicate_ids": 3},
        "last_odd": "duplicate id: pi at 192.0.2.1 and pi at 192.0.2.2",
    }
    assert remarks(row) == [lack, "duplicate ids 3"]


def test_what_was_odd_is_told_with_its_words() -> None:
    row = {"counters": {"malformed_reports": 1200}, "last_odd": "report: JSON is malformed"}
    assert remarks(row) == ["malformed reports 1,200; last: report: JSON is malformed"]
