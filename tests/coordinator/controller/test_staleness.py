"""Mixing factors of asynchronous updates depend on the staleness and on nothing that came before."""

import pytest

from coordinator.controller.staleness import Rule, discount, mixing


@pytest.mark.parametrize(
    ("rule", "staleness", "expected"),
    [
        ("constant", 9, 1.0),
        ("polynomial", 0, 1.0),
        ("polynomial", 3, 0.5),
        ("hinge", 4, 1.0),
        ("hinge", 6, 0.5),
        ("dynsgd", 0, 1.0),
        ("dynsgd", 3, 0.25),
    ],
)
def test_discounts(rule: Rule, staleness: int, expected: float) -> None:
    assert discount(staleness, rule) == pytest.approx(expected)


def test_the_factor_is_the_same_after_a_hundred_equal_updates() -> None:
    first = mixing(3)
    assert first == pytest.approx(0.3)
    assert [mixing(3) for _ in range(100)] == [first] * 100


def test_a_model_mixed_with_itself_stays() -> None:
    model = 0.7
    for staleness in range(50):
        alpha = mixing(staleness, 0.9, "hinge")
        assert 0 < alpha <= 0.9
        model = (1 - alpha) * model + alpha * 0.7
    assert model == pytest.approx(0.7)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="staleness must not be negative, not -1"):
        discount(-1, "constant")
    with pytest.raises(ValueError, match="a = 0"):
        discount(1, "polynomial", a=0)
    with pytest.raises(ValueError, match=r"alpha = 1.5"):
        mixing(0, alpha=1.5)
