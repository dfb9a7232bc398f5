"""Every message between board, coordinator and operator, as typed values and their JSON.

Rules: receivers ignore (and can show) unknown fields, refuse wrong types with the dotted path, never
see a non-finite number. Every time is a duration in seconds. Weights travel as chunks, not here.
"""

from typing import Any

from msgspec import Struct

from edged.codec import MAX_JSON_BYTES, MessageError, decode, encode, unknown_fields
from edged.fields import Count, Id, Joules, Natural, OrderId, Seconds, Text, Unit, Version
from edged.groups import Peer, Readiness, Rendezvous, Synchronous
from edged.parts import Energy, EnergyChannel, Manifest, Part, Parts, Piece, PoolOffer, Steady

# The words of messages are used far more often than what they are made of: one import serves both.
__all__ = [
    "MAX_JSON_BYTES",
    "Count",
    "Energy",
    "EnergyChannel",
    "Id",
    "Joules",
    "Manifest",
    "MessageError",
    "Natural",
    "OrderId",
    "Part",
    "Parts",
    "Piece",
    "PoolOffer",
    "Seconds",
    "Steady",
    "Text",
    "Unit",
    "Version",
    "decode",
    "encode",
    "unknown_fields",
]

PROTOCOL_VERSIONS = (1,)

PARTS = ("compute", "communication", "wait", "lost", "overhead")
BASES = ("measured", "calibrated", "estimated", "emulated")


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
    sampler_cpu_seconds: float | None = None
    """What reading the sensors has cost of the processor since the board's process began."""


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
    """An order to train the pieces from the model version; repeated under the same id it is a no-op. With
    `accepted` the board's order before it counts, in case that the word itself was not heard."""

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
    grain: Text = ""
    accepted: OrderId | None = None


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
    accepted: OrderId | None = None


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


class Pushed(Struct, frozen=True):
    """A board's asynchronous updates in this run: applied ones and their samples, those dropped as too old,
    how many of which staleness (in versions; of very many values neighbours are one, named by its least), and
    how far behind the newest version its open order is."""

    updates: Count = 0
    samples: Count = 0
    dropped: Count = 0
    staleness: dict[str, Count] = {}
    behind: Count | None = None


class FleetState(Struct, frozen=True):
    """fleet/state, retained, with the coordinator's own will on it. `conn` numbers the connection whose
    birth, will or farewell this is; 0 is said in between."""

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
    conn: Count = 0
    pushes: dict[Id, Pushed] = {}
