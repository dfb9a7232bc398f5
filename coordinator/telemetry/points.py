"""From what happens to the points that are written of it, one function a measurement. Pure; `schema` checks.

Joules of unlike bases are never added: a sum exists only where all rests on one basis and nothing lacks.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from coordinator.pushes import quantile
from coordinator.telemetry.schema import BASES, PARTS, Point, Value, point
from edged.messages import EnergyChannel, FleetState, Power

Row = Mapping[str, Any]


class Setting(Struct, frozen=True):
    """Where an event belongs: fleet, run and how it synchronises, and who decides shares."""

    fleet: str
    run: str = ""
    round: int | None = None
    regime: str = ""
    policy: str = ""

    @property
    def wide(self) -> dict[str, str]:
        """Tags of a measurement with one point for all boards."""
        return {"fleet": self.fleet, "run": self.run, "regime": self.regime, "policy": self.policy}


class Totals(Struct, frozen=True):
    """Of a run up to and with its newest round."""

    seconds: float = 0.0
    by_basis: dict[str, float] = {}
    complete: bool = True
    """False once a board trained without a joule being known."""

    @property
    def joules(self) -> float | None:
        """Of all boards; None where the bases differ, one lacks or none is known."""
        return next(iter(self.by_basis.values())) if self.complete and len(self.by_basis) == 1 else None

    def after(self, row: Row) -> "Totals":
        """With one more round."""
        by_basis = dict(self.by_basis)
        for basis, joules in row["compute_joules_by_basis"].items():
            by_basis[basis] = by_basis.get(basis, 0.0) + joules
        complete = self.complete and not row["joules_unknown_of"]
        return Totals(self.seconds + row["wall_seconds"], by_basis, complete)


def of_power(setting: Setting, power: Power, silo: str, channels: Sequence[EnergyChannel]) -> Iterable[Point]:
    """A point a channel; what is the whole board's stands with the headline channel."""
    known = {channel.id: channel for channel in channels}
    names = {*power.watts, *power.joules} or {power.headline}
    for name in sorted(names):
        channel, headline = known.get(name), name == power.headline
        tags = {
            "fleet": setting.fleet,
            "board": power.board,
            "silo": silo,
            "channel": name,
            "basis": (channel.basis if channel else "") or (power.basis if headline else ""),
            "scope": channel.scope if channel else "",
        }
        values: dict[str, Value | None] = {
            "watts": power.watts.get(name),
            "joules": power.joules.get(name),
            "headline": headline,
            "run": setting.run or None,
            "round": setting.round if setting.run else None,
        }
        if headline:
            values["temperature_celsius"] = power.temperature_celsius
            values["throttled"] = ",".join(power.throttled)
            values["sampler_cpu_seconds"] = power.sampler_cpu_seconds
        yield from _made("power", tags, values)


def of_board_round(setting: Setting, row: Row, silo: str) -> Iterable[Point]:
    """A board's part of a round, as it stood when the round closed."""
    samples, seconds, joules = row["samples"], row["seconds"], row["joules"]
    values: dict[str, Value | None] = {
        "run": row["run"],
        "flags": ",".join(row["flags"]),
        "seconds_per_sample": seconds / samples if seconds is not None and samples else None,
        "joules_per_sample": joules / samples
        if joules is not None and seconds is not None and samples
        else None,
        "seconds_per_sample_average": row["seconds_per_sample"],
        "joules_per_sample_average": row["joules_per_sample"],
        "joules_reason": row["joules_reason"] if joules is None else None,
    }
    same = "round samples status reason steps seconds joules uncertainty_joules coverage cost loss"
    for name in (*same.split(), "behind_pace_steps", "peak_memory_bytes"):
        values[name] = row[name]
    if "updates" in row:
        values |= _asynchronous(row)
    yield from _made("board_round", _board_tags(setting, row, silo), values)


def _asynchronous(row: Row) -> dict[str, Value | None]:
    """Updates of a period and their staleness in versions."""
    ages = row["staleness"]
    marks = (("staleness_least", 0.0), ("staleness_median", 0.5), ("staleness_most", 1.0))
    return {
        "updates": row["updates"],
        "updates_too_old": row["dropped"],
        **{name: quantile(ages, part) if ages else None for name, part in marks},
    }


def of_closed(setting: Setting, row: Row, silo: str) -> Iterable[Point]:
    """The whole parts of an order, known once it is over; joules of a part that did not occur are 0."""
    values: dict[str, Value | None] = {
        "run": row["run"],
        "round": row["round"],
        "flags": ",".join(row["flags"]),
    }
    for part in PARTS:
        values[f"{part}_seconds"] = row["parts"][part]["seconds"]
        values[f"{part}_joules"] = row["parts"][part]["joules"]
    yield from _made("board_round", _board_tags(setting, row, silo), values)


def of_round(
    setting: Setting, row: Row, boards: Sequence[Row], totals: Totals, predicted: Mapping[str, float | None]
) -> Iterable[Point]:
    """A round as a whole; `boards` are its board rows, `totals` include it."""
    by_basis = row["compute_joules_by_basis"]
    trained = [board for board in boards if board["seconds"] is not None]
    spread = [board["uncertainty_joules"] for board in trained]
    coverage = [board["coverage"] for board in trained]
    alike = len(by_basis) == 1 and not row["joules_unknown_of"]
    values: dict[str, Value | None] = {
        "boards": len(row["shares"]),
        "boards_reported": len(trained),
        "boards_without_joules": len(row["joules_unknown_of"]),
        "elapsed_seconds": totals.seconds,
        "joules": next(iter(by_basis.values())) if alike else None,
        "joules_in_all": totals.joules,
        "basis": ",".join(sorted(by_basis)),
        # Gains of sensors may err alike, so the bounds are added and not squared.
        "uncertainty_joules": sum(spread) if alike and spread and None not in spread else None,
        "coverage": sum(coverage) / len(coverage) if coverage and None not in coverage else None,
        "waiting_share": row["waiting_share"]
        if "waiting_share" in row
        else waiting_share([board["seconds"] for board in trained]),
        **{f"joules_{basis}": joules for basis, joules in by_basis.items() if basis in BASES},
        **predicted,
    }
    same = "round ordered accepted returned outstanding accepted_in_all makespan_seconds wall_seconds"
    for name in (*same.split(), "w_t", "w_e", "longest", "reason"):
        values[name] = row.get(name)
    yield from _made("round", {**setting.wide, "policy": row.get("policy", setting.policy)}, values)


def of_evaluation(setting: Setting, row: Row, totals: Totals | None) -> Iterable[Point]:
    """Held-out figures of a round's model, against the seconds and joules that it took to get there."""
    loss, accuracy = row.get("loss"), row.get("accuracy")
    values: dict[str, Value | None] = {
        "round": row["round"],
        "heldout_loss": loss if isinstance(loss, int | float) else None,
        "heldout_accuracy": accuracy if isinstance(accuracy, int | float) else None,
        "heldout_seconds": totals.seconds if totals else None,
        "heldout_joules": totals.joules if totals else None,
        "reason": f"not known: {row['error']}" if row.get("error") else None,
    }
    yield from _made("round", setting.wide, values)


def of_fleet(setting: Setting, state: FleetState, values: Mapping[str, Value | None]) -> Iterable[Point]:
    """What is going on; `values` are counts that the fleet's state does not have."""
    waits = [waiting.since_seconds for waiting in state.waiting]
    own: dict[str, Value | None] = {
        "round": state.round,
        "rounds": state.rounds,
        "waiting": len(state.waiting),
        "waits_for": ",".join(waiting.board for waiting in state.waiting),
        "longest_wait_seconds": max(waits) if waits else None,
        "w_t": state.w_t,
        "w_e": state.w_e,
        "phase": state.phase,
        "reason": state.reason,
    }
    yield from _made("fleet", setting.wide, {**own, **values})


def of_event(
    setting: Setting, kind: str, text: str, board: str = "", count: int = 1, **values: Value | None
) -> Iterable[Point]:
    """Something that happened: a change by the operator, something refused, an alert."""
    fields: dict[str, Value | None] = {"kind": kind, "text": text, "count": count, "run": setting.run or None}
    fields["round"] = setting.round if setting.run else None
    yield from _made("event", {"fleet": setting.fleet, "board": board}, {**fields, **values})


def waiting_share(seconds: Sequence[float]) -> float | None:
    """Of all boards' time in a round until the longest is done, the part that they wait; None without any."""
    longest = max(seconds, default=0.0)
    return 1 - sum(seconds) / (longest * len(seconds)) if longest > 0 else None


def _board_tags(setting: Setting, row: Row, silo: str) -> dict[str, str]:
    return {
        "fleet": setting.fleet,
        "board": row["board"],
        "silo": silo,
        "regime": setting.regime,
        "basis": row["basis"],
        "scope": row["scope"],
    }


def _made(measurement: str, tags: Mapping[str, str], values: Mapping[str, Value | None]) -> Iterable[Point]:
    made = point(measurement, tags, values)
    if made is not None:
        yield made
