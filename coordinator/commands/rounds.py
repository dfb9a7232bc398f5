"""`edged-coordinator rounds` and `runs`: what was recorded, told by the coordinator or read in its store."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from coordinator import interludes
from coordinator.commands import _recorded, _show, _updates
from coordinator.commands._surroundings import (
    BrokerOption,
    ConfigOption,
    FleetOption,
    JsonOption,
    StoreOption,
    connected,
    told,
)
from coordinator.pacing import warning
from coordinator.silos import ALL
from edged.controls import GetRounds, GetRuns
from edged.orders import round_name

Row = Mapping[str, Any]


@told
def rounds(
    context: typer.Context,
    run: Annotated[str | None, typer.Argument(help="Else the present or newest.", show_default=False)] = None,
    *,
    last: Annotated[int, typer.Option("--last", min=1, max=200, help="So many of the newest.")] = 20,
    store: StoreOption = None,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the rounds of a run: makespan, joules, shares and the reason for them, held-out figures; between
    them what operators changed, pauses, and restarts of the coordinator.

    With --store the folder is read, and no coordinator needs to run.

    Example: edged-coordinator rounds --last 5
    """
    if store is not None:
        from coordinator import views

        with _recorded.opened(store.expanduser()) as history:
            name = run or history.newest_run()
            data = views.rounds(history, _recorded.recorded(history, name or "").name, last)
    else:
        with connected(context, config, broker, fleet) as client:
            data = client.demand(GetRounds(run, last)).data
    if as_json:
        _show.json(data)
        return
    show(data)
    if data.get("shortened"):
        _show.progress(f"shortened: {data['shortened']}; --store reads all of them")


@told
def runs(
    context: typer.Context,
    *,
    store: StoreOption = None,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the runs in the store, newest first.

    Example: edged-coordinator runs --json
    """
    if store is not None:
        with _recorded.opened(store.expanduser()) as history:
            found = history.runs()
    else:
        with connected(context, config, broker, fleet) as client:
            answer = client.demand(GetRuns()).data
            found = answer["runs"]
            if answer.get("shortened"):
                _show.progress(f"shortened: {answer['shortened']}; --store reads all of them")
    if as_json:
        _show.json(found)
        return
    if not found:
        _show.line("no run was started yet; `edged-coordinator run --help` says how")
        return
    columns = ["run", "started", "policy", "task", "rounds", "state"]
    _show.table("", columns, [_run_cells(row) for row in found], "<<<<><")


def show(data: Mapping[str, Any]) -> None:
    """A line a round; boards that lost their order are named below."""
    if not data["rounds"]:
        _show.line(f"run {data['run']} has no {round_name(data.get('regime', ''))} that is over")
        for text in between(data).get(0, ()):
            _show.line(text)
        return
    held_out = {row["round"]: row for row in data["evaluations"]}
    if "updates" in data["rounds"][-1]:
        _periods(data, held_out)
        return
    _show.table(
        f"run {data['run']}",
        ["round", "makespan", "in all", "compute joules", "w_e", "accuracy", "shares", "reason"],
        [_cells(row, held_out.get(row["round"], {})) for row in data["rounds"]],
        ">>><>><<",
        between=between(data),
    )
    for row in data["rounds"]:
        for line in [*again(row), *filter(None, [warning(row)])]:
            _show.line(f"round {row['round']}: {line}")
    for row in data["board_rounds"]:
        if row["status"] != "accepted":
            _show.line(f"round {row['round']}: {row['board']} {row['status']}: {row['reason']}")


def between(data: Mapping[str, Any]) -> dict[int, list[str]]:
    """After how many of the rounds what else happened to the run was done, in lines."""

    def told(row: Row) -> str:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["at"]))
        return f"- {at} {interludes.told(row, data.get('regime', ''))}"

    rows = [*data["controls"], *data.get("restarts", ())]
    placed = interludes.placed(data["rounds"], rows)
    return {after: [told(row) for row in found] for after, found in placed.items()}


def again(row: Row) -> list[str]:
    """Of synchronous ranks: why attempts at the round failed, and who had to be left out."""
    found = []
    for name, silo in (row.get("silos") or {}).items():
        who = "the ranks" if name == ALL else f"silo {name}"
        if silo["failures"]:
            count = "given up" if not silo["accepted"] else f"done with attempt {silo['attempts']}"
            found.append(f"{who} {count}; failed before: {'; '.join(silo['failures'])}")
        found += [f"{who} without {board}: {why}" for board, why in silo["left_out"].items()]
    return found


def _periods(data: Mapping[str, Any], held_out: Mapping[int, Row]) -> None:
    """Of asynchronous updates: a line a period, and the newest one's staleness by board."""
    last = data["rounds"][-1]
    _show.table(
        f"run {data['run']}: {_updates.rule(last)}",
        _updates.PERIOD_COLUMNS,
        [
            _updates.period_cells(
                row, _show.percent(held_out.get(row["round"], {}).get("accuracy")), joules_by_basis(row)
            )
            for row in data["rounds"]
        ],
        _updates.PERIOD_SIDES,
        between=between(data),
    )
    for board, ages in sorted(last["staleness"].items()):
        _show.line(f"period {last['round']}: {board} staleness {_updates.distribution(ages)}")
    for board, row in sorted((last.get("waited") or {}).items()):
        _show.line(f"period {last['round']}: {board} waited for others {_updates.wait(row)}")
    for row in filter(warning, data["rounds"]):
        _show.line(f"period {row['round']}: {warning(row)}")
    for row in data["board_rounds"]:
        if row["lost"] or row["dropped"]:
            told = [f"{row['lost']} orders lost" + (f" ({row['reason']})" if row["reason"] else "")]
            told += [f"{row['dropped']} updates too old"] if row["dropped"] else []
            _show.line(f"period {row['round']}: {row['board']} {', '.join(told)}")


def joules_by_basis(row: Row) -> str:
    """Compute joules with their basis; what no board told is not 0."""
    known = [f"{_show.figure(value)} J {basis}" for basis, value in row["compute_joules_by_basis"].items()]
    unknown = row["joules_unknown_of"]
    return " + ".join(known + ([f"unknown of {', '.join(unknown)}"] if unknown else [])) or _show.UNKNOWN


def shares(row: Row) -> str:
    """Board and samples."""
    return " ".join(f"{board}:{samples}" for board, samples in row["shares"].items())


def _cells(row: Row, held_out: Row) -> list[str]:
    return [
        str(row["round"]),
        _show.duration(row["makespan_seconds"]),
        _show.duration(row["wall_seconds"]),
        joules_by_basis(row),
        _show.weight(row["w_e"]),
        _show.percent(held_out.get("accuracy")),
        shares(row),
        row["reason"],
    ]


def _run_cells(row: Row) -> Sequence[str]:
    settings = row["settings"]
    state = "going on" if row["ended"] is None else "complete" if row["complete"] else row["reason"]
    now = row.get("now") or {**settings, "changes": 0}
    began, policy = _policy(settings), _policy(now)
    changed = "" if policy == began else f" (began as {began})"
    return [
        row["run"],
        time.strftime("%Y-%m-%d %H:%M", time.localtime(row["at"])),
        policy + changed,
        settings["task"],
        f"{row['rounds']} of {settings['rounds']}",
        state,
    ]


def _policy(said: Row) -> str:
    return str(said["policy"]) + ("" if said["policy"] == "equal" else f", w_e {_show.weight(said['w_e'])}")
