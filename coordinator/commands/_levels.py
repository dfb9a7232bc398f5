"""OmniLearn's heterogeneity levels for `compare`: which of them are meant, playing them, JSON and CSV."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from coordinator.commands import _level_tables, _show, exits
from coordinator.commands._level_tables import Asynchronous, Synchronous
from coordinator.commands.exits import CommandError
from coordinator.simulator import asynchronous, synchronous
from coordinator.simulator.levels import LEVELS, Level
from coordinator.simulator.profiles import PROFILES

REGIMES = ("ddp", "asp")
PROFILE = "resnet18"


class Asked(Struct, frozen=True):
    """What is to be compared."""

    levels: tuple[Level, ...]
    regime: str
    model: str = PROFILE
    epochs: int | None = None
    seed: int = 1
    noise: float = 0.0


def are_meant(what: Sequence[str], regime: str | None, model: str | None, of_a_fleet: bool) -> bool:
    """Whether levels are played, and not policies on the fleet of one level: several levels, or a regime or
    model was given. `of_a_fleet`: options were given that only one fleet has."""
    asked = len(what) > 1 or model is not None or (regime is not None and not of_a_fleet)
    return asked and set(what) <= set(LEVELS)


def asked(
    what: Sequence[str],
    regime: str | None,
    model: str | None,
    others: Mapping[str, object],
    *,
    rounds: int | None,
    seed: int | None,
    noise: float | None,
) -> Asked:
    """What the command line means. `others` are options that levels have no use for (None: not given)."""
    if regime not in REGIMES:
        given = "" if regime is None else f", not {regime}"
        raise CommandError(
            f"levels are compared with each other in regime {' or '.join(REGIMES)}{given}: give --regime, "
            f"or compare one fleet at a time: edged-coordinator compare {what[0]}",
            exits.USAGE,
        )
    if regime == "ddp":
        others = {**others, "--seed": seed, "--noise": noise}
    for name, value in others.items():
        if value is not None:
            raise CommandError(f"{name} is not for levels in {regime}: leave it out", exits.USAGE)
    if model is not None and model not in PROFILES:
        raise CommandError(f"--model {model}: there are profiles of {', '.join(PROFILES)}", exits.USAGE)
    return Asked(
        tuple(level for level in LEVELS if level in what),
        regime,
        model or PROFILE,
        rounds,
        1 if seed is None else seed,
        noise or 0.0,
    )


def answer(asked: Asked, csv_file: Path | None, as_json: bool) -> None:
    """Play them, and say it in the forms that were asked for."""
    found = synchronously(asked) if asked.regime == "ddp" else asynchronously(asked)
    if csv_file is not None:
        schedules = found.schedules if isinstance(found, Synchronous) else ()
        write_csv((*found.lines, *schedules), csv_file)
    if as_json:
        _show.json(found)
        return
    if isinstance(found, Synchronous):
        _level_tables.show_synchronous(found)
    else:
        _level_tables.show_asynchronous(found)
    if csv_file is not None:
        _show.progress(f"written: {csv_file}")


def synchronously(asked: Asked) -> Synchronous:
    """Everything that is said of them with synchronous gradients."""
    lines: list[synchronous.Row] = []
    schedules: list[synchronous.Row] = []
    epochs = asked.epochs or synchronous.EPOCHS
    for profile in PROFILES.values():
        _going_on(profile.name)
        for level in asked.levels:
            lines += synchronous.fixed(level, profile, epochs=epochs)
        schedules += synchronous.changing(profile)
    notes = _level_tables.lines_of(_level_tables.SYNCHRONOUS_NOTES)
    return Synchronous(asked.regime, "BSP", asked.model, "simulated", tuple(lines), tuple(schedules), notes)


def asynchronously(asked: Asked) -> Asynchronous:
    """Everything that is said of them with asynchronous updates."""
    profile = PROFILES[asked.model]
    epochs = asked.epochs or asynchronous.EPOCHS
    lines: list[asynchronous.Row] = []
    for level in asked.levels:
        _going_on(level)
        lines += asynchronous.rows(level, profile, epochs=epochs, seed=asked.seed, noise=asked.noise)
    notes = _level_tables.lines_of(_level_tables.ASYNCHRONOUS_NOTES)
    return Asynchronous(asked.regime, "ASP", asked.model, "simulated", tuple(lines), notes)


def _going_on(what: str) -> None:
    if _show.is_terminal():
        _show.progress(f"{what} …")


def write_csv(rows: Sequence[Struct], path: Path) -> None:
    """One line a row, plain numbers in SI units."""
    flat = [_flat(row) for row in rows]
    try:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(flat[0]))
            writer.writeheader()
            writer.writerows(flat)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; give another --csv") from None


def _flat(row: Struct) -> dict[str, Any]:
    return {
        name: " ".join(map(str, value)) if isinstance(value, tuple) else value
        for name, value in structs.asdict(row).items()
    }
