"""OmniLearn's heterogeneity levels for `compare`: which of them are meant, and their tables, JSON and CSV."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from coordinator.commands import _show, exits
from coordinator.commands.exits import CommandError
from coordinator.simulator import synchronous
from coordinator.simulator.levels import LEVELS, Level
from coordinator.simulator.profiles import PROFILES
from coordinator.simulator.synchronous import Row

REGIMES = ("ddp", "asp")
PROFILE = "resnet18"
WIDTH = 80

SYNCHRONOUS_NOTES = (
    """cut: training time saved of uniform batches before communication; ideal: 1 - c_min / mean(c); in all:
    with the exchange and the update of every step.""",
    """Where cores change, by the released code's schedules (epochs cut short to 100 steps): static batches
    stay those of HL1, so uniform; adjustments are those it took to follow each change.""",
    """Models are cost profiles from published multiply-adds and parameters, no measurements; watts are
    invented, joules simulated. Speed is taken as linear in cores.""",
    """The paper's summary speaks of 14-85 %: where the 85 % come from is not known; the cores of the released
    code's table allow 66.7 % at most. (At HL4 its cpusets are 9 8 6 25, not the table's.)""",
    """OmniLearn's own rules let the global batch drift on the same input, to 131 or 236 of 128 samples:
    benchmarks/global_batch.py shows it step by step.""",
)


class Synchronous(Struct, frozen=True):
    """Every level with fixed cores and the schedules of changing ones, under every profile."""

    regime: str
    table: str
    model: str
    basis: str
    lines: tuple[Row, ...]
    schedules: tuple[Row, ...]
    notes: tuple[str, ...]


class Asked(Struct, frozen=True):
    """What is to be compared."""

    levels: tuple[Level, ...]
    regime: str
    model: str = PROFILE
    epochs: int = synchronous.EPOCHS
    seed: int = 1
    noise: float = 0.0


def are_meant(what: Sequence[str], regime: str | None, model: str | None) -> bool:
    """Whether levels are compared with each other, and not policies on one of these fleets."""
    return bool(what) and (len(what) > 1 or regime == "asp" or model is not None) and set(what) <= set(LEVELS)


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
            "or compare one fleet at a time",
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
        rounds or synchronous.EPOCHS,
        1 if seed is None else seed,
        noise or 0.0,
    )


def answer(asked: Asked, csv_file: Path | None, as_json: bool) -> None:
    """Play them, and say it in the forms that were asked for."""
    found = synchronously(asked)
    if csv_file is not None:
        write_csv((*found.lines, *found.schedules), csv_file)
    if as_json:
        _show.json(found)
        return
    show_synchronous(found)
    if csv_file is not None:
        _show.progress(f"written: {csv_file}")


def synchronously(asked: Asked) -> Synchronous:
    """Everything that is said of them with synchronous gradients."""
    return Synchronous(
        asked.regime,
        "BSP",
        asked.model,
        "simulated",
        tuple(
            row
            for profile in PROFILES.values()
            for level in asked.levels
            for row in synchronous.fixed(level, profile, epochs=asked.epochs)
        ),
        tuple(row for profile in PROFILES.values() for row in synchronous.changing(profile)),
        tuple(" ".join(note.split()) for note in SYNCHRONOUS_NOTES),
    )


def show_synchronous(found: Synchronous) -> None:
    """Three tables: one model's levels, all models' whole savings, and cores that change."""
    lines = [row for row in found.lines if row.model == found.model]
    first = lines[0]
    _show.table(
        f"ddp, {found.model} (profile), {first.epochs} epochs of {first.samples // first.epochs:,} samples, "
        "cores of the BSP table",
        ["level", "cores", "batches", "seconds", "kJ", "waiting", "cut", "ideal", "in all"],
        [
            [
                row.level,
                " ".join(map(str, row.cores)),
                row.batches,
                _show.figure(row.seconds, 4),
                _show.figure(row.joules / 1e3, 4),
                _show.percent(row.wait_share),
                _show.percent(row.cut),
                _show.percent(row.expected_cut),
                _show.percent(row.cut_with_communication),
            ]
            for row in lines
        ],
        "<<<>>>>>>",
    )
    _show.line("")
    names = list(PROFILES)
    cells = {
        (row.level, row.batches, row.model): _show.percent(row.cut_with_communication) for row in found.lines
    }
    _show.table(
        "cut with communication, by profile",
        ["level", "batches", *names],
        [
            [level, batches, *(cells[level, batches, name] for name in names)]
            for level in dict.fromkeys(row.level for row in lines)
            for batches in list(synchronous.PLANS)[1:]
        ],
        "<<" + ">" * len(names),
    )
    _show.line("")
    rows = {(row.model, row.batches): row for row in found.schedules}
    _show.table(
        "cores that change by epoch, HL1 to HL8 and back",
        ["model", "epochs", "uniform", "dynamic", "cut", "in all", "adjustments"],
        [
            [
                name,
                str(rows[name, "dynamic"].epochs),
                _show.duration(rows[name, "uniform"].seconds),
                _show.duration(rows[name, "dynamic"].seconds),
                _show.percent(rows[name, "dynamic"].cut),
                _show.percent(rows[name, "dynamic"].cut_with_communication),
                " ".join("never" if n is None else str(n) for n in rows[name, "dynamic"].followed),
            ]
            for name in names
        ],
        "<>>>>><",
    )
    batches = {n for row in (*found.lines, *found.schedules) for n in row.global_batch}
    exact = f"exactly {batches.pop()}" if len(batches) == 1 else f"{min(batches)} to {max(batches)}"
    say((f"Every step of every run trained {exact} samples.", *found.notes))


def say(notes: Sequence[str]) -> None:
    """Notes as lines that fit a narrow terminal."""
    import textwrap

    for note in notes:
        for text in textwrap.wrap(note, WIDTH):
            _show.line(text)


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
