"""Whatever is lost, repeated, late or restarted: every sample counts once, bounds hold, sums add up."""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator import events as ev
from edged.messages import Train
from tests.coordinator.play import MODEL, birth
from tests.coordinator.pushers import Pushers

HAPPENINGS = (
    *("work",) * 8,
    "lose mail",
    "report",
    "report again",
    "late report",
    "upload",
    "bad upload",
    "apply",
    "twice applied",
    "restart board",
    "kill coordinator",
    "lost link",
    "back",
    "abandon",
    "long wait",
    "pause",
    "resume",
)
STEPS = st.lists(st.tuples(st.sampled_from(HAPPENINGS), st.sampled_from("abc")), min_size=20, max_size=80)
FLEETS = st.fixed_dictionaries(
    {
        "asynchronous": st.fixed_dictionaries(
            {"grain": st.sampled_from(("gradient", "model"))},
            optional={"bound": st.integers(0, 3), "staleness": st.sampled_from(("dynsgd", "ssp"))},
        ),
        "policy": st.sampled_from(("equal", "omnilearn")),
        "period": st.integers(20, 60),
        "batch": st.integers(1, 15),
    }
)


def happen(run: Pushers, what: str, board: str) -> None:
    """One thing of those that can happen; most often a board gets on with its work."""
    run.now += 0.7
    boot = run.workers[board].boot
    happenings: dict[str, Callable[[], object]] = {
        "work": lambda: work(run, board),
        "lose mail": lambda: run.post(lose=True),
        "report": lambda: run.report(board),
        "report again": lambda: again(run, board),
        "late report": lambda: late(run, board),
        "upload": run.upload,
        "bad upload": lambda: run.upload(error="its hash is another one"),
        "apply": run.apply,
        "twice applied": lambda: twice(run),
        "restart board": lambda: run.restart_board(board),
        "kill coordinator": run.kill_coordinator,
        "lost link": lambda: run.feed(ev.Born(birth(board, boot, "lost"))),
        "back": lambda: run.feed(ev.Born(birth(board, boot))),
        "abandon": lambda: run.abandon(board),
        "long wait": lambda: run.wait(400.0),
        "pause": lambda: run.feed(ev.Hold(True)),
        "resume": lambda: run.feed(ev.Hold(False)),
    }
    happenings[what]()


def work(run: Pushers, board: str) -> None:
    run.post()
    run.report(board)
    if run.state.merges % 2:
        run.apply()
    run.upload()


def again(run: Pushers, board: str) -> None:
    run.report(board)
    run.report(board)


def twice(run: Pushers) -> None:
    run.apply()
    run.feed(ev.Applied(run.state.version, MODEL))


def late(run: Pushers, board: str) -> None:
    """A report of the order before, which is long over."""
    worker = run.workers[board]
    if isinstance(worker.order, Train) and worker.order.attempt > 1:
        report, old = worker.report(), worker.order.order.rpartition(".")[0]
        past = f"{old}.{worker.order.attempt - 1}"
        run.feed(ev.Reported(replace(report, order=past, term=run.term)))


def check(run: Pushers) -> None:
    """What holds after every event."""
    s = run.state
    pushes = s.pushes
    assert pushes is not None
    assert s.open_count == sum(a.open for a in s.assignments.values())
    assert s.accepted + s.open_samples <= s.target
    dealt = s.silos["all"].queue
    assert dealt.epoch * dealt.size + dealt.position == s.accepted + s.open_samples + dealt.waiting_samples
    places = run.places()
    assert len(places) == len(set(places)) == s.accepted
    assert s.merges == sum(pusher.updates for pusher in pushes.boards.values())
    assert s.accepted == sum(pusher.samples for pusher in pushes.boards.values())
    if pushes.ahead is not None and pushes.members:
        clocks = [pushes.boards[board].clock for board in pushes.members]
        assert max(clocks) - min(clocks) <= pushes.ahead


@settings(max_examples=80, deadline=None)
@given(STEPS, FLEETS)
def test_every_sample_is_accepted_once(steps: list[tuple[str, str]], fleet: dict[str, Any]) -> None:
    run = Pushers(periods=2, **fleet)
    for what, board in steps:
        happen(run, what, board)
        check(run)
    run.feed(ev.Hold(False))
    for board, worker in run.workers.items():
        run.feed(ev.Born(birth(board, worker.boot)))
    run.settle()
    check(run)
    assert run.finished is not None
    assert run.finished.complete
    assert run.state.accepted == run.state.target
    accepted = [row for row in run.rows["push"] if row["status"] == "accepted"]
    assert [row["model"] for row in accepted] == list(range(1, run.state.merges + 1))
    assert {row["model"]: row["order"] for row in accepted} == {
        int(version.split(".")[1]): order for version, order in run.made.items()
    }
    rows = run.rows["round"]
    assert sum(row["accepted"] for row in rows) == run.state.target
    for row in rows:
        assert row["accepted"] + row["returned"] + row["open"] == row["ordered"]
    bound = fleet["asynchronous"].get("bound")
    assert bound is None or all(row["staleness"] <= bound for row in accepted)
    assert sum(row["updates"] for row in run.rows["board_round"]) == len(accepted)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=80), st.integers(1, 4))
def test_nobody_is_ever_further_ahead_than_bounded_staleness_allows(turns: list[str], ahead: int) -> None:
    run = Pushers(
        period=1000, asynchronous={"staleness": "ssp", "staleness_options": {"ahead": ahead}}, batch=10
    )
    updates = dict.fromkeys("abc", 0)
    for board in turns:
        before = run.state.merges
        run.push(board)
        updates[board] += run.state.merges - before
        assert max(updates.values()) - min(updates.values()) <= ahead
