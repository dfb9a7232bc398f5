"""Stand-ins for a sensor: recorded traces, the model, the emulated board."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from probes import Context, load
from probes._virtual import VirtualClock
from probes.emulated import Activity
from probes.meter import Meter
from tests.probes.machines import put

Make = Callable[..., Context]


def opened(context: Context, *names: str) -> Meter:
    meter = Meter(context, [load(name) for name in names])
    meter.open()
    return meter


HEAD = {"channel": "bench", "scope": "wall", "kind": "power"}


def trace(path: Path, *rows: object) -> dict[str, dict[str, object]]:
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in rows))
    return {"replay": {"path": str(path)}}


def test_a_recorded_trace_plays_from_the_moment_it_is_opened(
    machine: Make, tmp_path: Path, clock: VirtualClock
) -> None:
    clock.advance(1000.0)
    rows = ({"seconds": k / 10, "watts": 4.0 + (k >= 50) * 2} for k in range(101))
    meter = opened(machine(options=trace(tmp_path / "t", HEAD, *rows)), "replay")
    start = meter.mark()
    for _ in range(100):
        clock.advance(0.1)
        meter.sample()
    found = meter.window(start, meter.mark(1010.0 - 1e-9))
    assert found.joules == pytest.approx(50.0, abs=0.2)
    assert found.flags == ("replayed",)
    clock.advance(5.0)
    meter.sample()
    assert meter.live().channels[0].reason == "the trace has ended"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "is empty"),
        ([HEAD], "holds no reading"),
        (["{"], "line 1: '{' is no JSON object"),
        ([{**HEAD, "kind": "guess"}], "kind 'guess'"),
        ([{**HEAD, "scope": "roof"}], "'roof' is none of"),
        ([HEAD, {"seconds": 0}], "line 2: seconds and watts must be numbers"),
        ([HEAD, '{"seconds": 0, "watts": NaN}'], "line 2: seconds and watts must be numbers"),
        ([HEAD, {"seconds": 1, "watts": 1}, {"seconds": 1, "watts": 1}], "line 3: seconds do not go up"),
    ],
)
def test_a_trace_that_cannot_be_played_names_its_line(
    machine: Make, tmp_path: Path, rows: list[object], said: str
) -> None:
    (only,) = load("replay").detect(machine(options=trace(tmp_path / "t", *rows)))
    assert (only.status, said in only.reason) == ("invalid", True)


def test_a_trace_that_is_not_there_is_named(machine: Make) -> None:
    (only,) = load("replay").detect(machine(options={"replay": {"path": "/no/such/trace"}}))
    assert "/no/such/trace" in only.reason


FIGURES = {"estimate": {"idle_watts": 3.0, "full_watts": 11.0, "source": "a plug, once"}}


def stat(busy: int, idle: int, cores: int = 4) -> str:
    quiet = "123456789 0 12345678 1234567890 12345 0 123456 0 0 0"
    rows = [f"cpu  {busy} 0 0 {idle} 5 0 0 7 0 0", *(f"cpu{k} {quiet}" for k in range(cores))]
    return "\n".join([*rows, "intr 1", "ctxt 2"]) + "\n"


def test_the_model_lies_between_idle_and_full_by_the_busy_share(machine: Make, clock: VirtualClock) -> None:
    context = machine({"/proc/stat": stat(0, 0)}, options=FIGURES)
    meter = opened(context, "estimate")
    start = meter.mark()
    clock.advance(10.0)
    put(context, "/proc/stat", stat(2000, 2000))  # 20 of 40 core seconds
    found = meter.window(start, meter.mark())
    assert found.joules == pytest.approx(70.0)
    assert found.basis == "estimated"
    assert found.uncertainty_joules == pytest.approx(28.0, rel=0.01)
    start = meter.mark()
    clock.advance(10.0)
    put(context, "/proc/stat", stat(0, 0))  # cores went offline: no work is undone
    assert meter.window(start, meter.mark()).joules == pytest.approx(30.0)


def test_all_cores_of_a_large_machine_are_counted(machine: Make, clock: VirtualClock) -> None:
    context = machine({"/proc/stat": stat(0, 0, cores=256)}, options=FIGURES)
    meter = opened(context, "estimate")
    start = meter.mark()
    clock.advance(10.0)
    put(context, "/proc/stat", stat(64_000, 192_000, cores=256))  # a quarter of all core seconds
    assert meter.window(start, meter.mark()).joules == pytest.approx(30.0 + 20.0)


def test_the_model_never_passes_full_watts_however_short_the_window(
    machine: Make, clock: VirtualClock
) -> None:
    context = machine({"/proc/stat": stat(0, 0)}, options=FIGURES)
    meter = opened(context, "estimate")
    start = meter.mark()
    clock.advance(0.001)
    put(context, "/proc/stat", stat(4, 0))  # one tick of each core
    short = meter.mark()
    assert meter.window(start, short).joules == pytest.approx(0.011)
    clock.advance(0.099)
    assert meter.window(start, meter.mark()).joules == pytest.approx(0.1 * 3.0 + 0.01 * 8.0)


@pytest.mark.parametrize(
    ("options", "files", "status", "said"),
    [
        ({}, {}, "absent", "no idle and full watts are known for this board"),
        ({}, {"/proc/device-tree/model": "Acme Board\0"}, "absent", "known for Acme Board"),
        ({"idle_watts": 3.0}, {}, "invalid", "energy.estimate.full_watts is missing"),
        ({"idle_watts": "3", "full_watts": 5}, {}, "invalid", "energy.estimate.idle_watts: '3' is no number"),
        ({"idle_watts": 9, "full_watts": 5}, {}, "invalid", "lies below idle_watts"),
        ({"idle_watts": 3, "full_watts": 5}, {}, "absent", "/proc/stat"),
        (
            {"idle_watts": 3, "full_watts": 5},
            {"/proc/stat": "cpu a b\n"},
            "invalid",
            "not the processors' times",
        ),
    ],
)
def test_without_figures_there_is_no_number_but_the_line_to_add(
    machine: Make, options: dict[str, object], files: dict[str, str], status: str, said: str
) -> None:
    (only,) = load("estimate").detect(machine(files, options={"estimate": options}))
    assert (only.status, said in only.reason) == (status, True)
    if status == "absent" and not options:
        assert "[energy.estimate] idle_watts" in only.remedy


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"board": "rpi4", "wait_watts": 1.6}, "train_watts is missing"),
        ({"board": "rpi4", "wait_watts": -1, "train_watts": 5}, "-1 is no number of 0 or more"),
        ({"wait_watts": 1, "train_watts": 5}, "energy.emulated.board is missing"),
    ],
)
def test_an_emulated_board_that_is_not_told_enough_is_refused(
    machine: Make, options: dict[str, object], said: str
) -> None:
    (only,) = load("emulated").detect(machine(options={"emulated": options}, activity=Activity()))
    assert (only.status, said in only.reason) == ("invalid", True)


def test_activity_is_told_late_twice_and_out_of_turn_and_still_adds_up() -> None:
    activity = Activity()
    activity.end(1.0)  # nothing had begun
    activity.begin(2.0)
    activity.begin(3.0)  # said twice: the first holds
    assert activity(5.0) == pytest.approx(3.0)
    activity.end(6.0)
    activity.begin(5.5)  # before the last end: from that end on
    activity.end(8.0)
    assert [activity(at) for at in (0.0, 2.0, 4.0, 6.0, 7.0, 8.0, 99.0)] == pytest.approx(
        [0, 0, 2, 4, 5, 6, 6]
    )
