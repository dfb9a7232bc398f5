"""Emulated boards that fell behind their pace are told; others are not asked."""

import pytest

from coordinator.pacing import behind_pace, warning


def row(basis: str, steps: int | None, behind: int | None) -> dict[str, object]:
    return {"basis": basis, "steps": steps, "behind_pace_steps": behind}


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        ([], None),
        ([row("measured", 10, 0)], None),
        ([row("emulated", None, None)], None),
        ([row("emulated", 30, 3), row("emulated", 70, 0), row("measured", 100, 0)], 0.03),
        ([row("emulated", 10, None)], 0.0),
    ],
    ids=["nobody", "none emulated", "no steps", "some", "kept"],
)
def test_only_steps_of_emulated_boards_are_judged(rows: list[dict[str, object]], share: float | None) -> None:
    assert behind_pace(rows) == share


@pytest.mark.parametrize(("share", "told"), [(None, False), (0.0, False), (0.01, False), (0.011, True)])
def test_above_one_in_a_hundred_the_figures_are_invalid(share: float | None, told: bool) -> None:
    assert bool(warning({"behind_pace": share})) == told
    assert warning({}) == "", "rows of an earlier version do not have it"
