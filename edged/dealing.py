"""How a round of synchronous gradients is dealt by step: who trains which places in which step. Pure.

Step s owns the next B_s places of the round's pieces, cut among the ranks; so the set of samples in every
step is the same whatever the shares are (ARCHITECTURE 5, ALGORITHMS 1.5).
"""

import hashlib
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from edged.groups import Rendezvous
from edged.messages import Piece, Train


def steps_for(budget: int, batch: int) -> int:
    """S = ceil(N / B); chosen once and kept over policies, so that all make the same optimizer steps."""
    if batch < 1:
        raise ValueError(f"the global batch must be at least 1 sample, not {batch}")
    return -(-budget // batch)


def schedule(shares: Sequence[int], steps: int) -> list[list[int]]:
    """b[i][s]: rank i's samples in step s. Row i adds up to shares[i], columns differ by at most one sample.

    Each rank's remainder goes to consecutive steps, starting where the previous rank stopped, modulo S.
    A share below `steps` would leave steps without a sample of that rank and is refused by ValueError.
    """
    if steps < 1:
        raise ValueError(f"a round needs at least one step, not {steps}")
    rows: list[list[int]] = []
    start = 0
    for rank, samples in enumerate(shares):
        if samples < steps:
            raise ValueError(f"rank {rank}: {samples} samples do not reach over {steps} steps")
        base, extra = divmod(samples, steps)
        row = [base] * steps
        for k in range(extra):
            row[(start + k) % steps] += 1
        start = (start + extra) % steps
        rows.append(row)
    return rows


def step_sizes(samples: int, steps: int) -> list[int]:
    """B_s of every step: what the columns of any `schedule` of so many samples add up to."""
    base, extra = divmod(samples, steps)
    return [base + (step < extra) for step in range(steps)]


def most_in_a_step(order: Train) -> int:
    """Most samples that the order's rank may get in one step: its largest batch, or where ranks change their
    batches on the way all but one for each of the others."""
    group = order.rendezvous
    if group is None:
        return order.batch
    if group.stepwise is not None:
        return max(1, max(step_sizes(sum(group.shares), group.steps)) - (group.world - 1))
    return max(order.batches or (1,))


def cut_evenly(size: int, most: int | None) -> list[int]:
    """A batch in as few micro-batches of at most `most` samples as can be, of sizes that differ by one."""
    parts = 1 if most is None else -(-size // most)
    base, extra = divmod(size, max(1, parts))
    return [base + (part < extra) for part in range(parts)]


def offset(sizes: Sequence[int], rank: int) -> int:
    """Where a rank's places begin within a step of these sizes by rank."""
    return sum(sizes[:rank])


def dealt(pieces: Sequence[Piece], rows: Sequence[Sequence[int]], rank: int) -> tuple[Piece, ...]:
    """The places that are one rank's by this schedule, step by step; neighbours are one piece."""
    found: list[Piece] = []
    starts = [0, *accumulate(sum(column) for column in zip(*rows, strict=True))]
    for step, column in enumerate(zip(*rows, strict=True)):
        first = starts[step] + offset(column, rank)
        for piece in cut(pieces, first, first + column[rank]):
            last = found[-1] if found else None
            if last is not None and last.epoch == piece.epoch and last.stop == piece.start:
                found[-1] = Piece(piece.epoch, last.start, piece.stop)
            else:
                found.append(piece)
    return tuple(found)


def cut(pieces: Sequence[Piece], start: int, stop: int) -> list[Piece]:
    """Places start..stop, counted through the pieces in their order."""
    found, passed = [], 0
    for piece in pieces:
        low, high = max(start - passed, 0), min(stop - passed, piece.samples)
        if low < high:
            found.append(Piece(piece.epoch, piece.start + low, piece.start + high))
        passed += piece.samples
    return found


def plan_of(order: Train) -> str:
    """SHA-256 of what must be equal on every rank of the order: samples, steps, model, how it is trained."""
    group = order.rendezvous
    if group is None:
        raise ValueError(f"{order.order}: an order of regime {order.regime} names no ranks")
    shared = (
        [order.run, order.round, order.attempt, order.regime, order.task, order.task_hash, order.options],
        [order.fingerprint, order.pool_samples, order.seed, order.pieces, order.model, order.manifest.sha256],
        [order.learning_rate, order.optimizer, order.momentum, order.weight_decay, order.optimizer_state],
        [group.silo, group.boards, group.shares, group.steps, group.stepwise],
    )
    return hashlib.sha256(msgspec.json.encode(shared, order="sorted")).hexdigest()


def fault(order: Train) -> str:
    """What is wrong with an order of a group as it stands, "" if nothing: its parts must fit together."""
    group = order.rendezvous
    if group is None:
        return f"an order of regime {order.regime} names no ranks"
    pieces = sum(piece.samples for piece in order.pieces)
    if not 0 <= group.rank < group.world or len(group.shares) != group.world:
        return f"rank {group.rank} of {group.world} boards with {len(group.shares)} shares"
    if pieces != sum(group.shares) or order.samples != group.shares[group.rank]:
        return (
            f"its pieces hold {pieces} samples, its shares {sum(group.shares)}, "
            f"its own is {group.shares[group.rank]}, the order says {order.samples}"
        )
    try:
        rows = schedule(group.shares, group.steps)
    except ValueError as error:
        return str(error)
    if order.batches is None or list(order.batches) != rows[group.rank]:
        return "its batches are not those of its shares and steps"
    plan = plan_of(order)
    if plan != group.plan:
        return f"its plan hash is {group.plan[:12]}, by its contents it would be {plan[:12]}"
    return ""


def with_plan(order: Train, group: Rendezvous) -> Train:
    """The order with its ranks, its own row of batches, and the hash of the plan."""
    row = tuple(schedule(group.shares, group.steps)[group.rank])
    order = msgspec.structs.replace(order, rendezvous=group, batches=row)
    return msgspec.structs.replace(order, rendezvous=msgspec.structs.replace(group, plan=plan_of(order)))
