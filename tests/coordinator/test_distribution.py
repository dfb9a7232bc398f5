"""A model goes out once for all, not faster than boards take it, and again where something was lost."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.distribution import CHUNKS_AHEAD, IN_FLIGHT, Distribution
from coordinator.events import Note
from edged.link import OutboxFullError, PacketTooLargeError
from edged.messages import Manifest, State, Want
from edged.transfers import describe

CHUNKS = 200
CHUNK = 64


class Air:
    """What was published, and the broker's acknowledgements when asked for."""

    def __init__(self, folder: Path) -> None:
        self.now = 5.0
        self.files: dict[str, tuple[Path, Manifest]] = {}
        self.sent: list[tuple[str | None, str, int]] = []
        self.tokens: dict[int, None] = {}
        self.notes: list[Note] = []
        self.fault: Exception | None = None
        self._numbers = itertools.count(1)
        self.apart = False
        self.distribution = Distribution(self.publish, self.files.get, self.notes.append, lambda: self.apart)
        for version in ("r.0", "r.1"):
            path = folder / version
            path.write_bytes(bytes(i % 251 for i in range(CHUNKS * CHUNK - 7)))
            self.files[version] = (path, describe(path, CHUNK))

    def publish(self, board: str | None, version: str, number: int, payload: bytes) -> int:
        if self.fault is not None:
            raise self.fault
        assert len(payload) == (CHUNK if number < CHUNKS - 1 else CHUNK - 7)
        self.sent.append((board, version, number))
        token = next(self._numbers)
        self.tokens[token] = None
        return token

    def acknowledge(self, most: int = 10**6) -> None:
        for _ in range(most):
            if not self.tokens:
                return
            token = next(iter(self.tokens))
            del self.tokens[token]
            assert self.distribution.settled(token, self.now)

    def begin(self, version: str = "r.0", boards: str = "ab") -> None:
        self.distribution.begin(version, boards, self.now)

    def heard(self, board: str, held: int, phase: str = "fetching", model: str | None = None) -> None:
        state = State(board, "boot", 1, phase, chunks_held=held, model=model)
        self.distribution.heard(state, self.now)

    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.distribution.tick(self.now)

    def want(self, board: str, *ranges: tuple[int, int], version: str = "r.0") -> None:
        self.distribution.want(Want(board, "boot", version, ranges), self.now)

    def numbers(self, board: str | None = None) -> list[int]:
        return [number for to, _, number in self.sent if to == board]


@pytest.fixture
def air(tmp_path: Path) -> Iterator[Air]:
    air = Air(tmp_path)
    yield air
    air.distribution.close()


def test_eight_chunks_are_in_flight(air: Air) -> None:
    air.begin()
    assert len(air.sent) == IN_FLIGHT
    air.acknowledge(3)
    assert len(air.sent) == IN_FLIGHT + 3


def test_each_chunk_goes_out_once_whatever_the_number_of_boards(air: Air) -> None:
    boards = [f"b{i}" for i in range(50)]
    air.distribution.begin("r.0", boards, air.now)
    for held in range(0, CHUNKS + 1, 16):
        for board in boards:
            air.heard(board, held)
        air.acknowledge()
    for board in boards:
        air.heard(board, CHUNKS, "training", "r.0")
    air.acknowledge()
    assert air.numbers() == list(range(CHUNKS))
    assert air.distribution.published_bytes == {"r.0": CHUNKS * CHUNK - 7}


def test_the_slowest_board_that_moves_sets_the_pace(air: Air) -> None:
    air.begin()
    air.acknowledge()
    assert len(air.sent) == CHUNKS_AHEAD
    air.heard("a", 48)
    air.acknowledge()
    assert len(air.sent) == CHUNKS_AHEAD
    air.heard("b", 16)
    air.acknowledge()
    assert len(air.sent) == 16 + CHUNKS_AHEAD


def test_a_board_that_does_not_move_is_no_longer_waited_for_until_it_does(air: Air) -> None:
    air.begin()
    air.acknowledge()
    air.tick(1.5)
    air.heard("a", 32)
    air.acknowledge()
    assert len(air.sent) == CHUNKS_AHEAD
    air.tick(0.6)
    air.acknowledge()
    assert len(air.sent) == 32 + CHUNKS_AHEAD
    air.heard("b", 16)
    air.heard("a", 80)
    air.acknowledge()
    assert len(air.sent) == 32 + CHUNKS_AHEAD


def test_a_board_that_moves_slowly_is_given_its_time(air: Air) -> None:
    air.begin(boards="a")
    air.acknowledge()
    for held in (16, 32, 48):
        air.tick(1.9)
        air.heard("a", held)
        air.acknowledge()
        assert len(air.sent) == held + CHUNKS_AHEAD
    air.tick(3.5)
    air.acknowledge()
    assert len(air.sent) == 48 + CHUNKS_AHEAD


def test_a_board_that_has_the_model_is_not_waited_for(air: Air) -> None:
    air.begin()
    air.heard("a", 0, "training", "r.0")
    air.heard("b", 0, "waiting", "r.0")
    air.acknowledge()
    assert len(air.sent) == CHUNKS


def test_a_newer_version_takes_over(air: Air) -> None:
    air.begin("r.0")
    air.acknowledge()
    air.begin("r.1", "")
    for _ in range(60):
        for token in list(air.tokens):
            del air.tokens[token]
            air.distribution.settled(token, air.now)
    assert [version for _, version, _ in air.sent[CHUNKS_AHEAD:]] == ["r.1"] * CHUNKS


def test_one_want_is_answered_on_the_boards_own_topic(air: Air) -> None:
    air.want("a", (3, 5), (190, 200))
    assert air.sent == []
    air.tick(1.0)
    air.acknowledge()
    assert air.numbers("a") == [3, 4, *range(190, 200)]
    assert air.numbers() == []


def test_wants_within_a_second_are_one_answer_on_the_shared_topic(air: Air) -> None:
    air.want("a", (0, 10))
    air.tick(0.4)
    air.want("b", (5, 20))
    air.want("a", (2, 10))
    air.tick(0.6)
    air.acknowledge()
    assert air.numbers() == list(range(2, 20))


def test_what_is_still_to_come_is_not_sent_twice(air: Air) -> None:
    air.begin(boards="")
    assert len(air.sent) == IN_FLIGHT
    air.want("a", (0, CHUNKS))
    air.tick(1.0)
    air.acknowledge()
    assert sorted(air.numbers()) == list(range(CHUNKS))
    assert air.numbers("a") == list(range(IN_FLIGHT))


def test_a_want_for_another_model_is_noted(air: Air) -> None:
    air.want("a", (0, 1), version="r.9")
    air.want("a", (0, CHUNKS + 1))
    air.want("a", (7, 3))
    assert [note.counter for note in air.notes] == ["unknown_models", "refused_wants", "refused_wants"]
    air.tick(2.0)
    air.acknowledge()
    assert air.numbers("a") == list(range(CHUNKS_AHEAD))


def test_a_full_outbox_is_waited_for(air: Air) -> None:
    air.fault = OutboxFullError("full")
    air.begin(boards="")
    assert air.sent == []
    air.fault = None
    air.tick(0.5)
    air.acknowledge()
    assert sorted(air.numbers()) == list(range(CHUNKS))


def test_a_chunk_that_no_broker_takes_is_said_once(air: Air) -> None:
    air.fault = PacketTooLargeError("t", 10, 5)
    air.begin(boards="")
    air.tick(0.5)
    assert [note.counter for note in air.notes] == ["unsent_models"]


def test_a_model_file_that_is_gone_is_said(air: Air) -> None:
    air.files["r.0"][0].unlink()
    air.begin()
    assert [note.counter for note in air.notes] == ["unreadable_models"]


def test_it_says_when_time_alone_brings_something_about(air: Air) -> None:
    assert air.distribution.due(air.now) is None
    air.want("a", (0, 1))
    assert air.distribution.due(air.now) == air.now + 1.0
    air.tick(1.0)
    air.acknowledge()
    air.begin("r.1", "a")
    assert air.distribution.due(air.now) == air.now + 2.0
    air.tick(2.0)
    assert air.distribution.due(air.now) is None


def test_a_version_for_one_board_goes_to_it_alone_and_gives_up_what_it_had_before(air: Air) -> None:
    air.apart = True
    air.distribution.deliver("r.0", "a", air.now)
    air.distribution.deliver("r.0", "b", air.now)
    air.distribution.deliver("r.1", "a", air.now)
    for held in range(0, CHUNKS + 1, 16):
        for board in "ab":
            air.heard(board, held)
        while air.tokens:
            air.distribution.settled(air.tokens.popitem()[0], air.now)
    assert air.numbers() == []
    assert [number for to, version, number in air.sent if (to, version) == ("a", "r.0")] == list(range(8))
    for board, version in (("a", "r.1"), ("b", "r.0")):
        found = [number for to, sent, number in air.sent if (to, sent) == (board, version)]
        assert found == list(range(CHUNKS))
    assert set(air.distribution.published_bytes) == {"r"}


def test_wants_of_several_boards_are_answered_to_each_alone(air: Air) -> None:
    air.apart = True
    air.want("a", (3, 5))
    air.want("b", (4, 6))
    air.tick(1.1)
    assert air.numbers() == []
    assert (air.numbers("a"), air.numbers("b")) == ([3, 4], [4, 5])
