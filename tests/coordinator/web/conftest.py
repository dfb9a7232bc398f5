"""A page over a whole coordinator, given up after each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.coordinator.web.paged import Paged


@pytest.fixture
def paged(tmp_path: Path) -> Iterator[Paged]:
    made = Paged(tmp_path)
    yield made
    made.close()
