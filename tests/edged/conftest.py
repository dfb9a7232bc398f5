"""Fixtures of the board's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edged.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A board that has begun, over a broker in memory."""
    made = Desk(tmp_path)
    made.agent.begin()
    yield made
    made.agent.end("the test is over")
    made.meter.close()
