"""The probe in docs/add-a-probe.md is a probe: its code is taken from the page and run."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from probes import Context
from probes._virtual import VirtualClock
from probes.meter import Meter
from tests.probes.machines import put

Make = Callable[..., Context]
PAGE = Path(__file__).parents[2] / "docs" / "add-a-probe.md"
OPTIONS = {"bench_supply": {"path": "/run/supply/watts"}}


@pytest.fixture
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    found = re.search(r"```python\n(.+?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    assert len([line for line in found[1].splitlines() if line]) <= 60
    path = tmp_path_factory.mktemp("example") / "bench_supply.py"
    path.write_text(found[1])
    spec = importlib.util.spec_from_file_location("bench_supply", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_supply"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["bench_supply"]


def test_it_measures(example: ModuleType, machine: Make, clock: VirtualClock) -> None:
    meter = Meter(machine({"/run/supply/watts": "4.50\n"}, options=OPTIONS), [example.create()])
    meter.open()
    start = meter.mark()
    for _ in range(10):
        clock.advance(1.0)
        meter.sample()
    found = meter.window(start, meter.mark())
    assert found.joules == pytest.approx(45.0)
    assert (found.scope, found.basis) == ("dc_in", "measured")


@pytest.mark.parametrize("said", ["", "soon\n", "nan\n", "-3\n", "5000\n"])
def test_what_it_writes_wrongly_is_not_measured(example: ModuleType, machine: Make, said: str) -> None:
    context = machine({"/run/supply/watts": "4.50\n"}, options=OPTIONS)
    meter = Meter(context, [example.create()])
    meter.open()
    put(context, "/run/supply/watts", said)
    context.clock.advance(1.0)  # type: ignore[attr-defined]
    meter.sample()
    (shown,) = meter.channels()
    assert shown.status == "invalid"
    assert shown.reason


def test_it_is_silent_when_nobody_asks_and_helpful_when_it_cannot(example: ModuleType, machine: Make) -> None:
    assert example.create().detect(machine()) == []
    (only,) = example.create().detect(machine(options=OPTIONS))
    assert (only.status, only.remedy) == ("absent", "systemctl start supply-logger")
    (only,) = example.create().detect(machine(options={"bench_supply": {}}))
    assert only.reason == "energy.bench_supply.path is missing"
