"""Machines for the probes' tests, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probes import Context
from probes._recorded import lay_out
from probes._virtual import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def machine(tmp_path: Path, clock: VirtualClock) -> Callable[..., Context]:
    """Makes the context of a machine: its files, its denials, its commands, in virtual time."""

    def make(
        files: Mapping[str, str] | None = None,
        *,
        record: Mapping[str, Any] | None = None,
        options: Mapping[str, Mapping[str, object]] | None = None,
        **changes: Any,
    ) -> Context:
        context = lay_out(record or {"files": dict(files or {})}, tmp_path, options)
        return replace(context, clock=clock, **changes)

    return make
