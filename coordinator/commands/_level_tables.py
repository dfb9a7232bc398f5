"""The tables of OmniLearn's levels, with the notes without which they would be misread."""

from collections.abc import Sequence

from msgspec import Struct

from coordinator.commands import _show
from coordinator.simulator import asynchronous, synchronous
from coordinator.simulator.profiles import PROFILES

WIDTH = 80
OLDEST = 9
"""Ages from here on are one column."""

SYNCHRONOUS_NOTES = (
    "waiting: share of the workers' time in which they wait for the slowest one.",
    "cut: computing time saved of uniform batches', before any communication.",
    "ideal: the cut that batches by cores would have, 1 - c_min / mean(c).",
    "in all: time saved of uniform batches', exchanges and updates of steps included.",
    "adjustments: how many of the batches it took to follow each change of cores.",
    "Cores change by the released code's schedules, epochs cut short to 100 steps.",
    "There static batches stay those of HL1, so uniform ones.",
    "Models are cost profiles from published figures, no measurements.",
    "Watts are invented, joules simulated; speed is taken as linear in cores.",
    "The paper's 14-85 %: where the 85 % come from is not known (HL8: 66.7 %).",
    "OmniLearn's rules let 128 samples drift to 131, 236: benchmarks/global_batch.py",
)
"""Each fits a line of a narrow terminal."""
ASYNCHRONOUS_NOTES = (
    "Each run stops at the same samples. 8 more cores are the server's.",
    "ddp rows can be equal: uniform waits for the slowest (4 cores in hl4 and hl8),",
    "dynamic comes near to what all 40 cores do together, whoever has them.",
    "batches: of the last period. wait: share of the workers' time.",
    "updates: by worker. spread: most minus fewest of a worker, over the mean.",
    "An update counts by its batch over the mean (our reading), whatever its age.",
    "Dynamic batches begin uniform, and are decided every 20 mean batches a worker.",
    "Models are cost profiles from published figures, no measurements.",
    "Watts are invented, joules simulated. HL8 of the ASP table is a ratio of 7.",
)


class Synchronous(Struct, frozen=True):
    """Every level with fixed cores and the schedules of changing ones, under every profile."""

    regime: str
    table: str
    model: str
    basis: str
    lines: tuple[synchronous.Row, ...]
    schedules: tuple[synchronous.Row, ...]
    notes: tuple[str, ...]


class Asynchronous(Struct, frozen=True):
    """Every level: asynchronous runs, and synchronous ones of as many samples."""

    regime: str
    table: str
    model: str
    basis: str
    lines: tuple[asynchronous.Row, ...]
    notes: tuple[str, ...]


def show_synchronous(found: Synchronous) -> None:
    """Three tables: one model's levels, all models' whole savings, and cores that change."""
    lines = [row for row in found.lines if row.model == found.model]
    first = lines[0]
    say((_heading(found.regime, lines),))
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
        keys=3,
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
        keys=2,
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


def show_asynchronous(found: Asynchronous) -> None:
    """Two tables: what the runs cost, and how old their updates were."""
    first = found.lines[0]
    say((_heading(found.regime, found.lines),))
    _show.table(
        f"asp and ddp, {found.model} (profile), {first.samples:,} samples a run, cores of the ASP table",
        ["level", "cores", "run", "batches", "seconds", "kJ", "wait", "spread"],
        [
            [
                row.level,
                " ".join(map(str, row.cores)),
                f"{row.regime} {row.batches}",
                " ".join(map(str, row.last_batches)),
                _show.figure(row.seconds, 4),
                _show.figure(row.joules / 1e3, 4),
                _show.percent(row.wait_share),
                "" if row.update_spread is None else f"{row.update_spread:.2f}",
            ]
            for row in found.lines
        ],
        "<<<<>>>>",
        keys=3,
    )
    _show.line("")
    ages = [*map(str, range(OLDEST)), f"{OLDEST}+"]
    _show.table(
        "updates by worker; per cent of them so many versions old, and deviation",
        ["level", "batches", "updates", *ages, "dev."],
        [
            [
                row.level,
                row.batches,
                " ".join(map(str, row.updates)),
                *_ages(row.staleness),
                f"{row.staleness_spread:.2f}",
            ]
            for row in found.lines
            if row.staleness
        ],
        "<<<" + ">" * (len(ages) + 1),
        keys=2,
    )
    say(found.notes)


def lines_of(notes: Sequence[str]) -> tuple[str, ...]:
    """Each note as one line, as JSON has it."""
    return tuple(" ".join(note.split()) for note in notes)


def say(notes: Sequence[str]) -> None:
    """Notes as lines that fit a narrow terminal."""
    import textwrap

    for note in notes:
        for text in textwrap.wrap(note, WIDTH):
            _show.line(text)


def _heading(regime: str, rows: Sequence[synchronous.Row | asynchronous.Row]) -> str:
    """What this is, and how to get what else a level may be."""
    levels = list(dict.fromkeys(row.level for row in rows))
    if len(levels) == 1:
        return f"level {levels[0]} in {regime}; policies on it as a fleet: compare {levels[0]}"
    return f"levels {' '.join(levels)} in {regime}; policies on one of them as a fleet: compare {levels[0]}"


def _ages(staleness: dict[int, int]) -> list[str]:
    total = sum(staleness.values())
    counts = [staleness.get(age, 0) for age in range(OLDEST)]
    counts.append(total - sum(counts))
    return ["" if not n else "<1" if n / total < 0.01 else f"{100 * n / total:.0f}" for n in counts]
