"""What `doctor` commands look at, one file each; every file gives `Finding`s as soon as they are known.

`fail` keeps the board from taking part, or is asked for and does not work; `warn` is done without, less well.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Verdict = Literal["ok", "warn", "fail"]
MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


class Finding(Struct, frozen=True):
    """One thing that was looked at. `way_out` is a command where one helps, else what to do."""

    what: str
    verdict: Verdict
    text: str
    way_out: str = ""


def written(finding: Finding, said: str = "") -> str:
    """As people read it; the way out on a line of its own, unless it was `said` just before."""
    line = f"{MARKS[finding.verdict]}  {finding.what}: {finding.text}"
    return f"{line}\n      -> {finding.way_out}" if finding.way_out not in ("", said) else line
