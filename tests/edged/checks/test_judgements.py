"""What `edged doctor` says of clocks, torch, memory, room and address, on machines of every kind."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from edged.checks import Finding, clock, machine, network, torch, written
from edged.checks.clock import Clocks
from edged.checks.torch import Answer, Ended
from edged.checks.torch_builds import another, way_out

NOW = 1_796_000_000.0  # 30 November 2026
GOOD = Answer(64, "little", version="2.13.0+cpu", gloo=True, computes=True)


def by_name(findings: Iterable[Finding]) -> dict[str, Finding]:
    found = list(findings)
    assert all(one.way_out for one in found if one.verdict == "fail")
    return {one.what: one for one in found}


def test_a_finding_is_a_line_and_its_way_out_another() -> None:
    assert written(Finding("disk", "ok", "room")) == "ok    disk: room"
    full = Finding("disk", "fail", "full", "free some")
    assert written(full) == "FAIL  disk: full\n      -> free some"
    assert written(full, "free some") == "FAIL  disk: full"


@pytest.mark.parametrize(
    ("clocks", "tls", "verdicts", "said"),
    [
        (Clocks(NOW, 50.0, 50.0, synchronised=True), True, ("ok", "ok"), "synchronised"),
        (Clocks(NOW, 50.0, 50.0, synchronised=None), True, ("ok", "ok"), "does not say"),
        (Clocks(NOW, 50.0, 50.0, synchronised=False), True, ("warn", "ok"), "do not depend on it"),
        (
            Clocks(60.0, 50.0, 50.0, synchronised=False),
            False,
            ("warn", "ok"),
            "1970-01-01 00:01 UTC cannot be",
        ),
        (Clocks(60.0, 50.0, 50.0, synchronised=False), True, ("fail", "ok"), "certificates"),
        (Clocks(-5.0, 50.0, 50.0, synchronised=False), False, ("warn", "ok"), "cannot be"),
        (Clocks(4e9, 50.0, 50.0, synchronised=True), False, ("warn", "ok"), "2096"),
        (Clocks(NOW, 50.0, 3650.0, synchronised=True), False, ("ok", "warn"), "slept 3,600 s"),
    ],
)
def test_clocks(clocks: Clocks, tls: bool, verdicts: tuple[str, str], said: str) -> None:
    found = by_name(clock.examine(clocks, tls=tls))
    assert (found["clock"].verdict, found["suspend"].verdict) == verdicts
    assert said in " ".join(one.text for one in found.values())


def test_this_machines_clocks_can_be_read() -> None:
    assert clock.read().boottime_seconds >= clock.read().monotonic_seconds - 1.0


@pytest.mark.parametrize(
    ("ended", "verdict", "said"),
    [
        (Ended(0, GOOD), "ok", "2.13.0+cpu trains a step"),
        (Ended(-4, None), "fail", "SIGILL: this wheel does not fit this CPU"),
        (Ended(-11, None), "fail", "SIGSEGV: this wheel does not fit this CPU"),
        (Ended(-9, None), "fail", "too little memory"),
        (Ended(-4, GOOD), "fail", "does not fit"),  # it answered, and died on the way out
        (
            Ended(1, Answer(64, "little", error="ModuleNotFoundError: No module named 'torch'")),
            "fail",
            "not installed",
        ),
        (Ended(1, Answer(64, "little", error="ImportError: libgomp.so.1")), "fail", "libgomp.so.1"),
        (Ended(0, Answer(32, "little", version="2.6.0")), "fail", "32-bit little-endian"),
        (Ended(0, Answer(64, "big", version="2.6.0")), "fail", "64-bit big-endian"),
        (Ended(0, Answer(64, "little", version="2.6.0", gloo=True)), "fail", "not finite"),
        (Ended(0, Answer(64, "little", version="2.1.0", gloo=True, computes=True)), "warn", "older than 2.6"),
        (Ended(0, Answer(64, "little", version="2.10.0", gloo=True, computes=True)), "ok", "2.10.0"),
        (Ended(fault="importing it did not end within 600 s"), "fail", "did not end"),
        (
            Ended(1, None, words="Illegal", fault="its answer cannot be read"),
            "fail",
            "cannot be read: Illegal",
        ),
    ],
)
def test_torch(tmp_path: Path, ended: Ended, verdict: str, said: str) -> None:
    found = by_name(torch.examine(ended, tmp_path, "aarch64"))["torch"]
    assert (found.verdict, said in found.text) == (verdict, True), found.text


def test_a_build_without_gloo_trains_by_messages_alone(tmp_path: Path) -> None:
    answer = Answer(64, "little", version="2.6.0", gloo=False, computes=True)
    found = by_name(torch.examine(Ended(0, answer), tmp_path, "aarch64"))
    assert (found["torch"].verdict, found["gloo"].verdict) == ("ok", "warn")
    assert "pma and asp can" in found["gloo"].text


@pytest.mark.parametrize(
    ("script", "code", "version"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", -4, None),
        ('print(\'{"bits": 64, "byteorder": "little", "version": "9.9"}\')', 0, "9.9"),
        ("print('half a')", 0, None),
        ("pass", 0, None),
    ],
)
def test_the_child_is_heard_out(script: str, code: int, version: str | None) -> None:
    ended = torch.ask((sys.executable, "-c", script))
    assert ended.code == code
    assert (ended.answer.version if ended.answer else None) == version
    assert bool(ended.fault) == (code == 0 and version is None)


def test_a_child_that_hangs_or_is_not_there_is_a_fault() -> None:
    assert (
        "did not end" in torch.ask((sys.executable, "-c", "import time; time.sleep(60)"), seconds=0.2).fault
    )
    assert "No such file" in torch.ask(("/no/such/python",)).fault


@pytest.mark.parametrize(
    ("arch", "files", "said"),
    [
        ("x86_64", (), "--index-url"),
        ("x86_64", ("proc/driver/nvidia/version",), "'edged[torch]'"),
        ("aarch64", (), "'edged[torch]'"),
        ("aarch64", ("etc/nv_tegra_release",), "NVIDIA's wheel"),
        ("riscv64", (), "--system-site-packages"),
        ("armv7l", (), "64-bit image"),
    ],
)
def test_each_kind_of_board_is_told_its_build(
    tmp_path: Path, arch: str, files: tuple[str, ...], said: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert said in way_out(arch, tmp_path)
    assert "sudo edged install" in way_out(arch, tmp_path, "/opt/edged/releases/1")
    assert ("NVIDIA" in another(arch, tmp_path)) == ("nv_tegra" in "".join(files))


def board(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_raspberry_pi_without_the_memory_controller_is_told_the_line(tmp_path: Path) -> None:
    root = board(
        tmp_path,
        proc__meminfo="MemTotal:  3884096 kB\n",
        **{
            "sys__fs__cgroup__cgroup.controllers": "cpuset cpu io pids\n",
            "proc__device-tree__model": "Raspberry Pi 4 Model B Rev 1.4\0",
            "boot__firmware__cmdline.txt": "console=tty1\n",
        },
    )
    found = by_name(machine.memory(root))
    assert found["memory"].verdict == "ok"
    assert found["memory limit"].verdict == "warn"
    assert "cgroup_enable=memory" in found["memory limit"].way_out
    assert "/boot/firmware/cmdline.txt" in found["memory limit"].way_out


@pytest.mark.parametrize(
    ("files", "verdicts"),
    [
        ({}, ("warn", "warn")),
        ({"proc/meminfo": "MemTotal: 500000 kB\n"}, ("warn", "warn")),
        (
            {"proc/meminfo": "MemTotal: 8000000 kB\n", "sys/fs/cgroup/cgroup.controllers": "cpu memory\n"},
            ("ok", "ok"),
        ),
        ({"proc/meminfo": "nonsense", "proc/cgroups": "#a b c d\nmemory\t4\t30\t1\n"}, ("warn", "ok")),
        ({"proc/cgroups": "memory\t4\t30\t0\n"}, ("warn", "warn")),
    ],
)
def test_memory(tmp_path: Path, files: dict[str, str], verdicts: tuple[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = by_name(machine.memory(tmp_path))
    assert (found["memory"].verdict, found["memory limit"].verdict) == verdicts


def test_room_is_counted_in_models(tmp_path: Path) -> None:
    found = machine.disk(tmp_path / "not" / "made" / "yet")
    assert f"free in {tmp_path}: room for two models of" in found.text


def test_the_runtime_folder_is_the_one_that_the_daemon_would_take(tmp_path: Path) -> None:
    asked = str(tmp_path / "spool")
    assert machine.runtime_folder(asked, {}, tmp_path) == (Path(asked), "")
    assert machine.runtime_folder("", {"RUNTIME_DIRECTORY": f"{asked}:/x"}, tmp_path) == (Path(asked), "")
    assert machine.runtime_folder("", {}, tmp_path) == (tmp_path, "")
    folder, reason = machine.runtime_folder("", {}, tmp_path / "none")
    assert folder is not None
    assert "a temporary folder" in reason
    (tmp_path / "file").write_text("")
    folder, reason = machine.runtime_folder(str(tmp_path / "file" / "below"), {}, tmp_path)
    assert (folder, "cannot be written" in reason) == (None, True)


def test_an_address_on_loopback_reaches_no_other_board() -> None:
    found = by_name(network.examine("127.0.0.1", 1883))
    assert "only boards on this machine" in found["interface"].text
    assert found["host name"].verdict == "ok"


def test_ipv6_alone_is_not_enough_for_gradients() -> None:
    found = next(iter(network.examine("::1", 1883)))
    if "no route" in found.text:
        pytest.skip("this machine has no IPv6")
    assert (found.verdict, "not IPv4" in found.text) == ("warn", True)
