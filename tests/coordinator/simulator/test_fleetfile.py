"""Fleet files: those that ship are read, those that are wrong are refused by file, board and key."""

import pytest

from coordinator.simulator.fleetfile import FleetError, parse, read, shipped

GOOD = b"""
name = "two"
[[board]]
id = "a"
samples_per_second = 10
active_watts = 5
waiting_watts = 1
"""


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_fleet_is_read_and_says_what_it_is(name: str) -> None:
    fleet = read(name)
    assert fleet.name == name
    assert fleet.about


def test_the_fleets_of_the_papers_ship() -> None:
    wanted = {"hl1", "hl2", "hl4", "hl8", "invented-eleven", "paper-eleven", "three-silos"}
    assert wanted <= set(shipped())


def test_fitted_speeds_and_waiting_follow_from_the_sourced_figures_as_the_file_says() -> None:
    for board in read("paper-eleven").board:
        published = {key: float(value) for key, value in board.sourced.items()}
        assert board.active_watts == published["full_watts"]
        assert board.samples_per_second == pytest.approx(
            100 * (published["sevenzip_mips"] / 5790) ** 1.2, abs=0.01
        )
        assert board.waiting_watts == pytest.approx(0.4 * published["idle_watts"], abs=1e-3)


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (GOOD.replace(b"= 10", b"= 0"), ["board a", "samples_per_second"]),
        (GOOD.replace(b"waiting_watts", b"waiting_wats"), ["board a", "waiting_wats"]),
        (GOOD.replace(b"= 5", b'= "five"'), ["board a", "active_watts"]),
        (GOOD + GOOD[GOOD.index(b"[[") :], ["board a", "more than once"]),
        (b'name = "none"', ["board"]),
        (b'name = "none"\nboard = []', ["board"]),
        (b"name = ", ["not TOML"]),
        (b"\xff", ["not TOML"]),
    ],
)
def test_a_wrong_file_is_refused_by_name(data: bytes, texts: list[str]) -> None:
    with pytest.raises(FleetError) as refused:
        parse(data, "fleet.toml")
    for text in ["fleet.toml", *texts]:
        assert text in str(refused.value)


def test_a_fleet_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(FleetError, match="invented-eleven"):
        read("nowhere.toml")
