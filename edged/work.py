"""What the agent and its training child say to each other: one JSON object a line over the child's stdin
and stdout.

Stamps are seconds of CLOCK_MONOTONIC, which all processes of a machine share.
"""

from msgspec import Struct

from edged.messages import Train


class Job(Struct, frozen=True, tag_field="word", tag="job"):
    """Train this order. Paths are the agent's; `folders` hold the owner's task files. With `emulate`
    each step is padded to `seconds_per_sample` a sample, or to a pace that the child measures itself
    when that is None."""

    board: str
    order: Train
    model: str
    update: str
    pool: str
    folders: tuple[str, ...] = ()
    threads: int | None = None
    emulate: bool = False
    seconds_per_sample: float | None = None


class Cancel(Struct, frozen=True, tag_field="word", tag="cancel"):
    """Stop training this order at the next step."""

    order: str


class Ready(Struct, frozen=True, tag_field="word", tag="ready"):
    """The child has imported torch."""

    torch: str


class Prepared(Struct, frozen=True, tag_field="word", tag="prepared"):
    """Task, data and model of the order are in memory; `seconds_per_sample` is the emulated pace, if any."""

    order: str
    seconds_per_sample: float | None = None


class Begun(Struct, frozen=True, tag_field="word", tag="begun"):
    """The compute window opened."""

    order: str
    at_seconds: float


class Stepped(Struct, frozen=True, tag_field="word", tag="stepped"):
    """So many samples are trained."""

    order: str
    samples: int


class Finished(Struct, frozen=True, tag_field="word", tag="finished"):
    """The compute window closed at `at_seconds` and the update lies at the job's path.

    `steady_samples` were trained since `steady_at_seconds`, which leaves out the first two steps of a
    new child; 0 when there were no more than those.
    """

    order: str
    at_seconds: float
    samples: int
    steps: int
    loss_sum: float
    metrics: dict[str, float]
    steady_samples: int
    steady_at_seconds: float
    peak_memory_bytes: int
    behind_pace_steps: int


class Failed(Struct, frozen=True, tag_field="word", tag="failed"):
    """The order's training ended without an update."""

    order: str
    reason: str


Asked = Job | Cancel
Word = Ready | Prepared | Begun | Stepped | Finished | Failed
