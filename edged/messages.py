"""Every message between board, coordinator and operator, as typed values and their JSON.

Rules: receivers ignore (and can show) unknown fields, refuse wrong types with the dotted path, never
see a non-finite number. Every time is a duration in seconds. Weights travel as chunks, not here.
"""

import math
from typing import Annotated, Any, TypeVar, overload

import msgspec
from msgspec import Meta, Struct

from edged.fields import Count, Id, Joules, Natural, OrderId, Seconds, Sha256, Text, Unit, Version
from edged.groups import Peer, Readiness, Rendezvous, Synchronous

PROTOCOL_VERSIONS = (1,)
MAX_JSON_BYTES = 1 << 20

PHASES = ("idle", "fetching", "training", "uploading", "waiting")
PARTS = ("compute", "communication", "wait", "lost", "overhead")
BASES = ("measured", "calibrated", "estimated", "emulated")
LINKS = ("up", "lost", "closed", "duplicate")


class MessageError(ValueError):
    """A payload that is not the message its topic promises; the text names the field by dotted path."""


class Piece(Struct, frozen=True, array_like=True):
    """Places start..stop (exclusive) of one epoch's permutation of the pool (ARCHITECTURE 5)."""

    epoch: Count
    start: Count
    stop: Count

    @property
    def samples(self) -> int:
        """Samples of the piece; negative when the piece is not one (callers check)."""
        return self.stop - self.start


class Manifest(Struct, frozen=True):
    """A file cut in chunks: all but the last are `chunk_bytes` long."""

    length_bytes: Natural
    chunk_bytes: Annotated[int, Meta(ge=1, le=1 << 28)]
    sha256: Sha256

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return math.ceil(self.length_bytes / self.chunk_bytes)


class Part(Struct, frozen=True):
    """One part of a board's round. `joules` is None where they are not known."""

    seconds: Seconds = 0.0
    joules: Joules | None = None


class Parts(Struct, frozen=True):
    """The parts of a board's round; together they are all of it (ARCHITECTURE 4)."""

    compute: Part = Part()
    communication: Part = Part()
    wait: Part = Part()
    lost: Part = Part()
    overhead: Part = Part()


class Energy(Struct, frozen=True):
    """Joules of the compute window in the headline scope, and how far to trust them."""

    joules: Joules | None = None
    reason: Text = ""
    channel: Text = ""
    scope: Text = ""
    basis: Text = ""
    uncertainty_joules: Joules | None = None
    coverage: Unit | None = None
    flags: tuple[Text, ...] = ()


class Steady(Struct, frozen=True):
    """What the controller charges: the compute window without a new child's first two steps."""

    samples: Count = 0
    seconds: Seconds = 0.0
    joules: Joules | None = None


class EnergyChannel(Struct, frozen=True):
    """One energy channel of a board, as announced at birth."""

    id: Text
    scope: Text
    basis: Text
    kind: Text = ""
    headline: bool = False
    status: Text = "ok"
    reason: Text = ""


class PoolOffer(Struct, frozen=True):
    """A pool that a board holds: equal fingerprints mean equal data."""

    fingerprint: Text
    samples: Count
    tasks: tuple[Text, ...] = ()
    error: Text = ""


class Birth(Struct, frozen=True):
    """board/<id>/birth, retained: who is there; the will puts the same with link = lost."""

    board: Id
    boot: Id
    conn: Count
    link: Text
    protocols: tuple[int, ...] = PROTOCOL_VERSIONS
    host: Text = ""
    address: Text = ""
    arch: Text = ""
    model: Text = ""
    cores: Count = 0
    memory_bytes: Count = 0
    versions: dict[str, Text] = {}
    tasks: dict[str, Text] = {}
    task_errors: dict[str, Text] = {}
    pools: dict[str, PoolOffer] = {}
    channels: tuple[EnergyChannel, ...] = ()
    emulates: Text = ""
    rival: Text = ""
    silo: Text = ""


class State(Struct, frozen=True):
    """board/<id>/state: the heartbeat; `clock_seconds` only serves to show a clock's skew. `blames` is None
    where an order was abandoned for a fault of this board's own, else the ranks at fault, as far as known."""

    board: Id
    boot: Id
    conn: Count
    phase: Text
    order: OrderId | None = None
    samples_done: Count = 0
    chunks_held: Count = 0
    model: Version | None = None
    abandoned: OrderId | None = None
    blames: tuple[Text, ...] | None = None
    reason: Text = ""
    ready: Readiness | None = None
    joined: Text = ""
    term: Count = 0
    uptime_seconds: Seconds = 0.0
    clock_seconds: float = 0.0
    counters: dict[str, Count] = {}


class Power(Struct, frozen=True):
    """board/<id>/power, 1 Hz: watts now and joules since the board's process began, by channel."""

    board: Id
    boot: Id
    headline: Text = ""
    basis: Text = ""
    watts: dict[str, float] = {}
    joules: dict[str, Joules] = {}
    order: OrderId | None = None
    order_joules: Joules | None = None
    temperature_celsius: float | None = None
    throttled: tuple[Text, ...] = ()


class Report(Struct, frozen=True):
    """board/<id>/report. stage `trained`: the compute is over, an update waits to be fetched.
    stage `closed`: the order has been replaced or ended, and `parts` are the whole of its time."""

    board: Id
    boot: Id
    order: OrderId
    stage: Text
    term: Count
    samples: Count = 0
    steps: Count = 0
    parts: Parts = Parts()
    energy: Energy = Energy()
    steady: Steady = Steady()
    loss_sum: float | None = None
    metrics: dict[str, float] = {}
    peak_memory_bytes: Count = 0
    behind_pace_steps: Count = 0
    manifest: Manifest | None = None
    synchronous: Synchronous | None = None


class Want(Struct, frozen=True):
    """board/<id>/want: chunk ranges of a model version that this board lacks."""

    board: Id
    boot: Id
    version: Version
    ranges: tuple[tuple[Count, Count], ...]


class Train(Struct, frozen=True, tag_field="kind", tag="train"):
    """An order to train the pieces from the model version; repeated under the same id it is a no-op."""

    order: OrderId
    run: Id
    round: Natural
    attempt: Natural
    boot: Id
    term: Count
    regime: Text
    task: Text
    task_hash: Text
    pool: Id
    fingerprint: Text
    pieces: tuple[Piece, ...]
    samples: Natural
    batch: Natural
    learning_rate: float
    model: Version
    manifest: Manifest
    seed: Count
    pool_samples: Natural
    options: dict[str, Any] = {}
    optimizer: Text = "sgd"
    momentum: float = 0.0
    weight_decay: float = 0.0
    optimizer_state: Text = "reset"
    deadline_seconds: Seconds = 0.0
    batches: tuple[Count, ...] | None = None
    rendezvous: Rendezvous | None = None
    energy_window: Text = "compute"


class Join(Struct, frozen=True, tag_field="kind", tag="join"):
    """All ranks of the order are ready: form the process group `group` among the peers, in rank order; with
    no peers go on in the group of that name, which all still hold."""

    order: OrderId
    boot: Id
    term: Count
    group: Text
    peers: tuple[Peer, ...] = ()
    formation_seconds: Seconds = 60.0


class Attend(Struct, frozen=True, tag_field="kind", tag="attend"):
    """An order without samples: stay, and report waiting time and joules."""

    order: OrderId
    run: Id
    round: Natural
    boot: Id
    term: Count
    reason: Text = ""


class Abort(Struct, frozen=True, tag_field="kind", tag="abort"):
    """Stop working on the order; its seconds and joules are lost ones."""

    order: OrderId
    boot: Id
    term: Count
    reason: Text = ""


class Accepted(Struct, frozen=True, tag_field="kind", tag="accepted"):
    """The update of the order is stored and checked."""

    order: OrderId
    boot: Id
    term: Count


class Refused(Struct, frozen=True, tag_field="kind", tag="refused"):
    """The report or update of the order does not count, and why."""

    order: OrderId
    boot: Id
    term: Count
    reason: Text


class Grant(Struct, frozen=True, tag_field="kind", tag="grant"):
    """Leave to upload these chunk ranges of the order's update."""

    order: OrderId
    boot: Id
    term: Count
    ranges: tuple[tuple[Count, Count], ...]
    window: Natural = 8


class StandBy(Struct, frozen=True, tag_field="kind", tag="stand_by"):
    """No order now, and why (run over, paused, drained, something is missing, duplicate id)."""

    boot: Id
    term: Count
    reason: Text = ""


Order = Train | Join | Attend | Abort | Accepted | Refused | Grant | StandBy


class Waiting(Struct, frozen=True):
    """What a round waits for: of whom, since when, and until when (None: no limit runs)."""

    board: Id
    what: Text
    since_seconds: Seconds
    until_seconds: float | None = None


class FleetState(Struct, frozen=True):
    """fleet/state, retained, with the coordinator's own will on it."""

    boot: Id
    term: Count
    link: Text
    host: Text = ""
    run: Id | None = None
    round: Count = 0
    rounds: Count = 0
    phase: Text = "idle"
    regime: Text = ""
    policy: Text = ""
    w_t: float | None = None
    w_e: float | None = None
    shares: dict[str, Count] = {}
    reason: Text = ""
    waiting: tuple[Waiting, ...] = ()
    last: dict[str, Any] = {}
    joules_basis: tuple[Text, ...] = ()


T = TypeVar("T")


def encode(message: Struct) -> bytes:
    """JSON of a message. Raises MessageError where a number is not finite (JSON has no word for it)."""
    _refuse_non_finite(message, type(message).__name__)
    return msgspec.json.encode(message)


@overload
def decode(kind: type[T], payload: bytes) -> T: ...
@overload
def decode(kind: Any, payload: bytes) -> Any: ...
def decode(kind: Any, payload: bytes) -> Any:
    """The message of that kind, or MessageError with the dotted path of what is wrong."""
    if len(payload) > MAX_JSON_BYTES:
        raise MessageError(f"{len(payload)} bytes, more than the {MAX_JSON_BYTES} that a message may have")
    try:
        return msgspec.json.decode(payload, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MessageError(str(error) or type(error).__name__) from None


def unknown_fields(kind: type[Struct], payload: bytes) -> dict[str, Any]:
    """Top-level fields that this version does not know, with their values, to be shown to people."""
    raw = msgspec.json.decode(payload)
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    return {name: value for name, value in raw.items() if name not in known} if isinstance(raw, dict) else {}


def _refuse_non_finite(value: object, path: str) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise MessageError(f"{path}: {value} is not a finite number")
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            _refuse_non_finite(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_non_finite(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _refuse_non_finite(item, f"{path}[{index}]")
