"""What holds of every probe in the folder, found by listing it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from probes import Context, Finding, load, load_all, names
from probes.meter import Meter
from tests.probes.machines import FIXTURES, recorded

Make = Callable[..., Context]
JUNK = (
    "",
    "\n",
    "NaN\n",
    "-1\n",
    "9" * 300,
    "0x7f\n",
    "1 2\n",
    "\x00\xff",
    "inf\n",
    "12.5\n",
    "-9223372036854775809\n",
)


def check(finding: Finding) -> None:
    assert finding.status in ("ok", "denied", "absent", "invalid", "stale", "frozen")
    assert finding.status == "ok" or finding.reason
    if finding.status == "ok":
        assert finding.channel is not None
        assert 0 <= finding.channel.relative_uncertainty <= 1
        assert finding.channel.source


@pytest.mark.parametrize("name", names())
def test_its_name_is_its_files(name: str) -> None:
    assert load(name).name == name


@pytest.mark.parametrize("name", names())
def test_an_empty_machine_has_no_channel_and_raises_nothing(name: str, machine: Make) -> None:
    for finding in load(name).detect(machine()):
        check(finding)
        assert finding.status != "ok"


@pytest.mark.parametrize("seed", range(4))
def test_a_machine_full_of_junk_ends_in_statuses_and_never_in_an_exception(seed: int, machine: Make) -> None:
    """Every recorded file holds something that it should not."""
    if not FIXTURES.is_dir():
        pytest.skip(f"no recorded machines at {FIXTURES}")
    random = Random(seed)
    files: dict[str, str] = {}
    for path in sorted(FIXTURES.glob("*.json")):
        record = recorded(path.stem)
        for name, said in {**record.get("files", {}), **record.get("derived_files", {})}.items():
            files[name] = said if random.random() < 0.6 else random.choice(JUNK)
    context = machine(files)
    meter = Meter(context)
    meter.open()
    start = meter.mark()
    for _ in range(5):
        context.clock.advance(1.0)  # type: ignore[attr-defined]
        for name in random.sample(sorted(files), 40):
            for target in context.root.glob(name.lstrip("/")):
                target.write_text(random.choice(JUNK)) if random.random() < 0.7 else target.unlink()
        meter.sample()
    meter.look_again()
    found = meter.window(start, meter.mark())
    assert found.joules is None or found.joules >= 0
    for shown in meter.channels():
        assert shown.status == "ok" or shown.reason
    meter.close()


def test_two_probes_never_give_one_id(machine: Make) -> None:
    if not FIXTURES.is_dir():
        pytest.skip(f"no recorded machines at {FIXTURES}")
    files: dict[str, str] = {}
    for path in sorted(FIXTURES.glob("*.json")):
        record = recorded(path.stem)
        files |= {**record.get("files", {}), **record.get("derived_files", {})}
    context = machine(files)
    ids = [one.channel.id for probe in load_all() for one in probe.detect(context) if one.channel]
    assert len(ids) > 25
    assert sorted(ids) == sorted(set(ids))


def test_an_unknown_probe_is_refused_with_those_there_are() -> None:
    with pytest.raises(LookupError, match=r"no probe named 'sonar'; there are: battery, emulated"):
        load("sonar")


def test_all_probes_and_the_meter_import_with_the_standard_library_alone() -> None:
    root = Path(__file__).parents[2]
    code = (
        "import sys; before = set(sys.modules); from probes import load_all; import probes.meter; load_all();"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names) - {'probes'}))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(root)!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
