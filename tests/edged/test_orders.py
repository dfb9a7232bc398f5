"""Which orders a board cannot carry out, each with its reason."""

import pytest
from msgspec.structs import replace

from edged import orders
from edged.events import Inventory
from edged.messages import Attend, Manifest, Piece, Train
from edged.orders import fault, misaddressed

CAN = Inventory(tasks={"digits": "hash"}, pools={"digits": "print"}, regimes=("pma",))
GOOD = Train(
    order="r.1.pi4.1",
    run="r",
    round=1,
    attempt=1,
    boot="coord",
    term=1,
    regime="pma",
    task="digits",
    task_hash="hash",
    pool="digits",
    fingerprint="print",
    pieces=(Piece(0, 0, 10), Piece(1, 5, 15)),
    samples=20,
    batch=8,
    learning_rate=0.1,
    model="r.0",
    manifest=Manifest(length_bytes=10, chunk_bytes=10, sha256="ab" * 32),
    seed=1,
    pool_samples=100,
)


def test_a_good_order_has_no_fault() -> None:
    assert fault(GOOD, CAN) == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"regime": "gossip"}, "regime 'gossip' is not installed here; there are: pma"),
        ({"task": "mnist"}, "task 'mnist' is not installed here; there are: digits"),
        ({"task_hash": "other"}, "task 'digits' here is not the coordinator's: hash, wanted other"),
        ({"pool": "attic"}, "pool 'attic' is not on this board; there are: digits"),
        ({"fingerprint": "else"}, "pool 'digits' here holds other data: print, wanted else"),
        ({"samples": 21}, "its pieces hold 20 samples, the order says 21"),
        ({"pieces": (Piece(0, 5, 5), Piece(0, 0, 20))}, "its pieces hold 20 samples"),
        ({"pieces": (Piece(0, 95, 115),)}, "a piece lies outside the pool's 100 samples"),
        ({"optimizer": "lion"}, "optimizer 'lion' is unknown; there are: adam, adamw, sgd"),
        ({"optimizer_state": "melt"}, "optimizer_state 'melt' is unknown; there are: average, keep, reset"),
    ],
)
def test_each_fault_is_named(changes: dict[str, object], words: str) -> None:
    assert words in fault(replace(GOOD, **changes), CAN)


def test_a_board_without_anything_says_none() -> None:
    assert "there are: none" in fault(GOOD, Inventory({}, {}, ("pma",)))


@pytest.mark.parametrize(
    ("order", "run", "number", "words"),
    [
        ("r.1.pi4.1", "r", 1, ""),
        ("r.1.pi5.1", "r", 1, "is for board pi5, this is pi4"),
        ("r.2.pi4.1", "r", 1, "claims to be of run r, round 1"),
        ("q.1.pi4.1", "r", 1, "claims to be of run r, round 1"),
    ],
)
def test_an_order_id_must_say_what_the_order_says(order: str, run: str, number: int, words: str) -> None:
    found = misaddressed(order, run, number, "pi4")
    assert words in found
    assert bool(found) is bool(words)


def test_an_order_is_described_by_its_regimes_word() -> None:
    assert orders.described(GOOD) == f"round 1 of r, {GOOD.samples} samples"
    assert orders.described(replace(GOOD, regime="asp")) == f"period 1 of r, {GOOD.samples} samples"
    assert orders.described(Attend("r.3.pi4.1", "r", 3, "coord", 1, "waits for pi5")) == "r"
