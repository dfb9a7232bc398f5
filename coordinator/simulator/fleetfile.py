"""Fleet files: which virtual boards there are and what work they get. Reads; simulates nothing.

A name without a path is one of the fleets that ship (`coordinator/fleets/`).
"""

from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from coordinator.simulator.boards import Nonnegative, VirtualBoard
from edged.fields import Count, Natural, Text


class FleetError(ValueError):
    """No such fleet, or a file that is not one; the text names the file, the board and the key."""


class FleetFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A fleet, the work that its figures were shaped for, and how `simulate` runs it unless told otherwise.

    `global_batch` is that of all ranks together in a step of synchronous gradients. With `idle_seen` the
    coordinator was there long enough before the run to see what the boards draw without an order.
    """

    name: Text
    board: Annotated[tuple[VirtualBoard, ...], Meta(min_length=1)]
    about: Text = ""
    budget: Natural = 8000
    batch: Natural = 32
    global_batch: Natural | None = None
    pool_samples: Natural | None = None
    regime: Literal["pma", "ddp", "hfl-ddp", "asp"] = "pma"
    policy: Text = "adaptive"
    policy_options: dict[str, Any] = {}
    w_e: Annotated[float, Meta(ge=0, le=1)] = 0.0
    rounds: Natural = 20
    seed: Count = 1
    fixed_cost: Literal["none", "fit"] = "none"
    step_communication_seconds: Nonnegative = 0.0
    idle_seen: bool = True

    @property
    def samples(self) -> int:
        """Samples of the pool; as many as a round trains where the file does not say."""
        return self.pool_samples or self.budget

    def batch_of(self, regime: str) -> int:
        """What a run in that regime calls its batch: local samples (in asp of an order, on average), or those
        of all ranks of a silo."""
        if regime in ("pma", "asp"):
            return self.batch
        silos = len({board.silo for board in self.board}) if regime == "hfl-ddp" else 1
        return self.global_batch or max(1, min(self.budget, self.batch * len(self.board)) // silos)


def shipped() -> tuple[str, ...]:
    """Names of the fleets that come with the package."""
    folder = resources.files("coordinator") / "fleets"
    return tuple(sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")))


def read(name: str) -> FleetFile:
    """A shipped fleet by name, else a file. Raises FleetError."""
    try:
        if name in shipped():
            data = (resources.files("coordinator") / "fleets" / f"{name}.toml").read_bytes()
        else:
            data = Path(name).read_bytes()
    except OSError as error:
        raise FleetError(
            f"{name}: {error.strerror or error}; give a fleet file or one of {', '.join(shipped())}"
        ) from None
    return parse(data, name)


def parse(data: bytes, where: str) -> FleetFile:
    """The fleet in the bytes of a file. Raises FleetError naming `where` and what is wrong."""
    try:
        raw: Any = msgspec.toml.decode(data)
    except ValueError as error:
        raise FleetError(f"{where} is not TOML: {error}") from None
    try:
        fleet = msgspec.convert(raw, FleetFile)
    except msgspec.ValidationError as error:
        raise FleetError(f"{where}: {_named(str(error), raw)}") from None
    ids = [board.id for board in fleet.board]
    twice = sorted({board for board in ids if ids.count(board) > 1})
    if twice:
        raise FleetError(f"{where}: board {', '.join(twice)} stands there more than once")
    return fleet


def _named(error: str, raw: Any) -> str:
    # "$.board[3].x" says little to a person: the board's own id is put beside it.
    start = error.find("$.board[")
    if start < 0:
        return error
    number = int(error[start + 8 : error.index("]", start)])
    board = raw["board"][number]
    return f"board {board.get('id', number + 1)}: {error}" if isinstance(board, dict) else error
