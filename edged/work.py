"""What the agent and its training child say to each other: one JSON object a line over the child's stdin
and stdout.

Stamps are seconds of CLOCK_MONOTONIC, which all processes of a machine share.
"""

from msgspec import Struct

from edged.groups import Peer, Readiness, Synchronous
from edged.messages import Train


class Job(Struct, frozen=True, tag_field="word", tag="job"):
    """Train this order. Paths are the agent's; `folders` hold the owner's task files. With `emulate`
    each step is padded to `seconds_per_sample` a sample, or to a pace that the child measures itself
    when that is None. `address` is the board's own towards the broker; in `kept` lie optimizer states. No
    more than `micro_batch` samples fit into memory at once; None: as many as the order asks for."""

    board: str
    order: Train
    model: str
    update: str
    pool: str
    folders: tuple[str, ...] = ()
    threads: int | None = None
    emulate: bool = False
    seconds_per_sample: float | None = None
    address: str = ""
    kept: str = ""
    micro_batch: int | None = None


class Meet(Struct, frozen=True, tag_field="word", tag="meet"):
    """All ranks of the order are ready: form the group with these peers, or go on in the one of that name."""

    order: str
    group: str
    peers: tuple[Peer, ...]
    formation_seconds: float


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


class Mustered(Struct, frozen=True, tag_field="word", tag="mustered"):
    """This rank is ready for the others, and waits for `Meet`."""

    order: str
    readiness: Readiness


class Met(Struct, frozen=True, tag_field="word", tag="met"):
    """The order's group stands."""

    order: str
    group: str


class Split(Struct, frozen=True):
    """Where the compute window of synchronous steps went. Compute is from the fetch of a batch to the
    hand-over of its last gradients, summed over the steps; `steady` is the part of it without a new child's
    first steps. What is left of the window (the optimizer's steps) is none of these."""

    compute_seconds: float
    communication_seconds: float
    wait_seconds: float
    steady_seconds: float


class Begun(Struct, frozen=True, tag_field="word", tag="begun"):
    """The compute window opened; with `by_stretches` the child tells later when it really computes in it."""

    order: str
    at_seconds: float
    by_stretches: bool = False


class Stepped(Struct, frozen=True, tag_field="word", tag="stepped"):
    """So many samples are trained; `stretches` of computing, begin and end, were not told before."""

    order: str
    samples: int
    stretches: tuple[tuple[float, float], ...] = ()


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
    split: Split | None = None
    synchronous: Synchronous | None = None


class Failed(Struct, frozen=True, tag_field="word", tag="failed"):
    """The order's training ended without an update; `blames` is not None where others are at fault."""

    order: str
    reason: str
    blames: tuple[str, ...] | None = None


Asked = Job | Meet | Cancel
Word = Ready | Prepared | Mustered | Met | Begun | Stepped | Finished | Failed
