"""Messages of the checker with the field first."""

import pytest

from coordinator.wording import dotted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Expected `int` >= 1 - at `$.do.settings.budget`", "do.settings.budget: Expected `int` >= 1"),
        ("Expected `float`, got `str` - at `$.deadband`", "deadband: Expected `float`, got `str`"),
        ("Expected `str` - at `key` in `$.data`", "data: Expected `str`"),
        ("Expected `str` - at `$[0]`", "[0]: Expected `str`"),
        ("Expected `object`, got `array`", "Expected `object`, got `array`"),
        ("Input data was truncated", "Input data was truncated"),
    ],
)
def test_the_field_stands_first(text: str, shown: str) -> None:
    assert dotted(text) == shown


def test_a_prefix_stands_before_the_path() -> None:
    assert dotted("Expected `str` - at `$.path`", "data.mnist") == "data.mnist.path: Expected `str`"
    assert dotted("Expected `object`", "data.mnist") == "data.mnist: Expected `object`"
