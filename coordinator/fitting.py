"""A fleet file out of a run's readings, every fitted figure with its uncertainty in a comment. Pure."""

import json
import math
from collections.abc import Iterator

from coordinator.beliefs import Belief, beliefs, expected
from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.fleetfile import FleetFile
from coordinator.situation import Situation


def fitted(found: Situation) -> FleetFile:
    """The most likely fleet with the run's own work."""
    boards = tuple(expected(belief) for belief in beliefs(found.evidence))
    return FleetFile(
        name=found.run,
        board=boards,
        about=f"fitted from run {found.run}",
        budget=found.budget,
        batch=found.batch if found.regime == "pma" else max(1, found.batch // len(boards)),
        global_batch=None if found.regime == "pma" else found.batch,
        regime="pma" if found.regime == "pma" else "ddp",
        policy=found.policy,
        policy_options=found.options,
        w_e=found.w_e,
        fixed_cost=found.settings.fixed_cost,
    )


def toml(found: Situation) -> str:
    """The same as the text of a fleet file."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Situation) -> Iterator[str]:
    fleet, believed = fitted(found), beliefs(found.evidence)
    yield f"# Fitted from the readings of run {found.run}; +- is one standard deviation."
    yield f"name = {json.dumps(fleet.name)}"
    yield f"about = {json.dumps(fleet.about)}"
    yield f"budget = {fleet.budget}"
    yield f"batch = {fleet.batch}"
    if fleet.global_batch is not None:
        yield f'regime = "{fleet.regime}"\nglobal_batch = {fleet.global_batch}'
    yield f"policy = {json.dumps(fleet.policy)}"
    yield f"w_e = {fleet.w_e!r}"
    options = ", ".join(
        f"{key} = {json.dumps(value)}" for key, value in fleet.policy_options.items() if value is not None
    )
    if options:
        yield f"policy_options = {{ {options} }}"
    if fleet.fixed_cost != "none":
        yield f'fixed_cost = "{fleet.fixed_cost}"'
    for belief, board in zip(believed, fleet.board, strict=True):
        yield ""
        yield from _board(belief, board)


def _board(belief: Belief, board: VirtualBoard) -> Iterator[str]:
    line = belief.line
    root = math.sqrt(line.count)
    shares = f"{belief.least_share} to {belief.most_share} samples"
    yield "[[board]]"
    yield f"id = {json.dumps(board.id)}"
    speed = 100 * belief.time_noise / root
    if line.covariance is not None and line.fixed_seconds > 0:
        speed = 100 * belief.time_noise * math.sqrt(line.covariance[2]) / line.seconds_per_sample
    yield (
        f"samples_per_second = {board.samples_per_second:.6g} # +- {speed:.2g} %, "
        f"{line.count} readings of {shares}"
    )
    if line.fixed_seconds > 0 and line.covariance is not None:
        off = belief.time_noise * math.sqrt(line.covariance[0])
        yield f"fixed_seconds = {board.fixed_seconds:.6g} # +- {off:.2g} s"
    elif line.covariance is None:
        yield "# fixed_seconds: its share never varied enough to tell; 0"
    if not board.metered:
        yield "active_watts = 0.0 # no meter\nwaiting_watts = 0.0 # no meter\nmetered = false"
    else:
        count = max(1, belief.watts_freedom - 2)
        off = 100 * math.hypot(belief.watts_noise / math.sqrt(count), belief.meter_uncertainty)
        yield f"active_watts = {board.active_watts:.6g} # {belief.basis or 'unknown basis'}, +- {off:.2g} %"
        off = 100 * math.hypot(belief.waiting_spread, belief.meter_uncertainty)
        source = "" if belief.waiting_told else ", never seen waiting: by the other boards' ratio"
        yield f"waiting_watts = {board.waiting_watts:.6g} # +- {off:.2g} %{source}"
        if board.communication_watts is not None:
            yield f"communication_watts = {board.communication_watts:.6g}"
    if board.upload_seconds:
        yield f"upload_seconds = {board.upload_seconds:.6g} # with download and overhead, median"
    yield f"noise = {board.noise:.6f}"
    if board.metered:
        yield f"watts_noise = {board.watts_noise or 0.0:.6f}"
    if board.cores:
        yield f"cores = {board.cores:g}"
