"""What happens to a board, and what is to be done about it: the words between `state` and the agent.

Pure values. Instants are seconds of one monotonic clock, given by whoever feeds the events.
"""

from enum import Enum

from msgspec import Struct

from edged.groups import Readiness
from edged.messages import Abort, Accepted, Attend, Birth, Grant, Join, Manifest, Refused, StandBy, Train


class Phase(str, Enum):
    """What a board is doing, as `board/<id>/state` says it."""

    IDLE = "idle"
    FETCHING = "fetching"
    TRAINING = "training"
    UPLOADING = "uploading"
    WAITING = "waiting"


class LinkUp(Struct, frozen=True):
    """Connected and heard; `connection` counts from 1 in each process."""

    connection: int


class LinkDown(Struct, frozen=True):
    """The connection is gone; work goes on."""


class Inventory(Struct, frozen=True):
    """What this board can train is known: task hashes, pool fingerprints, regimes."""

    tasks: dict[str, str]
    pools: dict[str, str]
    regimes: tuple[str, ...]


class Foreign(Struct, frozen=True):
    """What another client published on the own birth topic, None if it is no birth; `retained` if the
    broker kept it from before."""

    birth: Birth | None
    retained: bool


class Chunks(Struct, frozen=True):
    """A new chunk of a model version came; so many are held now."""

    version: str
    held: int


class ModelReady(Struct, frozen=True):
    """All of a model version lies on disk and its hash is right."""

    version: str
    sha256: str


class ModelFailed(Struct, frozen=True):
    """A model version cannot be had."""

    version: str
    reason: str


class Alive(Struct, frozen=True):
    """The child said something about the order's preparation: it does not hang."""

    order: str


class Mustered(Struct, frozen=True):
    """This rank of the order is ready for the others."""

    order: str
    readiness: Readiness


class Met(Struct, frozen=True):
    """The order's process group stands."""

    order: str
    group: str


class Began(Struct, frozen=True):
    """The order's compute window opened at `at_seconds`."""

    order: str
    at_seconds: float


class Progress(Struct, frozen=True):
    """So many samples of the order are trained."""

    order: str
    samples: int


class Ended(Struct, frozen=True):
    """The order's compute window closed at `at_seconds`; the update is being described."""

    order: str
    at_seconds: float
    samples: int


class Described(Struct, frozen=True):
    """The update file of the order is hashed and may be uploaded."""

    order: str
    manifest: Manifest


class Broke(Struct, frozen=True):
    """The order's training ended without an update (an error, or the child died). `blames` is not None
    where other ranks are at fault, and names those that are known."""

    order: str
    reason: str
    blames: tuple[str, ...] | None = None


class Leave(Struct, frozen=True):
    """The process is asked to end."""

    reason: str


class Tick(Struct, frozen=True):
    """Time has passed."""


Event = (
    Train
    | Join
    | Attend
    | Abort
    | Accepted
    | Refused
    | Grant
    | StandBy
    | LinkUp
    | LinkDown
    | Inventory
    | Foreign
    | Chunks
    | ModelReady
    | ModelFailed
    | Alive
    | Mustered
    | Met
    | Began
    | Progress
    | Ended
    | Described
    | Broke
    | Leave
    | Tick
)


class Act(str, Enum):
    """One thing for the agent to carry out."""

    BIRTH = "birth"  # publish the birth
    SAY = "say"  # publish the state
    OPEN = "open"  # the order's time begins
    LOSE = "lose"  # its compute so far is lost
    CLOSE = "close"  # its time ends; report the whole of it
    CLOSED_AGAIN = "closed_again"  # repeat the last closing report, if there is one
    FETCH = "fetch"  # collect the order's model
    WANT = "want"  # ask for its missing chunks
    TRAIN = "train"  # give it to the child
    JOIN = "join"  # let it join the order's process group
    CANCEL = "cancel"  # take it from the child
    KILL = "kill"  # end the child, it hangs
    DESCRIBE = "describe"  # hash its update
    TRAINED = "trained"  # report it, with the update's manifest
    UPLOAD = "upload"  # send the granted chunks
    DISCARD = "discard"  # delete its update
    FORGET = "forget"  # delete a model version from disk


class Effect(Struct, frozen=True):
    """An act and what it is about: an order id, or for FORGET a model version. Ranges are those of a
    grant.
    """

    act: Act
    about: str = ""
    ranges: tuple[tuple[int, int], ...] = ()
    window: int = 0
