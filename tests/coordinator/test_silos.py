"""Silos: who belongs to which, their budgets, and that nothing crosses them."""

from typing import Any

import pytest

from coordinator import events as ev
from coordinator.silos import shared
from edged.controls import SiloSettings
from edged.schedule import subseed
from tests.coordinator.play import MODEL, restored, settings
from tests.coordinator.ranks import Ranks, rank_birth

BIRTHS = (
    rank_birth("a", silo="north", samples=3000),
    rank_birth("b", silo="north", samples=3000),
    rank_birth("c", silo="south", samples=1000),
    rank_birth("d", silo="south", samples=1000),
)


def play(**changes: Any) -> Ranks:
    return Ranks("abcd", BIRTHS, regime="hfl-ddp", **changes)


def both(run: Ranks, holds: tuple[str, str] = ("", "")) -> None:
    """A whole round of both silos."""
    run.meet("ab", holds[0])
    run.meet("cd", holds[1])
    run.now += 10
    for board, silo in (("a", "north"), ("b", "north"), ("c", "south"), ("d", "south")):
        run.trained(board, silo)
    for silo in ("north", "south"):
        run.stored(run.group(silo).uploader)
    run.feed(ev.Folded(run.state.round, MODEL))


def test_budgets_are_in_proportion_to_the_silos_data_and_each_has_its_own_pool_and_permutation() -> None:
    run = play()
    assert {name: silo.budget for name, silo in run.state.silos.items()} == {"north": 750, "south": 250}
    assert run.shares() == {"a": 375, "b": 375, "c": 125, "d": 125}
    north, south = run.order("a"), run.order("c")
    assert (north.fingerprint, south.fingerprint) == ("f-north", "f-south")
    assert (north.pool_samples, south.pool_samples) == (3000, 1000)
    assert north.seed != south.seed
    assert north.seed == subseed(settings().seed, "silo", "north") >> 10
    assert north.rendezvous is not None
    assert (north.rendezvous.boards, north.rendezvous.silo) == (("a", "b"), "north")


def test_silos_are_merged_by_their_accepted_budgets_with_one_update_each() -> None:
    run = play()
    both(run)
    (fold,) = [e for e in run.effects if isinstance(e, ev.Fold)]
    assert fold.items == (("a", "run1.1.a.1", 750), ("c", "run1.1.c.1", 250))
    assert run.state.accepted == 1000
    (row,) = run.rows("round")
    silos: Any = row["silos"]
    assert {name: silo["accepted"] for name, silo in silos.items()} == {"north": 750, "south": 250}


def test_shares_move_within_a_silo_only() -> None:
    run = play()
    both(run)
    shares = run.shares()
    assert shares["a"] + shares["b"] == 750
    assert shares["c"] + shares["d"] == 250
    assert (shares["a"], shares["b"]) == (500, 250)
    assert (shares["c"], shares["d"]) == (125, 125)


def test_a_silo_that_fails_leaves_the_other_ones_round_alone() -> None:
    run = play(rounds=2)
    run.meet("ab")
    run.meet("cd")
    run.die("d")
    assert not run.aborted("a")
    run.stop("c")
    assert run.group("south").boards == ("c",)
    assert run.group("north").attempt == 1
    run.meet("c")
    run.now += 10
    run.trained("c", "south")
    run.stored("c")
    for board in "ab":
        run.trained(board, "north")
    run.stored("a")
    assert run.state.accepted == 1000


def test_the_settings_word_counts_before_the_boards_own_and_budgets_may_be_given() -> None:
    silos = {
        "lab": SiloSettings(("a", "b", "c", "d"), 400),
        "other": SiloSettings((), 600),
    }
    births = (*BIRTHS, rank_birth("e", silo="other", samples=10))
    run = Ranks("abcde", births, regime="hfl-ddp", silos={**silos, "lab": SiloSettings(("c", "d"), 400)})
    assert run.state.phase == "paused"
    assert "budgets" in run.state.reason
    named = {"west": SiloSettings(("a", "b"), 900), "south": SiloSettings()}
    run = play(silos=named)
    assert {name: silo.budget for name, silo in run.state.silos.items()} == {"west": 900, "south": 100}
    assert run.order("a").rendezvous.silo == "west"  # type: ignore[union-attr]


def test_a_board_in_no_silo_or_in_an_unknown_one_is_told() -> None:
    births = (*BIRTHS[:2], rank_birth("c"))
    run = Ranks("abc", births, regime="hfl-ddp")
    assert run.rounds.lack("c", run.now) == "is in no silo"
    run.feed(ev.Born(rank_birth("d", silo="east")))
    assert run.rounds.lack("d", run.now) == "is in silo east, which this run has not"


def test_a_silo_of_one_and_a_board_that_is_alone_in_its_silo_need_no_address() -> None:
    births = (rank_birth("a", silo="north"), rank_birth("b", silo="south", address=""))
    run = Ranks("ab", births, regime="hfl-ddp")
    assert run.shares() == {"a": 500, "b": 500}
    assert run.order("b").rendezvous.world == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("silos", "samples", "budgets"),
    [
        ({}, {"a": 1, "b": 2}, {"a": 333, "b": 667}),
        ({"a": SiloSettings(budget=100)}, {"a": 5, "b": 1, "c": 2}, {"a": 100, "b": 300, "c": 600}),
        ({"a": SiloSettings(budget=1000)}, {"a": 5}, {"a": 1000}),
    ],
)
def test_budgets_add_up_to_the_runs(
    silos: dict[str, SiloSettings], samples: dict[str, int], budgets: dict[str, int]
) -> None:
    assert shared(settings(silos=silos), samples) == budgets


def test_budgets_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"silos' budgets \(a 1000\) do not fit the run's budget of 1000"):
        shared(settings(silos={"a": SiloSettings(budget=1000)}), {"a": 5, "b": 1})


def test_a_restarted_coordinator_knows_the_silos() -> None:
    run = play()
    both(run)
    restored(run)
    assert {name: silo.accepted for name, silo in run.state.silos.items()} == {"north": 750, "south": 250}
    assert run.state.memory("a") is not None


def test_optimizer_state_is_the_runs_option_in_silos() -> None:
    assert play(optimizer_state="keep").order("a").optimizer_state == "keep"
    assert play().order("a").optimizer_state == "reset"
