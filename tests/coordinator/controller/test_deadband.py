"""Small changes are not worth a reallocation, lasting ones are."""

import pytest

from coordinator.controller import Carry, Member, Pool
from coordinator.controller.deadband import DRIFT, Verdict, judge, words
from coordinator.controller.standing import Standing, standing


def after(shares: dict[str, int | None], budget: int, floor: int = 0, cap: int | None = None) -> Standing:
    members = tuple(Member(board, floor=floor, cap=cap, previous=n) for board, n in shares.items())
    return standing(Pool(members, budget, 5))


def decided(now: Standing, wanted: list[int], carry: Carry | None = None) -> tuple[Verdict, str]:
    verdict = judge(now, wanted, carry or {}, 0.10, 5)
    return verdict, words(verdict, now, wanted, 0.10, 5)


def test_the_largest_relative_change_decides() -> None:
    now = after({"a": 800, "b": 200}, 1000)
    verdict, said = decided(now, [780, 220])
    assert not verdict.applies
    assert said == "largest change b 200 -> 220 (+10.0 %) is inside the deadband of 10 %: shares kept"
    verdict, said = decided(now, [779, 221])
    assert verdict.applies
    assert said == "largest change b 200 -> 221 (+10.5 %) is above the deadband of 10 %"


def test_nothing_to_change_says_so() -> None:
    verdict, said = decided(after({"a": 800, "b": 200}, 1000), [800, 200])
    assert (verdict.applies, said) == (False, "the shares are as wanted")


def test_five_rounds_of_one_sign_apply_the_new_shares_once() -> None:
    now = after({"a": 800, "b": 200}, 1000)
    carry: Carry = {}
    for _ in range(4):
        verdict, _ = decided(now, [790, 210], carry)
        assert not verdict.applies
        carry = {DRIFT: verdict.drift or {}}
    verdict, said = decided(now, [790, 210], carry)
    assert (verdict.applies, verdict.drift) == (True, None)
    assert said.startswith("too many samples for 5 rounds inside the deadband: applied once (a 800 -> 790")


def test_errors_of_changing_sign_never_add_up() -> None:
    now = after({"a": 800, "b": 200}, 1000)
    carry: Carry = {}
    for round in range(40):
        verdict, _ = decided(now, [790, 210] if round % 2 else [810, 190], carry)
        assert not verdict.applies
        carry = {DRIFT: verdict.drift or {}}


def test_a_round_without_error_ends_the_row() -> None:
    now = after({"a": 400, "b": 400, "c": 200}, 1000)
    carry: Carry = {DRIFT: {"a": 4.0, "b": -4.0}}
    verdict, _ = decided(now, [400, 399, 201], carry)
    assert verdict.kind == "patience"
    verdict, _ = decided(now, [400, 401, 199], carry)
    assert verdict.drift == {"b": 1.0, "c": -1.0}


@pytest.mark.parametrize(
    ("shares", "budget", "floor", "cap", "said"),
    [
        ({"a": 500, "b": None}, 1000, 0, None, "b had no share"),
        ({"a": 500, "b": 400}, 1000, 0, None, "the old shares add up to 900, not 1000"),
        ({"a": 990, "b": 10}, 1000, 20, None, "b's 10 samples are below its floor of 20"),
        ({"a": 990, "b": 10}, 1000, 0, 900, "a's 990 samples are above its cap of 900"),
    ],
)
def test_shares_that_no_longer_fit_are_replaced(
    shares: dict[str, int | None], budget: int, floor: int, cap: int | None, said: str
) -> None:
    verdict, text = decided(after(shares, budget, floor, cap), [500, 500])
    assert verdict.applies
    assert text == f"new shares: {said}"


def test_a_board_that_had_no_samples_and_gets_some_is_a_change() -> None:
    verdict, said = decided(after({"a": 1000, "b": 0}, 1000), [999, 1])
    assert (verdict.applies, said) == (True, "largest change b 0 -> 1 is above the deadband of 10 %")
