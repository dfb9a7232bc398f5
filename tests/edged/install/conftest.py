"""Fixtures of the installer's tests."""

from pathlib import Path

import pytest

from tests.edged.install.image import Image


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """An image of an x86 board with Python 3.11."""
    return Image(tmp_path / "image")
