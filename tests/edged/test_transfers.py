"""Files that leave and arrive in chunks."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.messages import Manifest
from edged.transfers import Incoming, Outgoing, Sender, TransferError, chunk_bytes_for, describe

SIZE = 10_500


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    path.write_bytes(random.Random(1).randbytes(SIZE))
    return path


def incoming(tmp_path: Path, manifest: Manifest) -> Incoming:
    return Incoming(tmp_path / "copy", manifest)


def test_a_file_arrives_whatever_the_order(model: Path, tmp_path: Path) -> None:
    manifest = describe(model, 1000)
    outgoing, arriving = Outgoing(model, manifest), incoming(tmp_path, manifest)
    for number in [3, 0, 1, 10, 9, 2, 8, 4, 5, 7, 6]:
        assert arriving.write(number, outgoing.chunk(number))
    outgoing.close()
    assert arriving.finish().read_bytes() == model.read_bytes()
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []


def test_what_is_missing_can_be_asked_for(model: Path, tmp_path: Path) -> None:
    manifest = describe(model, 1000)
    outgoing, arriving = Outgoing(model, manifest), incoming(tmp_path, manifest)
    assert arriving.missing() == [(0, 11)]
    for number in (0, 1, 5, 10):
        arriving.write(number, outgoing.chunk(number))
    outgoing.close()
    assert arriving.missing() == [(2, 5), (6, 10)]
    with pytest.raises(TransferError, match="7 of 11 chunks are missing"):
        arriving.finish()
    arriving.discard()


def test_a_second_copy_a_wrong_length_and_an_impossible_number_are_counted_and_change_nothing(
    model: Path, tmp_path: Path
) -> None:
    manifest = describe(model, 1000)
    outgoing, arriving = Outgoing(model, manifest), incoming(tmp_path, manifest)
    arriving.write(0, outgoing.chunk(0))
    assert not arriving.write(0, b"\0" * 1000)
    for number, payload in [(-1, b"x" * 1000), (11, b"x" * 1000), (10**12, b""), (1, b""), (10, b"x" * 1000)]:
        assert not arriving.write(number, payload)
    assert (arriving.duplicates, arriving.refused) == (1, 5)
    for number in range(1, 11):
        arriving.write(number, outgoing.chunk(number))
    outgoing.close()
    assert arriving.finish().read_bytes() == model.read_bytes()
    assert not arriving.write(0, b"\0" * 1000)


def test_a_file_with_another_hash_never_gets_its_name(model: Path, tmp_path: Path) -> None:
    manifest = describe(model, 1000)
    outgoing, arriving = Outgoing(model, manifest), incoming(tmp_path, manifest)
    for number in range(11):
        arriving.write(number, outgoing.chunk(number) if number != 4 else b"\0" * 1000)
    outgoing.close()
    with pytest.raises(TransferError, match="SHA-256"):
        arriving.finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


@pytest.mark.parametrize(
    ("length_bytes", "chunk_bytes", "words"),
    [
        (10**18, 10**9, "bytes announced"),
        (4 * 1024**3, 1, "chunks announced"),
    ],
)
def test_a_hostile_manifest_costs_neither_memory_nor_disk(
    tmp_path: Path, length_bytes: int, chunk_bytes: int, words: str
) -> None:
    with pytest.raises(TransferError, match=words):
        incoming(tmp_path, Manifest(length_bytes, chunk_bytes, "0" * 64))
    assert list(tmp_path.iterdir()) == []


def test_a_file_larger_than_the_free_disk_is_refused_before_it_starts(tmp_path: Path) -> None:
    length_bytes = 1 << 62
    with pytest.raises(TransferError, match=r"needs .* bytes, .* free"):
        Incoming(tmp_path / "copy", Manifest(length_bytes, 1 << 50, "0" * 64), limit_bytes=1 << 63)


def test_a_file_that_shrinks_while_it_is_sent_is_noticed(model: Path) -> None:
    outgoing = Outgoing(model, describe(model, 1000))
    model.write_bytes(b"short")
    with pytest.raises(TransferError, match="became shorter"):
        outgoing.chunk(3)
    with pytest.raises(IndexError, match="chunk 11 of 11"):
        outgoing.chunk(11)
    outgoing.close()


def test_an_empty_file_is_nothing_to_transfer(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(TransferError, match="empty"):
        describe(tmp_path / "empty")


def test_chunks_fit_into_the_brokers_packets() -> None:
    assert chunk_bytes_for(2_000_000) == 256 * 1024
    assert chunk_bytes_for(100_000) == 98_976
    with pytest.raises(TransferError, match="too small"):
        chunk_bytes_for(1000)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(-3, 15), st.integers(-3, 15)), max_size=5), st.integers(1, 9))
def test_a_sender_keeps_its_window_and_sends_all_that_was_granted(
    tmp_path_factory: pytest.TempPathFactory, grants: list[tuple[int, int]], window: int
) -> None:
    model = tmp_path_factory.mktemp("sender") / "model"
    model.write_bytes(b"x" * SIZE)
    outgoing = Outgoing(model, describe(model, 1000))
    sent: list[int] = []

    def publish(number: int, payload: bytes) -> int:
        assert len(payload) == (500 if number == 10 else 1000)
        sent.append(number)
        return len(sent)

    sender = Sender(outgoing, publish, window)
    for start, stop in grants:
        sender.grant([(start, stop)])
    settled = 0
    while not sender.idle:
        assert len(sent) - settled <= window
        settled += 1
        assert sender.settled(settled)
    outgoing.close()
    assert sorted(sent) == sorted(n for start, stop in grants for n in range(max(0, start), min(11, stop)))
    assert not sender.settled(10_000)
