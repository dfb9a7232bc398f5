"""Every measurement that is written: its tags, its fields with their types, and a point's check. Pure.

Rules: a point has all tags of its measurement (`-` where there is none); a field has one type for ever; an
unknown figure is left out, never 0; rounds, versions and names that grow without bound are fields.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct

Kind = Literal["float", "integer", "string", "boolean"]
Value = float | int | str | bool
NONE: Final = "-"
LONGEST_TEXT: Final = 1000
TAGS: Final = ("fleet", "board", "silo", "regime", "policy", "basis", "scope", "channel")
"""What may be a tag anywhere; `run` may be one on measurements that have a point a round for all boards."""

PARTS: Final = ("compute", "communication", "wait", "lost", "overhead")
BASES: Final = ("measured", "calibrated", "estimated", "emulated", "modelled")


class Measurement(Struct, frozen=True):
    """Tags in order, and fields with their types."""

    tags: tuple[str, ...]
    fields: Mapping[str, Kind]


class Point(Struct, frozen=True):
    """One line; `nanoseconds` since 1970 by the coordinator's clock."""

    measurement: str
    tags: dict[str, str]
    fields: dict[str, Value]
    nanoseconds: int = 0


def _floats(*names: str) -> dict[str, Kind]:
    return dict.fromkeys(names, "float")


def _integers(*names: str) -> dict[str, Kind]:
    return dict.fromkeys(names, "integer")


def _strings(*names: str) -> dict[str, Kind]:
    return dict.fromkeys(names, "string")


_LATE: Final[dict[str, Kind]] = {"stamped_late": "boolean"}
"""Set on points of a time when the coordinator's clock was not set yet; they were stamped afterwards."""

MEASUREMENTS: Final[Mapping[str, Measurement]] = {
    "round": Measurement(
        ("fleet", "run", "regime", "policy"),
        {
            **_integers("round", "ordered", "accepted", "returned", "outstanding", "accepted_in_all"),
            **_integers("boards", "boards_without_joules", "boards_reported"),
            **_floats("makespan_seconds", "wall_seconds", "elapsed_seconds", "w_t", "w_e", "waiting_share"),
            **_floats(*(f"joules_{basis}" for basis in BASES)),
            **_floats("joules", "joules_in_all", "uncertainty_joules", "coverage"),
            **_floats("predicted_seconds", "predicted_joules", "time_only_seconds", "time_only_joules"),
            **_floats("heldout_loss", "heldout_accuracy", "heldout_seconds", "heldout_joules"),
            **_strings("longest", "reason", "basis"),
            **_LATE,
        },
    ),
    "board_round": Measurement(
        ("fleet", "board", "silo", "regime", "basis", "scope"),
        {
            **_integers("round", "samples", "steps", "behind_pace_steps", "peak_memory_bytes"),
            **_integers("updates", "updates_too_old"),
            **_integers("staleness_least", "staleness_median", "staleness_most"),
            **_floats("seconds", "joules", "uncertainty_joules", "coverage", "cost", "loss"),
            **_floats("seconds_per_sample", "joules_per_sample"),
            **_floats("seconds_per_sample_average", "joules_per_sample_average"),
            **_floats(*(f"{part}_seconds" for part in PARTS), *(f"{part}_joules" for part in PARTS)),
            **_strings("run", "status", "reason", "joules_reason", "flags"),
            **_LATE,
        },
    ),
    "power": Measurement(
        ("fleet", "board", "silo", "basis", "scope", "channel"),
        {
            **_floats("watts", "joules", "temperature_celsius", "sampler_cpu_seconds"),
            **_integers("round"),
            **_strings("run", "throttled"),
            "headline": "boolean",
            **_LATE,
        },
    ),
    "fleet": Measurement(
        ("fleet", "run", "regime", "policy"),
        {
            **_integers("round", "rounds", "boards_up", "boards_known", "waiting", "alerts"),
            **_integers("accepted", "target", "duplicates", "refusals", "drops", "reconnects"),
            **_integers("spool_bytes", "spool_dropped"),
            **_floats("w_t", "w_e", "longest_wait_seconds"),
            **_strings("phase", "reason", "waits_for"),
            **_LATE,
        },
    ),
    "event": Measurement(
        ("fleet", "board"),
        {**_strings("kind", "text", "run"), **_integers("count", "round"), **_floats("w_t", "w_e"), **_LATE},
    ),
}

_TYPES: Final[Mapping[Kind, type]] = {"float": float, "integer": int, "string": str, "boolean": bool}


class SchemaError(ValueError):
    """A point that the table does not have; the text names measurement and field."""


def point(measurement: str, tags: Mapping[str, str], values: Mapping[str, Value | None]) -> Point | None:
    """A checked point without a stamp; None where nothing of it is known. Raises SchemaError.

    Unknown values (None, not finite) are left out, whole numbers become floats where the field is one.
    """
    table = MEASUREMENTS.get(measurement)
    if table is None:
        raise SchemaError(f"{measurement}: no such measurement; there are {', '.join(MEASUREMENTS)}")
    strange = [tag for tag in tags if tag not in table.tags]
    if strange:
        raise SchemaError(f"{measurement}.{strange[0]}: no tag of it; it has {', '.join(table.tags)}")
    fields = {name: _checked(measurement, table, name, value) for name, value in values.items()}
    known = {name: value for name, value in fields.items() if value is not None}
    if not known:
        return None
    return Point(measurement, {tag: tag_text(tags.get(tag, "")) for tag in table.tags}, known)


@lru_cache(maxsize=65_536)
def tag_text(text: str) -> str:
    """A tag's value: one line, without what servers read differently; `-` for nothing."""
    # A backslash before a separator cannot be told from an escape in line protocol.
    return _line(text).replace("\\", "/").strip()[:200] or NONE


def _checked(measurement: str, table: Measurement, name: str, value: Value | None) -> Value | None:
    kind = table.fields.get(name)
    if kind is None:
        raise SchemaError(f"{measurement}.{name}: no field of it")
    if value is None:
        return None
    if kind == "float" and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if math.isfinite(value) else None
    if type(value) is not _TYPES[kind]:
        raise SchemaError(f"{measurement}.{name}: {value!r} is no {kind}")
    if isinstance(value, str):
        return _line(value)[:LONGEST_TEXT]
    if kind == "integer" and not -(2**63) <= value < 2**63:
        raise SchemaError(f"{measurement}.{name}: {value} does not fit into 64 bits")
    return value


def _line(text: str) -> str:
    if text.isprintable():
        return text
    # Line ends of any script, control characters and lone surrogates would break a line or its encoding.
    return "".join(character if character.isprintable() else " " for character in text)
