"""The order that a board gets for its share. Pure."""

from coordinator.run import RunState
from edged.messages import Attend, Order, Piece, Train


def message(state: RunState, order: str, pieces: tuple[Piece, ...], limit_seconds: float) -> Order:
    """`train` for a share, `attend` for none (the board stays and reports what its waiting costs)."""
    s = state.settings
    samples = sum(piece.samples for piece in pieces)
    if not samples:
        return Attend(order, state.run, state.round, state.boot, state.term, "no samples in this round")
    assert s.batch is not None
    assert s.learning_rate is not None
    assert state.fingerprint is not None
    return Train(
        order=order,
        run=state.run,
        round=state.round,
        attempt=1,
        boot=state.boot,
        term=state.term,
        regime=s.regime,
        task=s.task,
        task_hash=state.task_hash,
        pool=s.pool,
        fingerprint=state.fingerprint,
        pieces=pieces,
        samples=samples,
        batch=s.batch,
        learning_rate=s.learning_rate,
        model=state.version,
        manifest=state.manifest,
        seed=s.seed,
        pool_samples=state.queue.size,
        options=s.options,
        optimizer=s.optimizer or "sgd",
        momentum=s.momentum or 0.0,
        weight_decay=s.weight_decay or 0.0,
        optimizer_state=s.optimizer_state,
        deadline_seconds=limit_seconds,
        energy_window=s.energy_window,
    )
