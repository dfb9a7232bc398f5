"""The ledger: whatever happens, the parts are all of an order's time and add up to the meter's difference."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.ledger import Boundary, Ledger, Span, parts
from edged.messages import PARTS, Part, Parts


def at(seconds: float, watts: float = 2.0) -> Boundary[float]:
    """A boundary whose mark is the joules so far of a meter with constant watts."""
    return Boundary(seconds, seconds * watts)


def joules(span: Span[float]) -> float:
    return span.stop.mark - span.start.mark


def test_a_round_is_cut_where_its_parts_change() -> None:
    ledger = Ledger("o", at(0.0))
    for part, seconds in (("communication", 0.0), ("overhead", 1.0), ("compute", 3.0), ("wait", 8.0)):
        ledger = ledger.enter(part, at(seconds))
    found = parts(ledger.until(at(10.0)), joules)
    assert found == Parts(
        compute=Part(5.0, 10.0),
        communication=Part(1.0, 2.0),
        wait=Part(2.0, 4.0),
        lost=Part(0.0, 0.0),
        overhead=Part(2.0, 4.0),
    )


def test_entering_the_same_part_makes_no_cut() -> None:
    ledger = Ledger("o", at(0.0)).enter("wait", at(0.0)).enter("wait", at(1.0)).enter("wait", at(2.0))
    assert ledger.until(at(3.0)) == (Span("wait", at(0.0), at(3.0)),)


def test_lost_compute_is_lost_whether_it_has_ended_or_runs() -> None:
    ledger = (
        Ledger("o", at(0.0)).enter("compute", at(0.0)).enter("overhead", at(1.0)).enter("compute", at(2.0))
    )
    found = parts(ledger.lose().enter("wait", at(4.0)).until(at(5.0)), joules)
    assert (found.compute.seconds, found.lost.seconds, found.overhead.seconds, found.wait.seconds) == (
        0,
        3,
        1,
        1,
    )


def test_a_stamp_that_comes_late_counts_as_the_last_boundary() -> None:
    ledger = Ledger("o", at(5.0)).enter("overhead", at(5.0)).enter("compute", at(4.0))
    assert ledger.until(at(6.0)) == (Span("compute", at(5.0), at(6.0)),)


def test_one_unknown_span_makes_its_part_unknown_and_no_other() -> None:
    ledger = Ledger("o", at(0.0)).enter("compute", at(0.0)).enter("wait", at(1.0)).enter("compute", at(2.0))
    found = parts(ledger.until(at(3.0)), lambda span: None if span.start.at_seconds == 2.0 else joules(span))
    assert found.compute == Part(2.0, None)
    assert found.wait == Part(1.0, 2.0)


def test_without_any_known_joule_no_part_claims_zero() -> None:
    ledger = Ledger("o", at(0.0)).enter("wait", at(0.0))
    found = parts(ledger.until(at(1.0)), lambda span: None)
    assert [getattr(found, name).joules for name in PARTS] == [None] * 5


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match="'nap' is no part"):
        Ledger("o", at(0.0)).enter("nap", at(1.0))


events = st.lists(
    st.tuples(st.sampled_from([*PARTS, "lose"]), st.floats(-0.5, 10.0), st.floats(0.0, 50.0)), max_size=30
)


@settings(max_examples=100, deadline=None)
@given(events)
def test_parts_add_up_to_the_whole(played: list[tuple[str, float, float]]) -> None:
    """`played`: a part or a loss, seconds since the last event (negative: a late stamp), joules since
    then.
    """
    now, used = 100.0, 0.0
    start: Boundary[float] = Boundary(now, used)
    ledger = Ledger("o", start).enter("overhead", start)
    for what, seconds, more in played:
        here = Boundary(now + seconds, used + more)
        if seconds > 0:
            now, used = now + seconds, used + more
        ledger = ledger.lose() if what == "lose" else ledger.enter(what, here)
    end = Boundary(now + 1.0, used + 3.0)
    spans = ledger.until(end)
    found = parts(spans, joules)
    assert sum(getattr(found, name).seconds for name in PARTS) == pytest.approx(end.at_seconds - 100.0)
    assert sum(getattr(found, name).joules for name in PARTS) == pytest.approx(used + 3.0)
    assert all(one.stop == two.start for one, two in pairwise(spans))
    assert all(span.seconds > 0 for span in spans)
