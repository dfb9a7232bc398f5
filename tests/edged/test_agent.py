"""The board's agent over a broker in memory: real loop, real child process (no torch), emulated joules."""

import time
from pathlib import Path

import pytest

from edged import messages as m
from tests.edged.desk import Desk


def total_seconds(parts: m.Parts) -> float:
    return float(sum(getattr(parts, name).seconds for name in m.PARTS))


def total_joules(parts: m.Parts) -> float:
    return float(sum(getattr(parts, name).joules for name in m.PARTS))


def test_an_order_is_trained_reported_uploaded_accepted_and_closed(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered()
    trained = coordinator.until_report("trained", order.order)
    assert (trained.samples, trained.steps, trained.loss_sum) == (40, 5, 12.5)
    assert trained.manifest is not None
    assert trained.energy.basis == "emulated"
    coordinator.until_phase("waiting", order.order)
    assert coordinator.update(order.order).startswith(b"update of r.1.pi4.1")
    assert not list((desk.folder / "updates").iterdir())
    coordinator.stand_by()
    closed = coordinator.until_report("closed", order.order)
    assert closed.parts.compute == trained.parts.compute
    assert closed.parts.lost == m.Part(0.0, 0.0)
    coordinator.until_phase("idle")


def test_parts_of_all_orders_add_up_to_the_meters_difference(desk: Desk) -> None:
    """A round lasts from its order's arrival to the next one's, so between two orders no joule is left
    out.
    """
    coordinator = desk.stocked().coordinator
    orders = [desk.ordered(number).order for number in (1,)]
    start = desk.meter.mark()
    coordinator.until_phase("waiting", orders[0])
    orders.append(desk.ordered(2, "fail").order)
    coordinator.until_phase("waiting", orders[1])
    orders.append(desk.ordered(3).order)
    coordinator.until_phase("waiting", orders[2])
    coordinator.stand_by()
    closed = [coordinator.until_report("closed", order) for order in orders]
    end = desk.meter.mark()
    whole = desk.meter.window(start, end)
    assert whole.joules is not None
    # The marks around the run lie a few turns outside of it.
    slack_seconds = whole.seconds - sum(total_seconds(report.parts) for report in closed)
    assert -0.25 < slack_seconds < 0.25
    joules = sum(total_joules(report.parts) for report in closed)
    assert joules == pytest.approx(whole.joules - 2.0 * slack_seconds, abs=1e-6)
    emulated = sum(
        6 * one.parts.compute.seconds + 2 * (total_seconds(one.parts) - one.parts.compute.seconds)
        for one in closed
    )
    assert joules == pytest.approx(emulated, abs=1e-6)


def test_the_same_order_again_is_answered_and_the_report_repeated(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    coordinator.grants = False
    order = desk.ordered()
    coordinator.until_report("trained", order.order)
    coordinator.until_phase("uploading", order.order)
    states = len(coordinator.states)
    coordinator.send(order)
    coordinator.until(lambda: len(coordinator.reports) == 2, "the report again")
    coordinator.until(lambda: len(coordinator.states) > states, "the state again")
    assert coordinator.reports[0].parts.compute == coordinator.reports[1].parts.compute
    assert desk.child.starts == 1


def test_only_granted_chunks_are_sent(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    coordinator.grants = coordinator.accepts = False
    order = desk.ordered()
    report = coordinator.until_report("trained", order.order)
    assert report.manifest is not None
    desk.turn()
    assert coordinator.chunks == {}
    coordinator.grant(order.order, [(0, 1)])
    coordinator.until(lambda: len(coordinator.chunks[order.order]) == 1, "a chunk")


def test_a_new_order_supersedes_the_running_one_whose_compute_is_lost(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered(1, "wait")
    coordinator.until(lambda: desk.agent.board.computing, "computing")
    again = desk.ordered(2)
    closed = coordinator.until_report("closed", order.order)
    assert closed.parts.compute.seconds == 0
    assert closed.parts.lost.seconds > 0
    assert closed.samples == 0
    coordinator.until_report("trained", again.order)
    assert desk.child.starts == 1


def test_an_abort_stops_the_training(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered(1, "wait")
    coordinator.until(lambda: desk.agent.board.computing, "computing")
    coordinator.send(m.Abort(order=order.order, boot="coord", term=1, reason="deadline passed"))
    coordinator.until_phase("waiting", order.order)
    assert coordinator.states[-1].reason == "deadline passed"
    assert coordinator.states[-1].abandoned is None


def test_no_order_before_the_stock_is_known(desk: Desk) -> None:
    coordinator = desk.coordinator
    coordinator.until(lambda: coordinator.births, "a birth")
    order = desk.order()
    coordinator.send(order)
    coordinator.until(lambda: coordinator.states and coordinator.states[-1].reason, "a refusal")
    assert "taking stock" in coordinator.states[-1].reason
    assert coordinator.states[-1].phase == "idle"


def test_power_is_said_every_second_with_the_orders_joules(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered(1, "wait")
    coordinator.until(lambda: [one for one in coordinator.powers if (one.order_joules or 0) > 0], "joules")
    power = coordinator.powers[-1]
    assert power.headline == "emulated/test"
    assert power.basis == "emulated"
    assert power.joules["emulated/test"] >= (power.order_joules or 0)
    assert power.order == order.order


def test_a_clean_stop_abandons_the_order_and_says_farewell(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered(1, "wait")
    coordinator.until(lambda: desk.agent.board.computing, "computing")
    pid = desk.child.pid
    began = time.monotonic()
    desk.agent.end("SIGTERM")
    assert time.monotonic() - began < 5
    coordinator.until(lambda: coordinator.births[-1].link == "closed", "farewell")
    assert coordinator.until_report("closed", order.order).parts.lost.seconds > 0
    assert coordinator.states[-1].abandoned == order.order
    assert desk.child.pid is None
    assert pid is not None
    assert not Path(f"/proc/{pid}").exists()
    assert not list((desk.folder / "models").iterdir())


def test_an_update_whose_acceptance_was_not_heard_is_not_booked_as_lost(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    coordinator.accepts = False
    first = desk.ordered(1)
    coordinator.until_phase("uploading", first.order)
    coordinator.until(lambda: coordinator.chunks[first.order], "the update")
    second = desk.ordered(2, accepted=first.order)
    closed = coordinator.until_report("closed", first.order)
    assert closed.parts.lost == m.Part(0.0, 0.0)
    assert closed.parts.compute.seconds > 0
    coordinator.until_phase("uploading", second.order)
    third = desk.ordered(3, accepted=first.order)
    assert coordinator.until_report("closed", second.order).parts.lost.seconds > 0
    coordinator.until_phase("uploading", third.order)
