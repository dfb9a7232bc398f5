"""Whether a board can carry out an order: every fault of the order itself, in words.

Pure. Whether the order comes at the right time is the state machine's business.
"""

from edged import dealing
from edged.events import Inventory
from edged.messages import Attend, Train

GRAINS = ("gradient", "model")
"""Of an order of regime asp: what its update is."""
SYNCHRONOUS = ("ddp", "hfl-ddp")
"""Regimes whose orders name ranks."""
OPTIMIZERS = ("sgd", "adam", "adamw")
OPTIMIZER_STATES = ("reset", "keep", "average")


def round_name(regime: str) -> str:
    """What a round is called where people read of it: asynchronous updates have periods instead."""
    return "period" if regime == "asp" else "round"


def described(order: Train | Attend) -> str:
    """An order on one line: `round 3 of mnist, 80 samples`."""
    if isinstance(order, Attend):
        return order.run
    return f"{round_name(order.regime)} {order.round} of {order.run}, {order.samples} samples"


def board_of(order: str) -> str:
    """The board that an order id names."""
    return order.split(".")[2]


def misaddressed(order: str, run: str | None, round_number: int | None, board: str) -> str:
    """Why an order of this id is not for this board, "" if it is. Run and round are what it claims beside."""
    named_run, named_round, named_board, _ = order.split(".")
    if named_board != board:
        return f"order {order} is for board {named_board}, this is {board}"
    if run is not None and (named_run, int(named_round)) != (run, round_number):
        return f"order {order} claims to be of run {run}, round {round_number}"
    return ""


def fault(order: Train, can: Inventory) -> str:
    """Why this board cannot train the order, "" if it can."""
    dealt = sum(piece.samples for piece in order.pieces)
    if order.regime not in can.regimes:
        return f"regime {order.regime!r} is not installed here; there are: {_listed(can.regimes)}"
    if order.task not in can.tasks:
        return f"task {order.task!r} is not installed here; there are: {_listed(can.tasks)}"
    if can.tasks[order.task] != order.task_hash:
        return _differs(
            f"task {order.task!r} here is not the coordinator's", can.tasks[order.task], order.task_hash
        )
    if order.pool not in can.pools:
        return f"pool {order.pool!r} is not on this board; there are: {_listed(can.pools)}"
    if can.pools[order.pool] != order.fingerprint:
        return _differs(
            f"pool {order.pool!r} here holds other data", can.pools[order.pool], order.fingerprint
        )
    if order.rendezvous is not None or order.regime in SYNCHRONOUS:
        wrong = dealing.fault(order)
        if wrong:
            return wrong
    elif any(piece.samples < 1 for piece in order.pieces) or dealt != order.samples:
        return f"its pieces hold {dealt} samples, the order says {order.samples}"
    if any(piece.stop > order.pool_samples for piece in order.pieces):
        return f"a piece lies outside the pool's {order.pool_samples} samples"
    if order.regime == "asp" and order.grain not in GRAINS:
        return f"grain {order.grain!r} is unknown; there are: {_listed(GRAINS)}"
    if order.optimizer not in OPTIMIZERS:
        return f"optimizer {order.optimizer!r} is unknown; there are: {_listed(OPTIMIZERS)}"
    if order.optimizer_state not in OPTIMIZER_STATES:
        return f"optimizer_state {order.optimizer_state!r} is unknown; there are: {_listed(OPTIMIZER_STATES)}"
    return ""


def _listed(names: object) -> str:
    return ", ".join(sorted(names)) or "none"  # type: ignore[call-overload]


def _differs(what: str, here: str, wanted: str) -> str:
    return f"{what}: {here[:12] or 'nothing'}, wanted {wanted[:12] or 'nothing'}"
