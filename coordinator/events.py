"""What happens to a run, and what is to be done about it: the words between `rounds` and its shell.

Pure values. A server, a replay and a simulator feed the same events and carry out the same effects.
"""

from typing import Any

from msgspec import Struct

from edged.controls import RunSettings
from edged.messages import Birth, Manifest, Order, Report, State


class Prepared(Struct, frozen=True):
    """The task is found, the initial model stored as version 0. Fingerprint and samples are those of
    the coordinator's own copy of the pool, or None where it has none (the boards' then counts)."""

    run: str
    settings: RunSettings
    task_hash: str
    manifest: Manifest
    fingerprint: str | None
    pool_samples: int | None


class Born(Struct, frozen=True):
    """A birth or will of a board, as heard."""

    birth: Birth


class Heard(Struct, frozen=True):
    """A state message of a board."""

    state: State


class Reported(Struct, frozen=True):
    """A report of a board."""

    report: Report


class Metered(Struct, frozen=True):
    """A board's joules within its present order so far (its last words if it dies)."""

    board: str
    boot: str
    order: str
    joules: float
    basis: str


class Arriving(Struct, frozen=True):
    """Chunks of an update came in: the board is alive though slow."""

    board: str
    order: str


class Stored(Struct, frozen=True):
    """The update of an order lies checked on disk, or cannot be used, and why."""

    board: str
    order: str
    error: str | None = None


class Folded(Struct, frozen=True):
    """The round's updates are merged into the next model version."""

    round: int
    manifest: Manifest


class FoldFailed(Struct, frozen=True):
    """The merge could not be done (disk); the run pauses with its round open."""

    round: int
    error: str


class Applied(Struct, frozen=True):
    """One update is applied; the model version stands."""

    version: str
    manifest: Manifest


class ApplyFailed(Struct, frozen=True):
    """It could not be applied: `unusable` for a fault of the update itself, else of the disk."""

    version: str
    error: str
    unusable: bool = False


class OwnLink(Struct, frozen=True):
    """The coordinator's own link to the broker came up or went down."""

    up: bool


class Woken(Struct, frozen=True):
    """Time has passed (at least twice a second)."""


class Restored(Struct, frozen=True):
    """The process was restarted with this run's stored state."""

    term: int
    boot: str


class Weigh(Struct, frozen=True):
    """Checked weights from the operator."""

    w_t: float
    w_e: float
    who: str = ""


class Choose(Struct, frozen=True):
    """Another policy from the operator; its name and options are checked."""

    policy: str
    options: dict[str, Any]
    who: str = ""


class Hold(Struct, frozen=True):
    """Pause (True) or resume (False)."""

    paused: bool
    who: str = ""


class Halt(Struct, frozen=True):
    """End the run now."""

    reason: str
    who: str = ""


class Admission(Struct, frozen=True):
    """Drain, readmit or forget a board."""

    board: str
    what: str
    who: str = ""


Event = (
    Prepared
    | Born
    | Heard
    | Reported
    | Metered
    | Arriving
    | Stored
    | Folded
    | FoldFailed
    | Applied
    | ApplyFailed
    | OwnLink
    | Woken
    | Restored
    | Weigh
    | Choose
    | Hold
    | Halt
    | Admission
)


class Send(Struct, frozen=True):
    """Publish the order to the board."""

    board: str
    message: Order


class Distribute(Struct, frozen=True):
    """Publish the model version once on the shared topic, paced by these boards' `chunks_held`."""

    version: str
    boards: tuple[str, ...]


class Deliver(Struct, frozen=True):
    """Publish the model version to one board alone, on its own topic."""

    version: str
    board: str


class Collect(Struct, frozen=True):
    """Fetch the update of the order by grants, spool it, check it, answer with Stored.

    `model` is the version that it was made from ("": the newest); `rate` says that it is a gradient, and by
    what it will be multiplied at most.
    """

    board: str
    order: str
    manifest: Manifest
    model: str = ""
    rate: float | None = None


class Discard(Struct, frozen=True):
    """Give up an upload or spooled update of the order."""

    board: str
    order: str


class Fold(Struct, frozen=True):
    """Merge the stored updates, weighted by ordered samples, in board order, into the version."""

    run: str
    round: int
    version: str
    items: tuple[tuple[str, str, int], ...]
    """(board, order, samples)"""


class Apply(Struct, frozen=True):
    """Make `version` out of `base` by the one update of the order, and answer with Applied.

    With grain `gradient` the update g moves the model by -rate (g + weight_decay x), with the coordinator's
    `momentum`; with `model` it becomes (1 - rate) old + rate update. Done again it gives the same bytes.
    """

    run: str
    version: str
    base: str
    board: str
    order: str
    samples: int
    grain: str
    rate: float
    momentum: float = 0.0
    weight_decay: float = 0.0


class Record(Struct, frozen=True):
    """Keep a row: table is a key of `schema.TABLES`; its key columns stand in the row."""

    table: str
    row: dict[str, Any]


class Save(Struct, frozen=True):
    """Make the run's state durable before any later effect of this list is carried out."""


class Announce(Struct, frozen=True):
    """The fleet's state changed: publish it."""


class Evaluate(Struct, frozen=True):
    """Measure the held-out loss of a stored version, outside the round."""

    run: str
    round: int
    version: str


class Note(Struct, frozen=True):
    """Something was refused, repeated or odd: counted under (board, counter) and shown."""

    board: str
    counter: str
    text: str


class Finished(Struct, frozen=True):
    """The run is over."""

    run: str
    reason: str
    complete: bool


Effect = (
    Send
    | Distribute
    | Deliver
    | Collect
    | Discard
    | Fold
    | Apply
    | Record
    | Save
    | Announce
    | Evaluate
    | Note
    | Finished
)
