"""Which boards are there, and which may take part in a run, with the reason in words. Pure.

The newest (boot, conn) of a board counts; wills and births of older ones are ignored (ARCHITECTURE 7.2).
A boot that comes back after another one had taken its id shows two boards with one id.
"""

from collections.abc import Collection
from typing import Literal

from msgspec import Struct, field

from coordinator.idling import Idling
from edged.messages import PROTOCOL_VERSIONS, Birth, State

DUPLICATE_SECONDS = 150.0
"""How long an id stays barred after its last sign of two boards (boards back off for up to 60 s)."""

Change = Literal["new", "restarted", "back", "updated", "lost", "closed", "duplicate", "ignored"]


class Wanted(Struct, frozen=True):
    """What a board must have to take part in a run."""

    task: str
    task_hash: str
    pool: str
    fingerprint: str | None


class Presence(Struct):
    """What is known of one board id."""

    birth: Birth
    state: State | None = None
    heard_seconds: float = 0.0
    former: dict[str, str] = {}
    """Boots that had this id before: boot -> host and address."""
    barred_until: float = 0.0
    rivals: tuple[str, ...] = ()
    skew_seconds: float | None = None
    idling: Idling = field(default_factory=Idling)


class Fleet:
    """All boards heard of since the process began. Not stored: retained births bring it back."""

    def __init__(self) -> None:
        self.boards: dict[str, Presence] = {}
        self._connected: set[str] = set()
        self.last_birth_seconds = 0.0

    def hear(self, birth: Birth, now: float) -> Change:
        """Take in a birth, will or farewell, and tell what it changed."""
        change = self._hear(birth, now)
        if change != "ignored" and birth.link in ("up", "duplicate"):
            self._connected.add(birth.board)
        elif change != "ignored":
            self._connected.discard(birth.board)
        return change

    def forget(self, board: str) -> None:
        """Know nothing of the board any more."""
        self.boards.pop(board, None)
        self._connected.discard(board)

    def _hear(self, birth: Birth, now: float) -> Change:
        seen = self.boards.get(birth.board)
        if seen is None:
            self.boards[birth.board] = Presence(birth, heard_seconds=now)
            self.last_birth_seconds = now
            return "new" if birth.link == "up" else "duplicate" if birth.link == "duplicate" else "lost"
        if birth.boot != seen.birth.boot:
            return self._another_process(seen, birth, now)
        if birth.conn < seen.birth.conn:
            return "ignored"
        before, seen.birth, seen.heard_seconds = seen.birth, birth, now
        if birth.link == "duplicate":
            self._bar(seen, (_place(birth), birth.rival), now)
            return "duplicate"
        if birth.link in ("lost", "closed"):
            return "closed" if birth.link == "closed" else "lost"
        self.last_birth_seconds = now
        return "updated" if before.link == "up" and before.conn == birth.conn else "back"

    def _another_process(self, seen: Presence, birth: Birth, now: float) -> Change:
        if birth.link in ("lost", "closed"):
            return "ignored"
        old = seen.birth
        back_again = birth.boot in seen.former
        seen.former[old.boot] = _place(old)
        if len(seen.former) > 16:
            seen.former.pop(next(iter(seen.former)))
        seen.birth, seen.state, seen.heard_seconds = birth, None, now
        self.last_birth_seconds = now
        if back_again or birth.link == "duplicate":
            self._bar(seen, (_place(old), _place(birth)), now)
            return "duplicate"
        return "restarted"

    def _bar(self, seen: Presence, places: tuple[str, ...], now: float) -> None:
        seen.barred_until = now + DUPLICATE_SECONDS
        seen.rivals = tuple(sorted({*seen.rivals, *(place for place in places if place)}))

    def lack(self, board: str, wanted: Wanted, drained: bool, now: float) -> str:
        """Why the board cannot take part now; empty when it can."""
        seen = self.boards.get(board)
        if seen is None:
            return "was never heard of"
        birth = seen.birth
        pool = birth.pools.get(wanted.pool)
        if now < seen.barred_until:
            both = " and ".join(seen.rivals or ("another board",))
            return (
                f"duplicate id: {both} both use it; give one of them another id, or end it: "
                f"this clears by itself {DUPLICATE_SECONDS:.0f} s later"
            )
        if birth.link != "up":
            return (
                "link lost" if birth.link == "lost" else "stopped" if birth.link == "closed" else birth.link
            )
        if drained:
            return "drained by the operator"
        if not set(PROTOCOL_VERSIONS) & set(birth.protocols):
            return f"speaks protocol {birth.protocols}, not {PROTOCOL_VERSIONS}"
        if wanted.task not in birth.tasks:
            why = birth.task_errors.get(wanted.task)
            return f"task {wanted.task}: {why}" if why else f"has no task {wanted.task}"
        if birth.tasks[wanted.task] != wanted.task_hash:
            return f"its source of task {wanted.task} differs from the coordinator's"
        if pool is None:
            has = f" (it has {', '.join(sorted(birth.pools))})" if birth.pools else ""
            return f"has no pool {wanted.pool}{has}"
        if pool.error:
            return f"pool {wanted.pool}: {pool.error}"
        if wanted.fingerprint is not None and pool.fingerprint != wanted.fingerprint:
            return f"holds other data as pool {wanted.pool} ({pool.samples} samples)"
        return ""

    def fingerprint(self, pool: str, boards: Collection[str] | None = None) -> tuple[str, int] | None:
        """The copy of a pool that most boards (of these) hold, with its samples; None where nobody has it."""
        votes: dict[tuple[str, int], int] = {}
        for name, seen in self.boards.items():
            if boards is not None and name not in boards:
                continue
            offer = seen.birth.pools.get(pool)
            if offer is not None and not offer.error:
                key = (offer.fingerprint, offer.samples)
                votes[key] = votes.get(key, 0) + 1
        return max(sorted(votes), key=lambda key: votes[key]) if votes else None

    @property
    def all_links_down(self) -> bool:
        """True while boards are known and none is connected."""
        return bool(self.boards) and not self._connected


def _place(birth: Birth) -> str:
    return f"{birth.host or '?'} ({birth.address or 'address unknown'})"
