"""Known boards: published watts and speeds with their sources, and which board this is. Measures nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

TABLE = Path(__file__).with_name("boards.toml")
REFERENCE = "rpi4"
SIBLINGS = ("Plus", "Max", "Pro", "Lite", "Ultra")  # after a board's name they make it another board

Positive = Annotated[float, Meta(gt=0)]


class BoardError(ValueError):
    """No such board, or a table that does not hold together; the text says what would."""


class Board(Struct, frozen=True, forbid_unknown_fields=True):
    """One board. `scope` is where its watts were measured; a speed that was not published is None."""

    name: str
    scope: Literal["wall", "module"]
    idle_watts: Positive
    full_watts: Positive
    watts_source: str
    hpl_gigaflops: Positive | None = None
    hpl_source: str = ""
    sevenzip_mips: Positive | None = None
    sevenzip_source: str = ""
    models: tuple[str, ...] = ()
    processors: tuple[str, ...] = ()


class Speed(Struct, frozen=True):
    """Speed as a multiple of the Raspberry Pi 4's, always derived: `basis` names the benchmark."""

    relative: float
    basis: Literal["hpl", "7-zip"]
    source: str


class Boards(Struct, frozen=True):
    """The table, by id."""

    by_id: dict[str, Board]

    def find(self, board_id: str) -> Board:
        """Raises BoardError with the ids there are."""
        try:
            return self.by_id[board_id]
        except KeyError:
            known = ", ".join(sorted(self.by_id))
            raise BoardError(f"no board named {board_id!r} in the table; there are: {known}") from None

    def speed(self, board_id: str) -> Speed:
        """By HPL, which is nearest to training, where it was published for this processor; else by 7-zip."""
        board, reference = self.find(board_id), self.find(REFERENCE)
        if board.hpl_gigaflops is not None and reference.hpl_gigaflops is not None:
            source = f"derived: {board.hpl_source} over {reference.hpl_source}"
            return Speed(board.hpl_gigaflops / reference.hpl_gigaflops, "hpl", source)
        if board.sevenzip_mips is not None and reference.sevenzip_mips is not None:
            source = f"derived: {board.sevenzip_source} over {reference.sevenzip_source}"
            return Speed(board.sevenzip_mips / reference.sevenzip_mips, "7-zip", source)
        raise BoardError(f"no speed was published for {board_id}")

    def identify(self, root: Path = Path("/")) -> str | None:
        """The id of the board whose files lie below `root`; None for one that is not in the table.

        By the device tree's model, else the DMI product name, else the processor's name.
        """
        models = (
            _text(root / "proc/device-tree/model"),
            _text(root / "sys/firmware/devicetree/base/model"),
            _text(root / "sys/class/dmi/id/product_name"),
        )
        info = _text(root / "proc/cpuinfo")
        names = [
            line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")
        ]
        found = [
            (len(part), board_id)
            for board_id, board in self.by_id.items()
            for parts, said in ((board.models, models), (board.processors, names))
            for part in parts
            if any(_names(part, text) for text in said)
        ]
        return max(found)[1] if found else None


def load() -> Boards:
    """The shipped table. Raises BoardError where it is damaged."""
    try:
        boards = msgspec.toml.decode(TABLE.read_bytes(), type=dict[str, Board])
    except (msgspec.DecodeError, OSError) as error:
        raise BoardError(f"{TABLE.name}: {error}") from None
    return Boards(boards)


def emulated_options(board_id: str, board: Board) -> dict[str, object]:
    """The `[energy.emulated]` table that meters with this board's published watts."""
    return {
        "board": board_id,
        "wait_watts": board.idle_watts,
        "train_watts": board.full_watts,
        "scope": board.scope,
        "source": f"{board.name}: {board.watts_source}",
    }


def estimate_options(board: Board) -> dict[str, object]:
    """The `[energy.estimate]` table for a board that has no sensor and whose owner gave no figures."""
    return {
        "idle_watts": board.idle_watts,
        "full_watts": board.full_watts,
        "scope": board.scope,
        "source": f"published for {board.name}: {board.watts_source}",
    }


def _names(part: str, text: str) -> bool:
    """Whether a model's text names this board, and not a sibling with a longer name ("Orange Pi 5 Max")."""
    _, found, rest = text.partition(part)
    if not found or (rest and not rest[0].isspace()):
        return False
    return not rest.split() or rest.split()[0] not in SIBLINGS


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip("\0\n ")
    except OSError:
        return ""
