"""What a board's decisions rest on, and what an event can mean to it: the values of `cues` and `state`.

Pure.
"""

from enum import Enum

from msgspec import Struct

from edged.events import Inventory, Phase
from edged.groups import Readiness
from edged.messages import Attend, Birth, Join, Train

FIRST_WANT_SECONDS = 1.0


class Board(Struct, frozen=True):
    """All that the decisions rest on."""

    board: str
    boot: str
    phase: Phase = Phase.IDLE
    order: Train | Attend | None = None
    term: int = 0
    up: bool = False
    connection: int = 0
    can: Inventory | None = None
    models: tuple[tuple[str, str], ...] = ()  # version and sha256 on disk, oldest first
    chunks_held: int = 0
    samples_done: int = 0
    computing: bool = False
    ready: Readiness | None = None  # of a rank that waits for the others, or has waited
    join: Join | None = None
    joined: str = ""  # the process group that stands for this order
    mustering: bool = False
    abandoned: str | None = None
    blames: tuple[str, ...] | None = None
    reason: str = ""
    past: tuple[str, ...] = ()
    alive_at: float = 0.0  # last sign of life of the order's training
    quiet_since: float = 0.0  # last new chunk, or last want
    patience: float = FIRST_WANT_SECONDS
    said_at: float = 0.0
    said_samples: int = 0
    sighted: tuple[str, int] | None = None  # the last foreign boot at the own birth topic, and its connection
    rival: Birth | None = None
    rival_at: float = 0.0

    @property
    def order_id(self) -> str:
        """The active order's id, "" without one."""
        return self.order.order if self.order else ""

    @property
    def part(self) -> str | None:
        """Which part of the order's time runs now (messages.PARTS); None when nothing is charged."""
        if self.mustering and self.phase is Phase.TRAINING:
            return "wait"  # for the other ranks
        return "compute" if self.computing else _PART_OF[self.phase]


_PART_OF = {
    Phase.IDLE: None,
    Phase.FETCHING: "communication",
    Phase.TRAINING: "overhead",
    Phase.UPLOADING: "communication",
    Phase.WAITING: "wait",
}


class Cue(str, Enum):
    """What an event means to this board now."""

    FETCH = "a new order, its model is not here"
    TRAIN = "a new order, its model is here"
    ATTEND = "a new order without samples"
    UNFIT = "a new order that this board cannot train"
    STAND_BY = "no more orders for now"
    RIVAL = "a second board with this id"
    LEAVE = "this process is asked to end"
    AGAIN = "an order or stand-by that is known already"
    STRAY = "an order that is not to be followed"
    ABORT = "the active order is called off"
    REFUSED = "the active order's update does not count"
    ACCEPTED = "the active order's update is safe"
    GRANT = "leave to upload"
    CHUNK = "a model chunk"
    CHUNKS = "enough model chunks to tell"
    SILENCE = "no model chunk for a while"
    MODEL_READY = "the model is here"
    MODEL_FAILED = "the model cannot be had"
    ALIVE = "the training goes on"
    MUSTERED = "this rank is ready for the others"
    JOIN = "all ranks are ready"
    MET = "the process group stands"
    BEGAN = "the compute window opened"
    ENDED = "the compute window closed"
    DESCRIBED = "the update can be uploaded"
    BROKE = "the training failed"
    HUNG = "the training gave no sign for as long as the order allows"
    UP = "the link is up"
    DOWN = "the link is down"
    STOCK = "what can be trained is known"
    OVERWRITTEN = "the own birth was overwritten, and nobody else is there"
    RIVAL_AGAIN = "the second board is still there"
    ALONE = "the second board is gone"
    HEARTBEAT = "time to say the state"
    NOTHING = "nothing follows"
