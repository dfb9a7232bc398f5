"""Fleets that several controller tests decide about."""

import pytest

from coordinator.controller.steady import Truth

INVENTED_ELEVEN = (
    ("x86-desktop", 480, 34.0, 5.0),
    ("x86-n-class", 300, 16.0, 3.5),
    ("arm-8core-a", 240, 10.5, 1.9),
    ("arm-8core-b", 230, 9.8, 1.7),
    ("arm-a76x4", 210, 8.6, 2.4),
    ("arm-a73x4", 150, 5.6, 1.3),
    ("arm-a72x4", 110, 6.2, 2.0),
    ("arm-a57x4", 95, 7.5, 1.2),
    ("riscv-c910x4", 80, 9.0, 2.4),
    ("riscv-u74x4", 45, 4.9, 1.6),
    ("arm-a53x4", 42, 5.4, 1.4),
)


@pytest.fixture
def three() -> tuple[Truth, ...]:
    """Of tau = 1, 2, 4 ms, active 10, 4, 5 W, waiting 2, 1, 1.5 W."""
    return (Truth("a", 1000, 10, 2), Truth("b", 500, 4, 1), Truth("c", 250, 5, 1.5))


@pytest.fixture
def eleven() -> tuple[Truth, ...]:
    """An invented fleet, shaped so that time-only cuts the makespan of equal shares by 77 %."""
    return tuple(Truth(*row) for row in INVENTED_ELEVEN)
