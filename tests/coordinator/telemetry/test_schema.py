"""The table holds what is written: types, tags, texts; and how many series it can come to."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from influxdb_client.client.write.point import Point as ClientPoint
from msgspec import structs

from coordinator.telemetry.chronicle import Chronicle
from coordinator.telemetry.lines import Writer, is_set
from coordinator.telemetry.schema import MEASUREMENTS, NONE, TAGS, Point, SchemaError, point
from edged.messages import EnergyChannel, FleetState
from tests.coordinator.telemetry.takers import CHANNELS, SETTINGS, board_row, closed_row, power, round_row

NOW = 1_790_000_000_000_000_000


def made(measurement: str, tags: dict[str, str], values: dict[str, object]) -> Point:
    found = point(measurement, tags, values)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_tags_are_of_the_allowed_ones_and_run_only_where_all_boards_share_a_point() -> None:
    for name, table in MEASUREMENTS.items():
        extra = set(table.tags) - set(TAGS)
        assert extra <= ({"run"} if name in ("round", "fleet") else set()), name
        assert not set(table.tags) & set(table.fields), f"{name}: 3.x refuses a name that is tag and field"


def test_a_point_has_all_tags_of_its_measurement() -> None:
    found = made("power", {"fleet": "lab", "board": "pi5"}, {"watts": 3.0})
    assert tuple(found.tags) == MEASUREMENTS["power"].tags
    assert found.tags["silo"] == found.tags["channel"] == NONE


def test_a_whole_number_in_a_float_field_is_written_as_a_float() -> None:
    assert type(made("power", {}, {"watts": 3}).fields["watts"]) is float


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_what_is_unknown_is_left_out_and_never_0(value: float | None) -> None:
    assert made("power", {}, {"watts": value, "headline": True}).fields == {"headline": True}
    assert point("power", {}, {"watts": value}) is None


@pytest.mark.parametrize(
    ("measurement", "tags", "values", "named"),
    [
        ("powers", {}, {"watts": 1.0}, "powers"),
        ("power", {"run": "r1"}, {"watts": 1.0}, "power.run"),
        ("power", {}, {"volts": 1.0}, "power.volts"),
        ("power", {}, {"round": 1.5}, "power.round"),
        ("power", {}, {"round": True}, "power.round"),
        ("power", {}, {"watts": "3"}, "power.watts"),
        ("round", {}, {"round": 2**63}, "round.round"),
    ],
)
def test_what_the_table_does_not_have_is_refused_by_name(
    measurement: str, tags: dict[str, str], values: dict[str, object], named: str
) -> None:
    with pytest.raises(SchemaError, match=named):
        point(measurement, tags, values)  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None)
@given(tag=st.text(max_size=30), text=st.text(max_size=60))
def test_a_line_is_one_line_whatever_a_name_or_text_holds(tag: str, text: str) -> None:
    found = made("event", {"board": tag}, {"text": text, "kind": "k", "count": 1})
    line = Writer().line(structs.replace(found, nanoseconds=NOW))
    assert len(line.splitlines()) == 1
    assert line.startswith("event,board=")
    assert line.endswith(f" {NOW}")


@settings(max_examples=100, deadline=None)
@given(tag=st.text(max_size=30), text=st.text(max_size=60), watts=st.floats(allow_nan=False))
def test_a_line_is_the_clients_own_word_for_word(tag: str, text: str, watts: float) -> None:
    found = structs.replace(
        made("event", {"board": tag}, {"text": text, "w_t": watts, "count": 1}), nanoseconds=NOW
    )
    whole: Any = ClientPoint("event")  # type: ignore[no-untyped-call]
    for name, value in found.tags.items():
        whole = whole.tag(name, value)
    for name, field in found.fields.items():
        whole = whole.field(name, field)
    writer = Writer()
    assert writer.line(found) == whole.time(NOW, "ns").to_line_protocol()
    again = writer.line(structs.replace(found, nanoseconds=NOW + 5))
    assert again == whole.time(NOW + 5, "ns").to_line_protocol()


def test_equal_stamps_of_one_series_are_told_apart_so_that_none_replaces_another() -> None:
    writer = Writer()
    same = structs.replace(made("event", {"board": "pi5"}, {"count": 1}), nanoseconds=NOW)
    other = structs.replace(made("event", {"board": "pi4"}, {"count": 1}), nanoseconds=NOW)
    stamps = [writer.line(one).rsplit(" ", 1)[1] for one in (same, same, other, same)]
    assert stamps == [str(NOW), str(NOW + 1), str(NOW), str(NOW + 2)]


def test_no_line_is_stamped_by_a_clock_that_was_not_set() -> None:
    assert not is_set(86_400.0)
    with pytest.raises(ValueError, match="not set"):
        Writer().line(structs.replace(made("event", {}, {"count": 1}), nanoseconds=86_400 * 10**9))


def test_series_are_boards_times_channels_times_regimes_and_runs_on_two_measurements_only() -> None:
    boards, runs, rounds, regimes = 40, 25, 6, ("pma", "ddp")
    series: set[tuple[str, ...]] = set()
    chronicle = Chronicle("lab", lambda name: ("silo", CHANNELS))
    for number in range(runs):
        run = {"run": f"run{number}"}
        chronicle.points("begun", {**run, "settings": {**SETTINGS, "regime": regimes[number % 2]}})
        for round_number in range(1, rounds + 1):
            points = [
                point for board in range(boards) for point in chronicle.points("power", power(f"b{board}"))
            ]
            for board in range(boards):
                points += chronicle.points("board_round", board_row(f"b{board}", round_number, **run))
                points += chronicle.points("closed", {**closed_row(f"b{board}", round_number), **run})
            points += chronicle.points("round", round_row(round_number, **run))
            points += chronicle.points("evaluation", {**run, "round": round_number, "loss": 0.5})
            points += chronicle.points("fleet", (FleetState("c", 1, "up"), {"boards_up": boards}))
            series |= {(found.measurement, *found.tags.values()) for found in points}
    by_measurement = {name: sum(one[0] == name for one in series) for name in MEASUREMENTS}
    assert by_measurement["power"] == boards * len(CHANNELS)
    assert by_measurement["board_round"] == boards * len(regimes)
    assert by_measurement["round"] == by_measurement["fleet"] == runs
    assert len(series) <= boards * len(CHANNELS) * len(regimes) + 2 * runs


def test_a_channel_is_told_from_another_by_its_tag() -> None:
    chronicle = Chronicle("lab", lambda name: ("", (EnergyChannel("cpu", "package", "measured"),)))
    found = {one.tags["channel"]: one for one in chronicle.points("power", power())}
    assert found["cpu"].tags["basis"] == "measured"
    assert found["cpu"].tags["scope"] == "package"
    assert found["pmic"].tags["basis"] == "calibrated", "the message's own word, where no birth told"
    assert "temperature_celsius" not in found["cpu"].fields
    assert found["pmic"].fields["temperature_celsius"] == 61.0
