"""Virtual fleets for commands: reading them, and the table, CSV and picture of several policies on one."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from msgspec import Struct, structs

from coordinator.commands import _show, exits
from coordinator.commands.exits import CommandError
from coordinator.simulator import fleetfile
from coordinator.simulator.experiments import GRID, Line, Plan, closed_lines, plans
from coordinator.simulator.fleetfile import FleetError, FleetFile, shipped
from coordinator.simulator.levels import LEVELS

REGIMES = ("pma", "ddp", "hfl-ddp", "asp")
PARTS = ("compute", "wait", "communication")
REFERENCES = ("equal", "time-only", "optimum")


class Result(Struct, frozen=True):
    """One table: the fleet under several policies. All joules are simulated ones."""

    fleet: str
    about: str
    regime: str
    budget: int
    steady_state: bool
    rounds: int | None
    seed: int | None
    lines: tuple[Line, ...]
    basis: str = "simulated"
    notes: tuple[str, ...] = ()


def named(argument: str) -> str:
    """A fleet that ships, however it is written, where no file is called so; all else as it is."""
    known = argument.lower() in shipped() and not Path(argument).is_file()
    return argument.lower() if known else argument


def read(name: str) -> FleetFile:
    """A fleet by name or file; what is wrong with it is a CommandError."""
    try:
        return fleetfile.read(named(name))
    except FleetError as error:
        raise CommandError(str(error)) from None


def is_fleet(argument: str) -> bool:
    """True for the name of a fleet that ships and for a file; all else is the name of a run."""
    return argument in shipped() or argument.endswith(".toml") or Path(argument).is_file()


def with_noise(fleet: FleetFile, noise: float | None) -> FleetFile:
    """Every board with that noise; None leaves the file's."""
    if noise is None:
        return fleet
    boards = tuple(structs.replace(b, noise=noise, watts_noise=None) for b in fleet.board)
    return structs.replace(fleet, board=boards)


def with_regime(fleet: FleetFile, regime: str) -> FleetFile:
    """In another regime; one that is not simulated is a CommandError."""
    if regime not in REGIMES:
        raise CommandError(f"--regime {regime}: {', '.join(REGIMES)} are simulated", exits.USAGE)
    if regime == "hfl-ddp" and not all(board.silo for board in fleet.board):
        names = ", ".join(board.id for board in fleet.board if not board.silo)
        raise CommandError(f"--regime hfl-ddp: the fleet file gives no silo for {names}", exits.USAGE)
    return structs.replace(fleet, regime=regime)


def plan(fleet: FleetFile, given: dict[str, Any]) -> Plan:
    """What the file (or the command line, which was put into it) wants done."""
    wanted = plans_of([fleet.policy], [given.pop("w_e", fleet.w_e)], fleet.regime)[0]
    return _with_options(wanted, {**fleet.policy_options, **given})


def plans_of(names: Sequence[str], grid: Sequence[float], regime: str) -> tuple[Plan, ...]:
    """Each policy once, adaptive for each weight; `min-energy:slack=1.2` gives options."""
    found: list[Plan] = []
    try:
        for name in names:
            policy, _, text = name.partition(":")
            options = _options(text) if text else {}
            made = plans([policy], [float(options.pop("w_e"))] if "w_e" in options else grid, regime)
            found += [_with_options(one, options) for one in made]
    except ValueError as error:
        raise CommandError(str(error), exits.USAGE) from None
    return tuple(found)


def _with_options(found: Plan, options: dict[str, Any]) -> Plan:
    from coordinator.controller.policies import options as policy_options

    if not options:
        return found
    try:
        policy_options(found.policy, {**found.options, **options})
    except ValueError as error:
        raise CommandError(str(error), exits.USAGE) from None
    words = ", ".join(f"{key} {'none' if value is None else value}" for key, value in options.items())
    return structs.replace(found, label=f"{found.label}, {words}", options={**found.options, **options})


def _options(text: str) -> dict[str, Any]:
    from coordinator.commands._surroundings import pairs

    return pairs(text.split(":"), "--policies")


def weights(text: str) -> tuple[float, ...]:
    """`0,0.25,1` as numbers. A weight that is none is a CommandError."""
    from coordinator.controller import Weights

    try:
        found = tuple(float(part) for part in text.split(",") if part.strip())
        for w_e in found:
            Weights.of(w_e)
    except ValueError as error:
        raise CommandError(f"--w-e {text}: {error}", exits.USAGE) from None
    return found or GRID


def compared(
    fleet: FleetFile,
    wanted: Sequence[Plan],
    *,
    steady_state: bool,
    rounds: int,
    seed: int,
    notes: tuple[str, ...] = (),
) -> Result:
    """The lines of the table; what is infeasible is a CommandError."""
    from coordinator.simulator.settled import steady_lines

    try:
        if steady_state and fleet.regime in ("hfl-ddp", "asp"):
            raise ValueError(f"{fleet.regime} has no steady state by arithmetic: leave out --steady-state")
        if steady_state:
            lines = steady_lines(fleet, wanted, fleet.regime)
        else:
            lines = closed_lines(fleet, wanted, rounds, seed, fleet.regime)
    except ValueError as error:
        raise CommandError(str(error)) from None
    return Result(
        fleet.name,
        fleet.about,
        fleet.regime,
        fleet.budget,
        steady_state,
        None if steady_state else rounds,
        None if steady_state else seed,
        lines,
        notes=notes,
    )


def answer(result: Result, csv_file: Path | None, figure: Path | None, as_json: bool) -> None:
    """Say it in the forms that were asked for."""
    if csv_file is not None:
        write_csv(result, csv_file)
    if figure is not None:
        draw(result, figure)
    if as_json:
        _show.json(result)
        return
    show(result)
    for path in (csv_file, figure):
        if path is not None:
            _show.progress(f"written: {path}")


def show(result: Result) -> None:
    """A line a policy."""
    how = (
        "steady state, exact costs" if result.steady_state else f"{result.rounds} rounds, seed {result.seed}"
    )
    communication = any(line.communication_joules for line in result.lines)
    head = ["policy", "makespan", "joules", "compute", "wait", *(["comm."] if communication else [])]
    head += [
        "wait share",
        "CV",
        "moves",
        *(f"{what} vs {name}" for name in REFERENCES for what in ("s", "J")),
    ]
    rows = []
    for line in result.lines:
        link = [_show.figure(line.communication_joules, 3)] if communication else []
        rows.append(
            [
                line.label,
                f"{line.makespan_seconds:.2f} s",
                _show.figure(line.joules, 4),
                _show.figure(line.compute_joules, 4),
                _show.figure(_settled(line.wait_joules), 4),
                *link,
                _show.percent(line.wait_share),
                f"{line.variation:.3f}",
                "" if line.reallocations is None else str(line.reallocations),
                *(_change(value) for name in REFERENCES for value in line.against[name]),
            ]
        )
    if result.fleet in LEVELS:
        _show.line(f"{result.fleet} as a fleet; as a level: compare {result.fleet} --regime ddp (or asp)")
    title = f"{result.fleet}: {result.regime}, {result.budget:,} samples a round, {how}"
    _show.table(f"{title}; simulated joules a round", head, rows, "<" + ">" * (len(head) - 1))
    for note in result.notes:
        typer.echo(note)


def write_csv(result: Result, path: Path) -> None:
    """One line a policy, SI units."""
    try:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            rows = [_flat(result, line) for line in result.lines]
            writer.writerow(rows[0])
            writer.writerows(row.values() for row in rows)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; give another --csv") from None


def draw(result: Result, path: Path) -> None:
    """The picture; a failure is a CommandError."""
    from coordinator import charts
    from coordinator.plots import PlotError

    try:
        charts.draw_policies(result.lines, path, f"{result.fleet}: simulated joules of a round")
    except PlotError as error:
        raise CommandError(str(error)) from None


def show_list(as_json: bool) -> None:
    """The fleets that ship."""
    fleets = [fleetfile.read(name) for name in shipped()]
    if as_json:
        _show.json([{"name": f.name, "about": f.about, "boards": len(f.board)} for f in fleets])
        return
    rows = [[f.name, str(len(f.board)), f.about] for f in fleets]
    _show.table("", ["fleet", "boards", "what it is"], rows, "<><")


def _flat(result: Result, line: Line) -> dict[str, Any]:
    row: dict[str, Any] = {
        "fleet": result.fleet,
        "policy": line.label,
        "makespan_seconds": line.makespan_seconds,
        "total_joules": line.joules,
        **{f"{part}_joules": getattr(line, f"{part}_joules") for part in PARTS},
        "joules_basis": result.basis,
        "wait_share": line.wait_share,
        "variation": line.variation,
        "reallocations": line.reallocations,
    }
    for name in REFERENCES:
        seconds, joules = line.against[name]
        row |= {f"makespan_against_{name}": seconds, f"joules_against_{name}": joules}
    return row


def _change(value: float | None) -> str:
    return _show.UNKNOWN if value is None else f"{round(100 * value, 1) + 0.0:+.1f} %"


def _settled(joules: float | None) -> float | None:
    # What rounding leaves of equal finish times is no waiting.
    return 0.0 if joules is not None and joules < 1e-3 else joules
