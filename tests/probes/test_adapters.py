"""Second opinions: pyRAPL, jtop in a child process, tegrastats."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from probes import CommandError, Context, load
from probes._outside import real_context
from probes._virtual import VirtualClock
from probes.jtop import parse
from probes.meter import Meter
from probes.pyrapl import disagreement
from tests.probes.machines import put

Make = Callable[..., Context]


ZONE = "/sys/class/powercap/intel-rapl:0"


PACKAGE = {
    f"{ZONE}/name": "package-0\n",
    f"{ZONE}/energy_uj": "65000000000\n",
    f"{ZONE}/max_energy_range_uj": "65532610987\n",
}


def opened(context: Context, *names: str) -> Meter:
    meter = Meter(context, [load(name) for name in names])
    meter.open()
    return meter


class PyRaplLibrary:
    """As pyRAPL 0.2.3.1 answers: package and dram in turn, -1 for what is missing, errors without text."""

    class Refusal(Exception):  # noqa: N818 -- as the library names it
        def __str__(self) -> str:
            return ""

    def __init__(self, *microjoules: int, fault: type[Exception] | None = None) -> None:
        self.microjoules = list(microjoules)
        self.fault = fault

    def load(self, name: str) -> Any:
        if name == "pyRAPL.device":
            return SimpleNamespace(Device=SimpleNamespace(PKG=0))
        if name != "pyRAPL.sensor":
            raise ImportError(name)
        return SimpleNamespace(Sensor=self._sensor)

    def _sensor(self, devices: Sequence[int]) -> Any:
        if self.fault is not None:
            raise self.fault
        return SimpleNamespace(energy=lambda: [one for joules in self.microjoules for one in (joules, -1)])


ENABLED = {"pyrapl": {"enabled": True}}


def test_pyrapl_reads_the_same_counter_and_is_never_added(machine: Make, clock: VirtualClock) -> None:
    library = PyRaplLibrary(65_000_000_000)
    context = machine(PACKAGE, options=ENABLED, load_module=library.load)
    meter = opened(context, "powercap", "pyrapl")
    start = meter.mark()
    clock.advance(10.0)
    library.microjoules = [100_000_000]  # wrapped, which the library itself gets wrong
    put(context, f"{ZONE}/energy_uj", "100000000\n")
    found = meter.window(start, meter.mark())
    assert found.channel_id == "powercap/package-0"
    assert found.joules == pytest.approx(632.610987)
    other = found.components["pyrapl/package-0"]
    assert other is not None
    assert disagreement(other, found.joules or 0.0, 61e-6) == ""
    assert "0.500000 J apart" in disagreement(100.5, 100.0, 61e-6)


@pytest.mark.parametrize(
    ("library", "status", "said"),
    [
        (None, "absent", "not installed"),
        (PyRaplLibrary(fault=PermissionError), "denied", "may not read"),
        (PyRaplLibrary(fault=PyRaplLibrary.Refusal), "invalid", "Refusal"),
        (PyRaplLibrary(-1), "invalid", "has no value"),
    ],
)
def test_a_pyrapl_that_does_not_read_says_why(
    machine: Make, library: PyRaplLibrary | None, status: str, said: str
) -> None:
    loading = {} if library is None else {"load_module": library.load}
    (only,) = load("pyrapl").detect(machine(PACKAGE, options=ENABLED, **loading))
    assert (only.status, said in only.reason) == (status, True)


def test_adapters_are_off_by_default(machine: Make) -> None:
    for name in ("pyrapl", "jtop", "replay", "emulated", "shelly"):
        assert load(name).detect(machine()) == []


def lines(
    *said: str, ends: bool = True
) -> Callable[[Sequence[str], Callable[[str | None], None]], Callable[[], None]]:
    """A child that prints these lines and ends, or goes on in silence."""

    def stream(command: Sequence[str], line: Callable[[str | None], None]) -> Callable[[], None]:
        for one in said:
            line(one)
        if ends:
            line(None)
        return lambda: None

    return stream


JTOP = {"jtop": {"enabled": True}}


ORIN = {
    "rail": {
        "VDD_IN": {"power": 4850, "online": True, "avg": 9},
        "VDD_SOC": {"power": 1490},
        "NC": {"power": 1},
    }
}


def test_jtops_rails_are_added_by_our_own_rule(machine: Make) -> None:
    live = opened(machine(options=JTOP, stream=lines(json.dumps(ORIN), ends=False)), "jtop").live()
    assert live.headline_channel_id == "jtop/VDD_IN"
    assert live.scope == "module"
    assert live.watts == pytest.approx(4.85)


@pytest.mark.parametrize(
    ("said", "status", "remedy"),
    [
        ({"error": "jetson-stats is not installed", "status": "absent"}, "absent", "pip install"),
        (
            {"error": "jtop: The jtop.service is not active", "status": "stale"},
            "stale",
            "systemctl start jtop",
        ),
        ({"error": "jtop: I can't access jtop.service", "status": "denied"}, "denied", "usermod -aG jtop"),
        (
            {"error": "jtop: Mismatch version jtop service: [4.2.1] client: [4.2.2]", "status": "invalid"},
            "invalid",
            "the version",
        ),
        ({"error": "anything", "status": "new"}, "invalid", "the version"),
        ({"rail": {}}, "invalid", "the version"),
        ({"rail": None}, "invalid", "the version"),
    ],
)
def test_a_jtop_that_is_missing_stopped_or_of_another_version_says_why(
    machine: Make, said: object, status: str, remedy: str
) -> None:
    (only,) = load("jtop").detect(machine(options=JTOP, stream=lines(json.dumps(said))))
    assert (only.status, remedy in only.remedy) == (status, True)
    assert only.reason


def test_the_real_child_says_that_jetson_stats_is_not_here() -> None:
    pytest.importorskip("probes.jtop")
    try:
        import jtop  # noqa: F401

        pytest.skip("jetson-stats is installed here")
    except ImportError:
        pass
    context = real_context(options=JTOP)
    (only,) = load("jtop").detect(context)
    assert (only.status, only.reason) == ("absent", "jetson-stats is not installed")


@pytest.mark.parametrize("line", ["", "Traceback", "[]", '"x"', "{"])
def test_other_lines_of_the_child_are_passed_over(line: str) -> None:
    assert parse(line) is None


def test_tegrastats_is_left_alone_where_the_files_can_be_read(machine: Make) -> None:
    folder = "/sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0"
    files = {f"{folder}/rail_name_0": "POM_5V_IN\n", f"{folder}/in_power0_input": "900\n"}
    said = "RAM 613/3964MB (lfb 634x4MB) SWAP 0/1982MB POM_5V_IN 950/943 POM_5V_GPU 0/0"
    assert load("tegrastats").detect(machine(files, stream=lines(said))) == []


def test_a_child_that_has_ended_is_absent_and_its_last_line_is_no_reading(machine: Make) -> None:
    """Found by its first line; by the time that it is read, the process has gone."""
    meter = opened(machine(stream=lines("RAM 1/2MB VDD_IN 2532/2698 VDD_CPU 76/178")), "tegrastats")
    shown = {one.source: one for one in meter.channels()}
    assert shown["tegrastats/VDD_IN"].status == "absent"
    assert shown["tegrastats/VDD_IN"].reason == "the process ended"


def test_tegrastats_that_is_not_installed_is_nothing_to_say(machine: Make) -> None:
    def stream(command: Sequence[str], line: Callable[[str | None], None]) -> Callable[[], None]:
        raise CommandError("tegrastats is not installed")

    assert load("tegrastats").detect(machine(stream=stream)) == []


def test_no_adapter_imports_its_library_before_it_is_asked() -> None:
    assert not {"pyRAPL", "jtop", "pynvml", "paho"} & set(sys.modules) - {"paho"}
