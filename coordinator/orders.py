"""The order that a board gets for its share. Pure."""

from coordinator.run import RunState
from coordinator.silos import Silo
from edged.messages import Attend, Order, Piece, Train


def attend(state: RunState, order: str, reason: str = "no samples in this round") -> Order:
    """Nothing to train: the board stays and reports what its waiting costs."""
    return Attend(order, state.run, state.round, state.boot, state.term, reason)


def train(
    state: RunState,
    silo: Silo,
    order: str,
    pieces: tuple[Piece, ...],
    samples: int | None = None,
    *,
    limit_seconds: float,
) -> Train:
    """Train all of the pieces, or with other ranks so many samples of them."""
    s = state.settings
    assert s.batch is not None
    assert s.learning_rate is not None
    assert silo.fingerprint is not None
    return Train(
        order=order,
        run=state.run,
        round=state.round,
        attempt=attempt_of(order),
        boot=state.boot,
        term=state.term,
        regime=s.regime,
        task=s.task,
        task_hash=state.task_hash,
        pool=silo.pool,
        fingerprint=silo.fingerprint,
        pieces=pieces,
        samples=sum(piece.samples for piece in pieces) if samples is None else samples,
        batch=s.batch,
        learning_rate=s.learning_rate,
        model=state.version,
        manifest=state.manifest,
        seed=silo.seed,
        pool_samples=silo.queue.size,
        options=s.options,
        optimizer=s.optimizer or "sgd",
        momentum=s.momentum or 0.0,
        weight_decay=s.weight_decay or 0.0,
        # With gradients over all boards the state always goes on: it travels with the model.
        optimizer_state="average" if s.regime == "ddp" else s.optimizer_state,
        deadline_seconds=limit_seconds,
        energy_window=s.energy_window,
    )


def attempt_of(order: str) -> int:
    """The attempt in an order's id."""
    return int(order.rpartition(".")[2])
