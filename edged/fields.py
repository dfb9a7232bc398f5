"""Types of single fields of messages and settings: ids, counts, durations, hashes with bounds. Pure."""

from typing import Annotated

from msgspec import Meta

Id = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}\Z")]
"""A fleet, board, run, pool or client id: safe in a topic, a file name and an access list."""
_ID = r"[a-z0-9][a-z0-9_-]{0,62}"
OrderId = Annotated[str, Meta(pattern=rf"^{_ID}\.[0-9]{{1,9}}\.{_ID}\.[0-9]{{1,9}}\Z")]
"""run.round.board.attempt"""
Version = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}\.[0-9]{1,9}\Z")]
"""run.merges: the n-th merged model of a run; n = 0 is the initial one."""
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Text = Annotated[str, Meta(max_length=2000)]
Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Natural = Annotated[int, Meta(ge=1, le=1 << 53)]
Seconds = Annotated[float, Meta(ge=0)]
Joules = Annotated[float, Meta(ge=0)]
Unit = Annotated[float, Meta(ge=0, le=1)]
