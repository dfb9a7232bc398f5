"""The tables of OmniLearn's levels, with the notes without which they would be misread."""

from collections.abc import Sequence

from msgspec import Struct

from coordinator.commands import _show
from coordinator.simulator import asynchronous, synchronous
from coordinator.simulator.levels import CORES
from coordinator.simulator.profiles import PROFILES

WIDTH = 80
OLDEST = 10
"""Ages from here on are one column."""

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
ASYNCHRONOUS_NOTES = (
    """batches: of the last period; updates: by worker; spread: most minus fewest of a worker, over the mean.
    Uniform and equalised runs stop at the same samples, the synchronous ones too.""",
    """An update counts by its batch over the mean batch (scale = batch, our reading), whatever its age.
    Dynamic batches begin uniform and are decided anew every 20 mean batches of a worker.""",
    """Models are cost profiles from published multiply-adds and parameters, no measurements; watts are
    invented, joules simulated. In the table for asynchronous training HL8 is a ratio of 7.""",
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


def show_asynchronous(found: Asynchronous) -> None:
    """Two tables: what the runs cost, and how old their updates were."""
    first = found.lines[0]
    cores = "; ".join(
        f"{level} {' '.join(map(str, CORES['ASP'][level]))}"
        for level in dict.fromkeys(r.level for r in found.lines)
    )
    _show.table(
        f"asp and ddp, {found.model} (profile), {first.samples:,} samples a run, cores of the ASP table",
        ["level", "run", "batches", "seconds", "kJ", "wait", "updates", "spread"],
        [
            [
                row.level,
                f"{row.regime} {row.batches}",
                " ".join(map(str, row.last_batches)),
                _show.figure(row.seconds, 4),
                _show.figure(row.joules / 1e3, 4),
                _show.percent(row.wait_share),
                " ".join(map(str, row.updates)),
                "" if row.update_spread is None else f"{row.update_spread:.2f}",
            ]
            for row in found.lines
        ],
        "<<<>>><>",
    )
    _show.line("")
    ages = [*map(str, range(OLDEST)), f"{OLDEST}+"]
    _show.table(
        "staleness: per cent of the updates that were so many versions old, and deviation",
        ["level", "batches", *ages, "dev."],
        [
            [row.level, row.batches, *_ages(row.staleness), f"{row.staleness_spread:.2f}"]
            for row in found.lines
            if row.staleness
        ],
        "<<" + ">" * (len(ages) + 1),
    )
    say((f"Cores: {cores}; 8 more are the server's.", *found.notes))


def lines_of(notes: Sequence[str]) -> tuple[str, ...]:
    """Each note as one line, as JSON has it."""
    return tuple(" ".join(note.split()) for note in notes)


def say(notes: Sequence[str]) -> None:
    """Notes as lines that fit a narrow terminal."""
    import textwrap

    for note in notes:
        for text in textwrap.wrap(note, WIDTH):
            _show.line(text)


def _ages(staleness: dict[int, int]) -> list[str]:
    total = sum(staleness.values())
    counts = [staleness.get(age, 0) for age in range(OLDEST)]
    counts.append(total - sum(counts))
    return ["" if not n else "<1" if n / total < 0.01 else f"{100 * n / total:.0f}" for n in counts]
