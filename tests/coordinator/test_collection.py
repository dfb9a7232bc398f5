"""Updates are fetched by grants: few at once, only what was granted, again what did not come."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coordinator.checkpoints import Checkpoints
from coordinator.collection import CHUNKS_AHEAD, Collection
from coordinator.events import Arriving, Collect, Note, Stored
from coordinator.workers import Callback, Job
from edged.messages import Grant, Manifest
from edged.ranges import Range, size
from edged.transfers import Outgoing, describe
from edged.weights import save

CHUNK = 256


class Desk:
    """A collection whose jobs wait until `work` does them, and the boards' files."""

    def __init__(self, folder: Path, floats: int = 2500) -> None:
        self.folder, self.floats = folder, floats
        self.now = 10.0
        self.jobs: list[tuple[Job, Callback]] = []
        self.grants: dict[str, list[Grant]] = {}
        self.events: list[Arriving | Stored | Note] = []
        self.checkpoints = Checkpoints(folder)
        self.model = self.checkpoints.run_folder("r") / "model-000000.safetensors"
        save(self.model, self.tensors(0.0))
        self.collection = self.fresh()

    def fresh(self) -> Collection:
        return Collection(self.checkpoints, self.put, self.send, self.events.append, boot="c", term=3)

    def put(self, job: Job, callback: Callback) -> None:
        self.jobs.append((job, callback))

    def work(self) -> None:
        while self.jobs:
            job, callback = self.jobs.pop(0)
            result: object
            try:
                result = job()
            except Exception as error:
                result = error
            callback(result)

    def send(self, board: str, grant: Grant) -> None:
        self.grants.setdefault(board, []).append(grant)

    def tensors(self, shift: float) -> dict[str, Any]:
        return {"w": np.linspace(0, 1, self.floats, dtype="f4") + np.float32(shift)}

    def file(self, board: str, tensors: dict[str, Any] | None = None) -> Outgoing:
        path = self.folder / f"{board}.update"
        save(path, self.tensors(0.1) if tensors is None else tensors)
        return Outgoing(path, describe(path, CHUNK))

    def collect(self, board: str, manifest: Manifest) -> None:
        self.collection.collect(Collect(board, f"r.1.{board}.1", manifest), self.model, self.now)

    def chunk(self, board: str, file: Outgoing, number: int) -> None:
        self.collection.chunk(board, f"r.1.{board}.1", number, file.chunk(number), self.now)

    def granted(self, board: str) -> list[Range]:
        return [piece for grant in self.grants.get(board, []) for piece in grant.ranges]

    def upload(self, board: str, file: Outgoing) -> None:
        """Obey grants until nothing new is granted."""
        seen = 0
        while seen < len(self.grants.get(board, [])):
            grant = self.grants[board][seen]
            seen += 1
            for start, stop in grant.ranges:
                for number in range(start, stop):
                    self.chunk(board, file, number)

    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.collection.tick(self.now)

    def stored(self) -> dict[str, str | None]:
        return {event.board: event.error for event in self.events if isinstance(event, Stored)}

    def odd(self) -> list[str]:
        return [event.counter for event in self.events if isinstance(event, Note)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_an_update_is_granted_piecewise_checked_and_kept(desk: Desk) -> None:
    file = desk.file("a")
    desk.collect("a", file.manifest)
    assert size(desk.granted("a")) == CHUNKS_AHEAD < file.manifest.chunks
    desk.upload("a", file)
    assert desk.stored() == {}
    desk.work()
    assert desk.stored() == {"a": None}
    kept = desk.checkpoints.update("r.1.a.1")
    assert kept.read_bytes() == (desk.folder / "a.update").read_bytes()
    assert {grant.term for grant in desk.grants["a"]} == {3}
    assert size(desk.granted("a")) == file.manifest.chunks


def test_never_more_than_sixteen_chunks_are_granted_ahead(desk: Desk) -> None:
    file = desk.file("a")
    desk.collect("a", file.manifest)
    for number in range(file.manifest.chunks):
        assert size(desk.granted("a")) - number <= CHUNKS_AHEAD
        desk.chunk("a", file, number)


def test_four_boards_upload_at_once_and_the_fifth_follows(desk: Desk) -> None:
    files = {board: desk.file(board) for board in "abcde"}
    for board, file in files.items():
        desk.collect(board, file.manifest)
    assert sorted(desk.grants) == ["a", "b", "c", "d"]
    desk.upload("b", files["b"])
    assert "e" in desk.grants


def test_what_was_lost_is_granted_again_after_a_silence(desk: Desk) -> None:
    file = desk.file("a")
    desk.collect("a", file.manifest)
    for number in range(CHUNKS_AHEAD):
        if number != 5:
            desk.chunk("a", file, number)
    before = len(desk.grants["a"])
    desk.tick(1.9)
    assert len(desk.grants["a"]) == before
    desk.tick(0.2)
    assert desk.grants["a"][-1].ranges[0] == (5, 6)
    desk.tick(2.1)
    assert len(desk.grants["a"]) == before + 1
    desk.tick(2.0)
    assert len(desk.grants["a"]) == before + 2
    desk.upload("a", file)
    desk.work()
    assert desk.stored() == {"a": None}


def test_a_silent_board_makes_room_for_those_that_wait(desk: Desk) -> None:
    files = {board: desk.file(board) for board in "abcde"}
    for board, file in files.items():
        desk.collect(board, file.manifest)
    for _ in range(3):
        for board in "bcd":
            number = desk.granted(board)[0][0]
            desk.chunk(board, files[board], number)
        desk.tick(2.1)
        for _ in range(20):
            desk.tick(0.5)
    assert "e" in desk.grants
    desk.upload("e", files["e"])
    desk.work()
    assert desk.stored()["e"] is None
    for board in "abcd":
        desk.upload(board, files[board])
    desk.tick(0.1)
    desk.upload("a", files["a"])
    desk.work()
    assert desk.stored() == dict.fromkeys("abcde")


def test_hostile_chunks_are_refused_by_name_and_change_nothing(desk: Desk) -> None:
    file = desk.file("a")
    desk.collection.chunk("a", "r.1.a.1", 0, file.chunk(0), desk.now)
    assert desk.odd() == ["stray_chunks"]
    desk.collect("a", file.manifest)
    order = "r.1.a.1"
    desk.collection.chunk("a", order, CHUNKS_AHEAD, file.chunk(CHUNKS_AHEAD), desk.now)
    desk.collection.chunk("a", order, 10**9, b"", desk.now)
    desk.collection.chunk("b", order, 0, file.chunk(0), desk.now)
    assert desk.odd()[1:] == ["stray_chunks"] * 3
    desk.collection.chunk("a", order, 0, b"short", desk.now)
    desk.collection.chunk("a", order, 0, b"x" * (CHUNK + 1), desk.now)
    assert desk.odd()[4:] == ["refused_chunks"] * 2
    desk.chunk("a", file, 0)
    desk.chunk("a", file, 0)
    assert desk.odd()[6:] == ["duplicate_chunks"]
    desk.upload("a", file)
    desk.work()
    assert desk.stored() == {"a": None}
    desk.chunk("a", file, 3)
    assert desk.odd()[-1] == "duplicate_chunks"


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (Manifest(1 << 50, CHUNK, "0" * 64), "announced"),
        (Manifest(1 << 31, 1, "0" * 64), "chunks announced"),
    ],
)
def test_a_lying_manifest_is_refused_before_a_byte_comes(desk: Desk, manifest: Manifest, words: str) -> None:
    desk.collect("a", manifest)
    assert words in (desk.stored()["a"] or "")
    assert desk.grants == {}


def test_bytes_that_are_not_the_announced_ones_are_refused(desk: Desk) -> None:
    file = desk.file("a")
    lying = Manifest(file.manifest.length_bytes, CHUNK, "0" * 64)
    desk.collect("a", lying)
    desk.upload("a", file)
    desk.work()
    assert "SHA-256" in (desk.stored()["a"] or "")
    assert not any((desk.folder / "runs" / "r" / "updates").iterdir())


def test_an_update_of_another_model_is_refused(desk: Desk) -> None:
    file = desk.file("a", {"v": np.zeros(2500, "f4")})
    desk.collect("a", file.manifest)
    desk.upload("a", file)
    desk.work()
    assert "missing" in (desk.stored()["a"] or "")
    assert not desk.checkpoints.update("r.1.a.1").exists()


@pytest.mark.parametrize("moment", ["waiting", "under way", "being checked", "done"])
def test_a_discarded_upload_leaves_nothing(desk: Desk, moment: str) -> None:
    for board in "wxyz" if moment == "waiting" else "":
        desk.collect(board, desk.file(board).manifest)
    file = desk.file("a")
    desk.collect("a", file.manifest)
    if moment != "waiting":
        desk.chunk("a", file, 0)
    if moment in ("being checked", "done"):
        desk.upload("a", file)
    if moment == "done":
        desk.work()
    desk.collection.discard("r.1.a.1", desk.now)
    desk.work()
    assert "a" not in desk.stored() or moment == "done"
    assert [p.name for p in (desk.folder / "runs" / "r" / "updates").iterdir() if ".a." in p.name] == []


def test_a_restart_checks_what_is_there_and_fetches_what_is_broken(desk: Desk) -> None:
    files = {board: desk.file(board) for board in "ab"}
    for board, file in files.items():
        desk.collect(board, file.manifest)
        desk.upload(board, file)
    desk.work()
    broken = desk.checkpoints.update("r.1.b.1")
    broken.write_bytes(broken.read_bytes()[:-10])
    desk.collection, desk.grants = desk.fresh(), {}
    desk.events.clear()
    for board, file in files.items():
        desk.collect(board, file.manifest)
    desk.work()
    assert desk.stored() == {"a": None}
    desk.tick(0.5)
    assert list(desk.grants) == ["b"]
    desk.upload("b", files["b"])
    desk.work()
    assert desk.stored() == {"a": None, "b": None}


def test_after_a_reconnect_what_is_missing_is_granted_at_once(desk: Desk) -> None:
    file = desk.file("a")
    desk.collect("a", file.manifest)
    desk.chunk("a", file, 0)
    desk.collection.reconnected(desk.now)
    assert desk.grants["a"][-1].ranges == ((1, 1 + CHUNKS_AHEAD),)


def test_a_sign_of_life_a_second_and_not_one_a_chunk(desk: Desk) -> None:
    file = desk.file("a")
    desk.collect("a", file.manifest)
    for number in range(CHUNKS_AHEAD):
        desk.now += 0.25
        desk.chunk("a", file, number)
    assert sum(isinstance(event, Arriving) for event in desk.events) == 4


def test_a_second_order_to_collect_is_one_upload(desk: Desk) -> None:
    file = desk.file("a")
    desk.collect("a", file.manifest)
    desk.collect("a", file.manifest)
    desk.upload("a", file)
    desk.work()
    assert [type(event) for event in desk.events].count(Stored) == 1
