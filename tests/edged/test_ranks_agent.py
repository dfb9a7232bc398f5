"""A rank's board: ready, join, stop; and a child in a group that is ended, never asked to finish."""

import sys
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from msgspec.structs import replace

from edged import events as e
from edged.board import Cue
from edged.child import Child
from edged.coach import Coach, Plan
from edged.dealing import with_plan
from edged.events import Act, Phase
from edged.groups import Peer, Readiness, Rendezvous
from edged.messages import Join, Piece, Train
from edged.orders import fault
from edged.sizing import Sizing
from edged.waiting import Waiting
from edged.work import Job, Meet
from probes.emulated import Activity
from tests.edged.player import CAN, Player, order
from tests.edged.test_books import Desk

SCRIPT = Path(__file__).with_name("scripted_trainer.py")


def rank_order(number: int = 1) -> Train:
    plain = replace(order(number), regime="ddp", pieces=(Piece(0, 0, 50),), samples=20)
    return with_plan(plain, Rendezvous("all", ("pi4", "pi5"), 0, (20, 30), 5, "0" * 64, 30.0))


def readiness() -> Readiness:
    return Readiness(rank_order().order, "0" * 64, "0" * 64, "2.6.0", "10.0.0.4", 4000)


def join(group: str = "g1") -> Join:
    return Join(rank_order().order, "coord", 1, group, (Peer("10.0.0.4", 1), Peer("10.0.0.5", 2)))


def fetched() -> Player:
    """A board that trains a rank's order."""
    player = Player()
    player.feed(replace(CAN, regimes=("ddp", "pma")))
    player.feed(rank_order())
    player.feed(e.ModelReady(rank_order().model, rank_order().manifest.sha256))
    assert player.board.phase is Phase.TRAINING
    return player


def mustered() -> Player:
    """A board whose child waits for the other ranks."""
    player = fetched()
    player.feed(e.Mustered(rank_order().order, readiness()))
    return player


def test_a_rank_that_is_ready_says_so_and_its_time_is_waiting_until_the_steps_begin() -> None:
    player = mustered()
    assert player.board.ready == readiness()
    assert player.board.part == "wait"
    assert player.acts(join()) == [Act.JOIN, Act.SAY]
    player.feed(e.Met(rank_order().order, "g1"))
    assert player.board.joined == "g1"
    player.feed(e.Began(rank_order().order, player.now))
    assert player.board.part == "compute"
    player.feed(e.Ended(rank_order().order, player.now, 20))
    assert player.board.part == "overhead"


def test_a_join_is_obeyed_once_and_only_by_a_rank_that_waits() -> None:
    player = mustered()
    player.feed(join())
    assert player.feed(join()).cue is Cue.HEARTBEAT
    assert fetched().feed(join()).cue is Cue.STRAY


def test_a_coordinator_that_missed_the_report_hears_it_again_when_it_repeats_the_join() -> None:
    player = mustered()
    player.feed(join())
    player.feed(e.Met(rank_order().order, "g1"))
    player.feed(e.Began(rank_order().order, player.now))
    player.feed(e.Ended(rank_order().order, player.now, 20))
    player.feed(e.Described(rank_order().order, rank_order().manifest))
    assert player.board.phase is Phase.UPLOADING
    assert player.acts(replace(join(), term=2)) == [Act.SAY, Act.TRAINED, Act.CLOSED_AGAIN]
    assert player.board.term == 2


def test_a_new_attempt_begins_without_anything_of_the_old_one() -> None:
    player = mustered()
    player.feed(join())
    player.feed(e.Broke(rank_order().order, "another rank was lost", ()))
    assert (player.board.abandoned, player.board.blames) == (rank_order().order, ())
    again = replace(rank_order(), order="r.1.pi4.2", attempt=2)
    assert again.rendezvous is not None
    player.feed(with_plan(again, again.rendezvous))
    board = player.board
    assert (board.ready, board.join, board.joined, board.blames) == (None, None, "", None)


def test_an_order_without_its_ranks_or_with_another_plan_is_unfit() -> None:
    can = e.Inventory({"digits": "h"}, {"digits": "f"}, ("ddp", "pma"))
    good = replace(rank_order(), task_hash="h", fingerprint="f")
    assert good.rendezvous is not None
    good = with_plan(good, good.rendezvous)
    assert fault(good, can) == ""
    assert "names no ranks" in fault(replace(good, rendezvous=None), can)
    assert "its plan hash is" in fault(replace(good, momentum=0.5), can)


class Supervised:
    """A coach with a child of few words, and a board whose meter knows the watts of waiting, or not."""

    def __init__(
        self, folder: Path, known: bool, sizing: Sizing | None = None, micro: int | None = None
    ) -> None:
        self.desk = Desk(folder)
        self.waiting = Waiting(self.desk.meter)
        self.waiting.known = known
        self.queue: SimpleQueue[object] = SimpleQueue()
        self.jobs: list[int | None] = []
        """Micro-batches of what the child was given."""
        self.failures: list[str] = []
        jobs = self.jobs

        class Recorded(Child):
            def train(self, job: Job) -> None:
                jobs.append(job.micro_batch)
                super().train(job)

        self.child = Recorded(self.queue, (sys.executable, str(SCRIPT)))
        self.activity = Activity()

        class Cargo:
            kept = folder / "kept"

            def model_path(self, version: str) -> Path:
                return folder / version

            def update_path(self, order: str) -> Path:
                return folder / order

        cargo: Any = Cargo()
        self.coach = Coach(
            Plan("pi4", "main", {"digits": "builtin"}, (), micro_batch=micro),
            child=self.child,
            cargo=cargo,
            activity=self.activity,
            waiting=self.waiting,
            address=lambda: "10.0.0.4",
            failed=lambda order, reason: self.failures.append(reason),
            sizing=sizing,
            clock=lambda: self.desk.clock.now,
        )


@pytest.fixture
def told(tmp_path: Path) -> Any:
    made = Supervised(tmp_path, known=False)
    yield made
    made.child.kill()


def test_the_first_order_of_a_group_waits_for_the_watts_of_waiting_but_not_for_ever(told: Supervised) -> None:
    told.coach.train(rank_order())
    assert told.coach.holding
    assert told.child.pid is None
    told.coach.tend(told.desk.at(5))
    assert told.coach.holding
    told.waiting.known = True
    told.coach.tend(told.desk.at(6))
    assert not told.coach.holding
    assert told.child.pid is not None


def test_an_order_that_is_taken_back_before_it_began_starts_no_child(told: Supervised) -> None:
    told.coach.train(rank_order())
    told.coach.cancel(rank_order().order)
    told.coach.tend(told.desk.at(100))
    assert told.child.pid is None


def test_a_child_in_a_group_is_killed_and_one_that_still_waits_is_asked(told: Supervised) -> None:
    job = Job("pi4", rank_order(), "model", "update", "builtin")
    told.child.train(job)
    first = told.child.pid
    assert not told.child.cancel(rank_order().order)
    assert told.child.pid == first
    told.child.heard(rank_order().order)
    told.child.train(job)
    told.child.meet(Meet(rank_order().order, "g", (), 60.0))
    assert told.child.cancel(rank_order().order)
    assert told.child.pid is None


def test_a_child_whose_group_failed_is_never_used_again(told: Supervised) -> None:
    told.child.train(Job("pi4", rank_order(), "model", "update", "builtin"))
    told.child.meet(Meet(rank_order().order, "g", (), 60.0))
    told.child.heard(rank_order().order, failed=True)
    assert told.child.pid is None
