"""A board's files: what is kept, what is not, and what is left behind (nothing)."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from edged.cargo import Cargo
from edged.transfers import Outgoing, TransferError, describe


class Hold:
    """A cargo hold whose chunks go into a list, and a model of 10 chunks elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.sent: list[tuple[str, int, bytes]] = []
        self.folder = folder / "runtime"
        self.cargo = Cargo(self.folder, self._publish)
        self.model = folder / "model"
        self.model.write_bytes(bytes(range(250)) * 4)
        self.manifest = describe(self.model, 100)
        self.outgoing = Outgoing(self.model, self.manifest)

    def _publish(self, order: str, number: int, payload: bytes) -> int:
        self.sent.append((order, number, payload))
        return len(self.sent)

    def give(self, *numbers: int) -> None:
        for number in numbers:
            self.cargo.take("r.0", number, self.outgoing.chunk(number))

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture
def hold(tmp_path: Path) -> Hold:
    return Hold(tmp_path)


def test_a_model_is_named_only_when_it_is_whole_and_right(hold: Hold) -> None:
    hold.cargo.fetch("r.0", hold.manifest)
    hold.give(*range(9))
    assert hold.cargo.finish() is None
    assert hold.cargo.missing() == [(9, 10)]
    hold.give(9)
    assert hold.cargo.finish() == hold.manifest.sha256
    assert hold.cargo.model_path("r.0").read_bytes() == hold.model.read_bytes()
    assert hold.cargo.missing() == []


def test_a_chunk_counts_once_and_only_of_the_wanted_version(hold: Hold) -> None:
    assert hold.cargo.take("r.0", 0, b"x") is None
    hold.cargo.fetch("r.0", hold.manifest)
    payload = hold.outgoing.chunk(0)
    assert hold.cargo.take("r.1", 0, payload) is None
    assert hold.cargo.take("r.0", 0, payload) == 1
    assert hold.cargo.take("r.0", 0, payload) is None


def test_fetching_the_same_again_keeps_what_came_and_another_starts_over(hold: Hold) -> None:
    hold.cargo.fetch("r.0", hold.manifest)
    hold.give(0, 1, 2)
    assert hold.cargo.fetch("r.0", hold.manifest) == 3
    assert hold.cargo.fetch("r.0", replace(hold.manifest, sha256="00" * 32)) == 0
    assert hold.cargo.fetch("r.1", hold.manifest) == 0
    assert hold.files() == ["r.1.safetensors.part"]
    hold.cargo.drop()
    assert hold.files() == []


def test_a_model_too_large_for_the_disk_is_refused_at_once(hold: Hold) -> None:
    huge = replace(hold.manifest, length_bytes=1 << 50, chunk_bytes=1 << 28)
    with pytest.raises(TransferError, match="bytes"):
        hold.cargo.fetch("r.0", huge)


def test_an_update_leaves_as_granted_and_is_deleted(hold: Hold) -> None:
    hold.cargo.update_path("o").write_bytes(b"update" * 100_000)
    manifest = hold.cargo.describe("o", 2_000_000)
    assert manifest.length_bytes == 600_000
    hold.cargo.upload("o", ((0, 1),), 8)
    assert hold.sent == []
    hold.cargo.offer("o", manifest)
    hold.cargo.upload("o", ((0, 2),), 1)
    assert [number for _, number, _ in hold.sent] == [0]
    hold.cargo.settled(99)
    hold.cargo.settled(1)
    assert [number for _, number, _ in hold.sent] == [0, 1]
    hold.cargo.discard("o")
    assert hold.files() == []
    hold.cargo.upload("o", ((2, 3),), 1)
    assert len(hold.sent) == 2


def test_a_new_order_sweeps_away_what_older_ones_left(hold: Hold) -> None:
    hold.cargo.update_path("o").write_bytes(b"x")
    (hold.folder / "updates" / ".o.safetensors.7.tmp").write_bytes(b"half")
    hold.cargo.fetch("r.0", hold.manifest)
    (hold.cargo.kept / "r.3.safetensors").write_bytes(b"of this run")
    (hold.cargo.kept / "q.9.safetensors").write_bytes(b"of the run before it")
    hold.cargo.sweep("r")
    assert hold.files() == ["r.0.safetensors.part", "r.3.safetensors"]


def test_chunks_fit_the_brokers_limit(hold: Hold) -> None:
    hold.cargo.update_path("o").write_bytes(b"x" * 10_000)
    assert hold.cargo.describe("o", 5_000).chunk_bytes < 5_000


def test_what_another_process_left_is_removed_and_nothing_is_left_behind(hold: Hold, tmp_path: Path) -> None:
    hold.cargo.update_path("o").write_bytes(b"x")
    hold.cargo.fetch("r.0", hold.manifest)
    again = Cargo(hold.folder, lambda order, number, payload: 1)
    assert hold.files() == []
    again.fetch("r.0", hold.manifest)
    again.update_path("o").write_bytes(b"x")
    again.clear()
    assert hold.files() == []
