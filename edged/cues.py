"""What an event means to a board at a moment: (board, event, now) -> cue, changed facts, reason.

Pure. Every guard of the state machine stands here; what follows from a cue stands in the table of `state`.
"""

from typing import Any

from edged.board import FIRST_WANT_SECONDS, Board, Cue
from edged.events import (
    Alive,
    Began,
    Broke,
    Chunks,
    Described,
    Ended,
    Event,
    Foreign,
    Inventory,
    Leave,
    LinkDown,
    LinkUp,
    Met,
    ModelFailed,
    ModelReady,
    Mustered,
    Phase,
    Progress,
    Tick,
)
from edged.messages import Abort, Accepted, Attend, Grant, Join, Refused, StandBy, Train
from edged.orders import fault, misaddressed

HEARTBEAT_SECONDS = 10.0
PROGRESS_SECONDS = 2.0
CHUNKS_BETWEEN_STATES = 16
LONGEST_WANT_SECONDS = 32.0
ALONE_SECONDS = 120.0
PAST_ORDERS_KEPT = 64


Reading = tuple[Cue, dict[str, Any], str]


def read(board: Board, event: Event, now: float) -> Reading:
    """The cue, the fields that the event changes by itself, and the reason in words ("": the cue's own)."""
    if isinstance(event, Train | Join | Attend | Abort | Accepted | Refused | Grant | StandBy):
        return _read_order(board, event, now)
    if isinstance(event, LinkUp):
        return Cue.UP, {"up": True, "connection": event.connection, "quiet_since": now, "rival_at": now}, ""
    if isinstance(event, LinkDown):
        return Cue.DOWN, {"up": False}, ""
    if isinstance(event, Inventory):
        return Cue.STOCK, {"can": event}, ""
    if isinstance(event, Leave):
        return Cue.LEAVE, _gone(board, event.reason), event.reason
    if isinstance(event, Foreign):
        return _read_foreign(board, event, now)
    if isinstance(event, Tick):
        return _read_tick(board, now)
    if isinstance(event, Chunks | ModelReady | ModelFailed):
        return _read_model(board, event, now)
    return _read_child(board, event, now)


def _read_order(
    board: Board, event: Train | Join | Attend | Abort | Accepted | Refused | Grant | StandBy, now: float
) -> Reading:
    what = "stand_by" if isinstance(event, StandBy) else event.order
    if event.term < board.term:
        return _stray(
            f"{what}: term {event.term} is older than {board.term}, another coordinator has taken over"
        )
    term = {"term": event.term}
    if isinstance(event, StandBy):
        if board.phase is Phase.IDLE:
            return Cue.AGAIN, term | {"reason": event.reason}, event.reason
        return Cue.STAND_BY, term | _fresh(board, None, event.reason), event.reason
    if isinstance(event, Train | Attend):
        return _read_new_order(board, event, now)
    if event.order != board.order_id:
        return _stray(f"{event.order} is not the active order")
    if isinstance(event, Join):
        if board.phase in (Phase.UPLOADING, Phase.WAITING):
            return Cue.AGAIN, term, ""  # a coordinator that was away when the report went out
        if board.phase is not Phase.TRAINING or board.ready is None:
            return _stray(f"{event.order} does not wait for other ranks")
        if board.join is not None:
            return Cue.HEARTBEAT, term, "a join that is known already"
        return Cue.JOIN, term | {"join": event, "alive_at": now}, ""
    if isinstance(event, Grant):
        return Cue.GRANT, term, ""
    if isinstance(event, Accepted):
        return Cue.ACCEPTED, term, ""
    cue = Cue.ABORT if isinstance(event, Abort) else Cue.REFUSED
    return cue, term | {"computing": False, "reason": event.reason}, event.reason


def _read_new_order(board: Board, order: Train | Attend, now: float) -> Reading:
    wrong = misaddressed(order.order, order.run, order.round, board.board)
    if wrong:
        return _stray(wrong)
    if board.rival:
        return _stray(f"{order.order}: duplicate id, no orders until the other board is gone")
    if board.can is None:
        return _stray(f"{order.order}: still taking stock of tasks and pools")
    term = {"term": order.term}
    if order.order == board.order_id or order.order in board.past:
        return Cue.AGAIN, term, ""
    changes = term | _fresh(board, order, "") | {"alive_at": now, "quiet_since": now}
    if isinstance(order, Attend):
        return Cue.ATTEND, changes | {"reason": order.reason}, order.reason
    unfit = fault(order, board.can)
    if unfit:
        return Cue.UNFIT, changes | {"abandoned": order.order, "reason": unfit}, unfit
    held = (order.model, order.manifest.sha256) in board.models
    return (Cue.TRAIN if held else Cue.FETCH), changes, ""


def _fresh(board: Board, order: Train | Attend | None, reason: str) -> dict[str, Any]:
    """What a change of order does to the fields that are about the order."""
    past = (*board.past, board.order_id)[-PAST_ORDERS_KEPT:] if board.order else board.past
    return {
        "order": order,
        "past": past,
        "chunks_held": 0,
        "samples_done": 0,
        "computing": False,
        "ready": None,
        "join": None,
        "joined": "",
        "mustering": False,
        "abandoned": None,
        "blames": None,
        "reason": reason,
        "patience": FIRST_WANT_SECONDS,
    }


def _read_foreign(board: Board, event: Foreign, now: float) -> Reading:
    """Whether somebody else lives under this id. A broker throws one of two such clients out and keeps
    the will of the other, so mostly all that is seen is a retained word at the own return. One alone may
    be the process before this one, or what a broker's older disk remembers; the same boot with a later
    connection is neither."""
    seen = event.birth
    if seen is None:
        old = event.retained and board.connection < 1
        return (Cue.NOTHING if old else Cue.OVERWRITTEN), {}, ""
    if seen.boot == board.boot:
        return Cue.NOTHING, {}, ""
    if event.retained:
        before, changes = board.sighted, {"sighted": (seen.boot, seen.conn)}
        came_back = before is not None and before[0] == seen.boot and before[1] < seen.conn
        if seen.link == "closed" or not (came_back or board.rival):
            return Cue.NOTHING, changes, ""
    elif seen.link in {"lost", "closed"}:
        return Cue.OVERWRITTEN, {}, ""
    else:
        changes = {"sighted": (seen.boot, seen.conn)}
    if board.rival:
        return Cue.RIVAL_AGAIN, {**changes, "rival": seen, "rival_at": now}, ""
    place = f"{seen.host or 'a nameless host'} at {seen.address or 'an unknown address'}"
    way_out = f"give one another id, or end it: this clears by itself after {ALONE_SECONDS:.0f} s alone"
    reason = f"duplicate id: {board.board} is also {place}; {way_out}"
    return Cue.RIVAL, {**_gone(board, reason), **changes, "rival": seen, "rival_at": now}, reason


def _read_tick(board: Board, now: float) -> Reading:
    if board.phase is Phase.TRAINING and isinstance(board.order, Train):
        limit = board.order.deadline_seconds
        if limit and now - board.alive_at >= limit:
            reason = f"the training gave no sign for {limit:.0f} s, the order's deadline"
            return Cue.HUNG, _abandon(board, reason), reason
    if board.rival and board.up and now - board.rival_at >= ALONE_SECONDS:
        return Cue.ALONE, {"rival": None, "abandoned": None, "reason": ""}, ""
    if board.phase is Phase.FETCHING and board.up and now - board.quiet_since >= board.patience:
        patience = min(2 * board.patience, LONGEST_WANT_SECONDS)
        return Cue.SILENCE, {"quiet_since": now, "patience": patience}, ""
    moved = board.samples_done != board.said_samples
    if board.up and now - board.said_at >= (PROGRESS_SECONDS if moved else HEARTBEAT_SECONDS):
        return Cue.HEARTBEAT, {}, ""
    return Cue.NOTHING, {}, ""


def _read_model(board: Board, event: Chunks | ModelReady | ModelFailed, now: float) -> Reading:
    order = board.order
    if board.phase is not Phase.FETCHING or not isinstance(order, Train) or event.version != order.model:
        return Cue.NOTHING, {}, ""
    if isinstance(event, Chunks):
        # The wants start over with each new chunk: what is missing is on its way.
        progress = {"chunks_held": event.held, "quiet_since": now, "patience": FIRST_WANT_SECONDS}
        return (Cue.CHUNK if event.held % CHUNKS_BETWEEN_STATES else Cue.CHUNKS), progress, ""
    if isinstance(event, ModelFailed):
        return Cue.MODEL_FAILED, _abandon(board, event.reason), event.reason
    kept = tuple(model for model in board.models if model[0] != event.version)
    changes: dict[str, Any] = {
        "models": (*kept, (event.version, event.sha256)),
        "chunks_held": order.manifest.chunks,
        "alive_at": now,
    }
    return Cue.MODEL_READY, changes, ""


def _read_child(
    board: Board, event: Alive | Mustered | Met | Began | Progress | Ended | Described | Broke, now: float
) -> Reading:
    if event.order != board.order_id or board.phase is not Phase.TRAINING:
        return Cue.NOTHING, {}, ""  # the last words of a training that was called off
    if isinstance(event, Mustered):
        return Cue.MUSTERED, {"ready": event.readiness, "mustering": True, "alive_at": now}, ""
    if isinstance(event, Met):
        return Cue.MET, {"joined": event.group, "alive_at": now}, ""
    if isinstance(event, Began):
        return Cue.BEGAN, {"computing": True, "mustering": False, "alive_at": now}, ""
    if isinstance(event, Progress):
        return Cue.ALIVE, {"samples_done": event.samples, "alive_at": now}, ""
    if isinstance(event, Ended):
        return Cue.ENDED, {"computing": False, "samples_done": event.samples, "alive_at": now}, ""
    if isinstance(event, Described):
        return Cue.DESCRIBED, {}, ""
    if isinstance(event, Broke):
        return Cue.BROKE, _abandon(board, event.reason) | {"blames": event.blames}, event.reason
    return Cue.ALIVE, {"alive_at": now}, ""


def _gone(board: Board, reason: str) -> dict[str, Any]:
    """No order any more, and what was not finished is abandoned."""
    unfinished = board.phase in {Phase.FETCHING, Phase.TRAINING, Phase.UPLOADING}
    return _fresh(board, None, reason) | {"abandoned": board.order_id if unfinished else None}


def _abandon(board: Board, reason: str) -> dict[str, Any]:
    return {"abandoned": board.order_id, "reason": reason, "computing": False}


def _stray(reason: str) -> Reading:
    return Cue.STRAY, {"reason": reason}, reason
