"""The board's state machine: (board, event, now) -> board, effects, reason.

Rules: what follows from what stands in TABLE and nowhere else; no clock, disk, network or torch here. An
event is first read as a cue (`cues`), then the table says what the cue leads to in the present phase. A pair
that is not in the table cannot happen, and says so. docs/board-states.md is drawn from the table.
"""

from msgspec import Struct
from msgspec.structs import replace

from edged.board import Board, Cue
from edged.cues import read
from edged.events import Act, Effect, Event, Phase
from edged.messages import Grant

MODELS_KEPT = 2


class Row(Struct, frozen=True):
    """What follows: the next phase and the acts, in order."""

    phase: Phase
    acts: tuple[Act, ...] = ()


class Step(Struct, frozen=True):
    """The answer to an event."""

    board: Board
    effects: tuple[Effect, ...]
    cue: Cue
    reason: str


class ImpossibleError(RuntimeError):
    """An event that cannot happen in this phase; the text names both."""


_IDLE, _FETCHING, _TRAINING, _UPLOADING, _WAITING = Phase

# What it takes to leave an order behind, and what a new situation begins with.
_LEAVE: dict[Phase, tuple[Act, ...]] = {
    _IDLE: (),
    _FETCHING: (Act.CLOSE,),
    _TRAINING: (Act.CANCEL, Act.LOSE, Act.CLOSE),
    _UPLOADING: (Act.DISCARD, Act.LOSE, Act.CLOSE),
    _WAITING: (Act.CLOSE,),
}
_ENTER: dict[Cue, Row] = {
    Cue.FETCH: Row(_FETCHING, (Act.OPEN, Act.FETCH, Act.SAY)),
    Cue.TRAIN: Row(_TRAINING, (Act.OPEN, Act.TRAIN, Act.SAY)),
    Cue.ATTEND: Row(_WAITING, (Act.OPEN, Act.SAY)),
    Cue.UNFIT: Row(_WAITING, (Act.OPEN, Act.SAY)),
    Cue.STAND_BY: Row(_IDLE, (Act.SAY,)),
    Cue.RIVAL: Row(_IDLE, (Act.BIRTH, Act.SAY)),
    Cue.LEAVE: Row(_IDLE, (Act.SAY,)),
}
_WHEREVER: dict[Cue, tuple[Act, ...]] = {
    Cue.STRAY: (Act.SAY,),
    Cue.UP: (Act.SAY,),
    Cue.DOWN: (),
    Cue.STOCK: (Act.BIRTH, Act.SAY),
    Cue.RIVAL_AGAIN: (),
    Cue.OVERWRITTEN: (Act.BIRTH,),
    Cue.ALONE: (Act.BIRTH, Act.SAY),
    Cue.HEARTBEAT: (Act.SAY,),
    Cue.NOTHING: (),
}
_END_TRAINING = Row(_WAITING, (Act.CANCEL, Act.LOSE, Act.SAY))
_END_UPLOAD = Row(_WAITING, (Act.DISCARD, Act.LOSE, Act.SAY))

TABLE: dict[tuple[Phase, Cue], Row] = {
    **{
        (phase, cue): Row(row.phase, _LEAVE[phase] + row.acts)
        for phase in Phase
        for cue, row in _ENTER.items()
    },
    **{(phase, cue): Row(phase, acts) for phase in Phase for cue, acts in _WHEREVER.items()},
    **{(phase, Cue.AGAIN): Row(phase, (Act.SAY, Act.CLOSED_AGAIN)) for phase in Phase},
    (_UPLOADING, Cue.AGAIN): Row(_UPLOADING, (Act.SAY, Act.TRAINED, Act.CLOSED_AGAIN)),
    (_FETCHING, Cue.CHUNK): Row(_FETCHING),
    (_FETCHING, Cue.CHUNKS): Row(_FETCHING, (Act.SAY,)),
    (_FETCHING, Cue.SILENCE): Row(_FETCHING, (Act.WANT,)),
    (_FETCHING, Cue.MODEL_READY): Row(_TRAINING, (Act.TRAIN, Act.SAY)),
    (_FETCHING, Cue.MODEL_FAILED): Row(_WAITING, (Act.SAY,)),
    (_FETCHING, Cue.ABORT): Row(_WAITING, (Act.SAY,)),
    (_FETCHING, Cue.REFUSED): Row(_WAITING, (Act.SAY,)),
    (_TRAINING, Cue.ALIVE): Row(_TRAINING),
    (_TRAINING, Cue.MUSTERED): Row(_TRAINING, (Act.SAY,)),
    (_TRAINING, Cue.JOIN): Row(_TRAINING, (Act.JOIN, Act.SAY)),
    (_TRAINING, Cue.MET): Row(_TRAINING, (Act.SAY,)),
    (_TRAINING, Cue.BEGAN): Row(_TRAINING),
    (_TRAINING, Cue.ENDED): Row(_TRAINING, (Act.DESCRIBE,)),
    (_TRAINING, Cue.DESCRIBED): Row(_UPLOADING, (Act.TRAINED, Act.SAY)),
    (_TRAINING, Cue.BROKE): Row(_WAITING, (Act.LOSE, Act.SAY)),
    (_TRAINING, Cue.HUNG): Row(_WAITING, (Act.KILL, Act.LOSE, Act.SAY)),
    (_TRAINING, Cue.ABORT): _END_TRAINING,
    (_TRAINING, Cue.REFUSED): _END_TRAINING,
    (_UPLOADING, Cue.GRANT): Row(_UPLOADING, (Act.UPLOAD,)),
    (_UPLOADING, Cue.ACCEPTED): Row(_WAITING, (Act.DISCARD, Act.SAY)),
    (_UPLOADING, Cue.ABORT): _END_UPLOAD,
    (_UPLOADING, Cue.REFUSED): _END_UPLOAD,
    (_WAITING, Cue.ABORT): Row(_WAITING, (Act.SAY,)),
    (_WAITING, Cue.REFUSED): Row(_WAITING, (Act.SAY,)),
    (_WAITING, Cue.ACCEPTED): Row(_WAITING, (Act.SAY,)),
    (_WAITING, Cue.GRANT): Row(_WAITING, (Act.SAY,)),
}


def step(board: Board, event: Event, now: float) -> Step:
    """What the board becomes and what is to be done. Raises ImpossibleError, naming phase and event."""
    cue, changes, reason = read(board, event, now)
    row = TABLE.get((board.phase, cue))
    if row is None:
        raise ImpossibleError(f"{type(event).__name__} ({cue.value}) cannot happen while {board.phase.value}")
    after = replace(board, phase=row.phase, **changes)
    effects = [Effect(act, board.order_id if act in _ABOUT_OLD else after.order_id) for act in row.acts]
    if Act.SAY in row.acts:
        after = replace(after, said_at=now, said_samples=after.samples_done)
    if isinstance(event, Grant):
        effects = [replace(effect, ranges=event.ranges, window=event.window) for effect in effects]
    if cue is Cue.MODEL_READY:
        effects += [Effect(Act.FORGET, version) for version, _ in after.models[:-MODELS_KEPT]]
        after = replace(after, models=after.models[-MODELS_KEPT:])
    return Step(after, tuple(effects), cue, reason or cue.value)


_ABOUT_OLD = {Act.CLOSE, Act.LOSE, Act.CANCEL, Act.KILL, Act.DISCARD}
