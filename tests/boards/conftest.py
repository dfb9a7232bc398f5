"""Emulated boards: a tree and an interpreter for each instruction set, over one copy of the project."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.boards.tree import ISAS, Emulated, copied, missing

MakeEmulated = Callable[[str, list[str]], Emulated]


@pytest.fixture(scope="session")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> MakeEmulated:
    """Gives the interpreter of an instruction set over a tree with these packages."""
    if reason := missing():
        pytest.skip(reason)
    sources: list[Path] = []

    @cache
    def of(name: str, packages: tuple[str, ...]) -> Emulated:
        if not sources:
            sources.append(copied(tmp_path_factory.mktemp("sources")))
        return Emulated(next(isa for isa in ISAS if isa.name == name), list(packages), sources[0])

    return lambda name, packages: of(name, tuple(packages))
