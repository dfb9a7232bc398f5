"""Sending: outages are waited out, what is wrong is found and counted, and closing ends in time."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.telemetry.generations import Verdict
from coordinator.telemetry.sender import MOST_POSTS, Sender
from coordinator.telemetry.spool import Spool
from tests.coordinator.telemetry.takers import STORED, Taker


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    made = Spool(tmp_path, 1 << 20, 1000)
    yield made
    made.close()


def test_an_hour_without_the_server_loses_no_round_and_is_made_good_in_order(spool: Spool) -> None:
    """Virtual time: 3,600 attempts of the loop, a round each ten seconds, watts each second."""
    away = True
    taker = Taker(lambda lines: Verdict("away", "connection refused") if away else STORED)
    now = 0.0
    sender = Sender(spool, taker, clock=lambda: now)
    due = 0.0
    while now < 3600:
        if now % 10 == 0:
            spool.append("rounds", [f"round {int(now):06d}"])
        spool.append("power", [f"power {int(now):06d} {'x' * 1000}"])
        if now >= due:
            due = now + sender.send_all()
        assert spool.size_bytes < (1 << 20) + 5000
        now += 1.0
    assert taker.posts < 200, "the gaps grow"
    assert sender.now.state == "away"
    assert sender.now.since_seconds == 0.0
    away = False
    sender.send_all()
    rounds = [line for line in taker.stored if line.startswith("round")]
    powers = [line for line in taker.stored if line.startswith("power")]
    assert rounds == [f"round {second:06d}" for second in range(0, 3600, 10)]
    assert powers == sorted(powers)
    assert powers[-1].startswith("power 003599")
    assert len(powers) + spool.dropped["power"] == 3600
    assert sender.now.state == "stored"


def test_a_refused_line_does_not_take_its_batch_with_it(
    spool: Spool, caplog: pytest.LogCaptureFixture
) -> None:
    def judge(lines: list[str]) -> Verdict:
        wrong = any("wrong" in line for line in lines)
        return Verdict("refused", 'field "joules" is type float, already integer') if wrong else STORED

    taker = Taker(judge)
    spool.append("rounds", [f"line {n}{' wrong' if n == 13 else ''}" for n in range(40)])
    sender = Sender(spool, taker)
    with caplog.at_level(logging.WARNING):
        sender.send_all()
    assert sorted(taker.stored) == sorted(f"line {n}" for n in range(40) if n != 13)
    assert sender.now.refused == spool.dropped["rounds"] == 1
    assert '"joules"' in caplog.text
    assert "line 13 wrong" in caplog.text
    assert spool.oldest() is None


def test_points_that_a_server_leaves_out_are_counted_and_not_sent_again(spool: Spool) -> None:
    taker = Taker(lambda lines: Verdict("partial", "points beyond retention policy", 3))
    spool.append("rounds", ["a", "b", "c", "d"])
    sender = Sender(spool, taker)
    sender.send_all()
    assert taker.posts == 1
    assert sender.now.refused == 3
    assert spool.oldest() is None


def test_a_file_of_which_everything_is_refused_is_given_up_after_so_many_attempts(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1 << 20, 1 << 19)
    taker = Taker(lambda lines: Verdict("refused", "no"))
    spool.append("power", [f"line {n}" for n in range(5000)])
    sender = Sender(spool, taker)
    sender.send_all()
    assert taker.posts <= MOST_POSTS
    assert spool.dropped["power"] == 5000
    assert spool.oldest() is None
    spool.close()


def test_wrong_settings_keep_everything_until_somebody_acts(spool: Spool) -> None:
    taker = Taker(lambda lines: Verdict("settings", "database not found: run telemetry setup"))
    spool.append("rounds", ["a"])
    sender = Sender(spool, taker)
    assert sender.send_all() > 0
    assert (sender.now.state, spool.dropped["rounds"]) == ("settings", 0)
    assert spool.oldest() is not None


def test_a_server_that_says_when_is_asked_then(spool: Spool) -> None:
    taker = Taker(lambda lines: Verdict("away", "too many", after_seconds=7.0))
    spool.append("rounds", ["a"])
    assert Sender(spool, taker).send_all() == 7.0


def test_closing_sends_what_it_can(spool: Spool) -> None:
    taker = Taker()
    sender = Sender(spool, taker)
    sender.start()
    spool.append("rounds", ["last words"])
    sender.close(5.0)
    assert taker.stored == ["last words"]


def test_closing_does_not_wait_for_a_server_that_hangs(spool: Spool) -> None:
    def hang(lines: list[str]) -> Verdict:
        time.sleep(30)
        return STORED

    spool.append("rounds", ["a"])
    sender = Sender(spool, Taker(hang))
    sender.start()
    began = time.monotonic()
    sender.close(0.2)
    assert time.monotonic() - began < 10
    assert spool.oldest() is not None


def test_a_fault_of_the_server_object_does_not_end_the_thread(
    spool: Spool, caplog: pytest.LogCaptureFixture
) -> None:
    def fault(lines: list[str]) -> Verdict:
        raise RuntimeError("unexpected")

    spool.append("rounds", ["a"])
    sender = Sender(spool, Taker(fault))
    with caplog.at_level(logging.ERROR):
        sender.start()
        until = time.monotonic() + 20
        while "unexpected" not in caplog.text and time.monotonic() < until:
            time.sleep(0.01)
    assert sender._thread.is_alive()
    sender.close(0.0)
    assert spool.oldest() is not None
