"""`edged-coordinator status`: one screen of what goes on and what the round waits for."""

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from coordinator.commands import _show, _updates
from coordinator.commands._surroundings import (
    BrokerOption,
    ConfigOption,
    FleetOption,
    JsonOption,
    connected,
    told,
)
from coordinator.counters import counted
from coordinator.pacing import warning
from coordinator.silos import ALL
from edged.controls import GetStatus
from edged.orders import round_name

Data = Mapping[str, Any]


@told
def status(
    context: typer.Context,
    *,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what the round waits for, of whom, since when and until when; decisions; what was refused.

    Example: edged-coordinator status --broker 192.0.2.1
    """
    with connected(context, config, broker, fleet) as client:
        data = client.demand(GetStatus()).data
    if as_json:
        _show.json(data)
        return
    for line in lines(data):
        _show.line(line)


def lines(data: Data) -> Iterator[str]:
    """The screen, from the top."""
    fleet = data["fleet"]
    yield f"coordinator on {data['host']}, edged {data['version']}, term {data['term']}"
    yield _link(data["link"])
    yield from _run(data)
    for alert in data.get("alerts") or ():
        yield f"alert: {alert['text']}" + (f" ({alert['way_out']})" if alert.get("way_out") else "")
    yield from _telemetry(data.get("telemetry"))
    for name in ("problem", "failure"):
        if data.get(name):
            yield f"{name}: {data[name]}"
    yield from _waiting(fleet)
    yield from _groups(data.get("run") or {})
    yield from _updates.lines(fleet.get("pushes") or {}, (fleet.get("last") or {}).get("waited") or {})
    turn = round_name(fleet.get("regime", ""))
    yield from _last(fleet.get("last") or {}, data.get("evaluation"), turn)
    yield from _boards(data["boards"])
    yield from _decisions(data["decisions"], turn)
    yield from _counters(data)


def _link(link: Data) -> str:
    protocol = f", MQTT {link['protocol']}" if link.get("protocol") else ""
    again = f", {link['reconnects']} reconnects" if link.get("reconnects") else ""
    return f"broker {link['host']}:{link['port']} {link['stage']}{protocol}{again}"


def _run(data: Data) -> Iterator[str]:
    run, fleet = data.get("run"), data["fleet"]
    if data.get("preparing"):
        yield f"run {data['preparing']} is being prepared"
    if run is None:
        if not data.get("preparing"):
            yield "no run; start one with `edged-coordinator run`"
        return
    settings = run["settings"]
    paused = ", to be paused" if run["paused"] and run["phase"] != "paused" else ""
    yield (
        f"run {run['run']}: {run['phase']}{paused}, "
        f"{round_name(settings['regime'])} {run['round']} of {settings['rounds']}"
        f"{_show.beyond(run['round'], settings['rounds'])}, "
        f"{run['accepted']:,} of {run['target']:,} samples accepted"
        + (f", {run['returned']:,} to be dealt again" if run.get("returned") else "")
    )
    yield (
        f"  task {settings['task']}, pool {settings['pool']}, regime {settings['regime']}, "
        f"policy {fleet['policy']}, w_t {_show.weight(fleet['w_t'])}, w_e {_show.weight(fleet['w_e'])}"
    )
    if run.get("reason"):
        yield f"  {run['reason']}"
    if run["paused"]:
        yield "  `edged-coordinator resume` goes on"
    if run.get("drained"):
        yield f"  drained: {', '.join(run['drained'])}"


def _telemetry(telemetry: Data | None) -> Iterator[str]:
    if telemetry is None:
        return
    waits = f"{telemetry['spool_bytes']:,} bytes wait on the disk"
    dropped = {lane: count for lane, count in telemetry["dropped"].items() if count}
    lost = "".join(f", {count:,} points of {lane} dropped" for lane, count in dropped.items())
    if telemetry["state"] == "stored":
        yield f"telemetry: {telemetry['url']} takes points, {waits}{lost}"
    else:
        yield f"telemetry: {telemetry['text']}; {waits}{lost}"


def _waiting(fleet: Data) -> Iterator[str]:
    waiting = fleet.get("waiting") or ()
    if waiting:
        yield "waiting for"
        rows = [
            [
                item["board"],
                item["what"],
                f"since {_show.duration(item['since_seconds'])}",
                "without a limit"
                if item.get("until_seconds") is None
                else f"at most {_show.duration(item['until_seconds'])} more",
            ]
            for item in waiting
        ]
        yield from _indented(["board", "what", "", ""], rows, heading=False)


def _groups(run: Data) -> Iterator[str]:
    """Ranks that step together, where their attempt failed or somebody is left out."""
    for name, group in (run.get("groups") or {}).items():
        left_out = ", ".join(f"{board} ({why})" for board, why in group["left_out"].items())
        if run["phase"] != "running" or not (group["failures"] or left_out):
            continue
        of = "the ranks" if name == ALL else f"silo {name}"
        yield f"{of}: attempt {group['attempt']}, {group['standing']}, with {', '.join(group['boards'])}"
        yield from (
            f"  attempt {number} failed: {why}" for number, why in enumerate(group["failures"], start=1)
        )
        if left_out:
            yield f"  left out of this round: {left_out}"


def _last(last: Data, evaluation: Data | None, turn: str) -> Iterator[str]:
    if not last:
        return
    joules = ", ".join(
        f"{_show.figure(value)} J {basis}" for basis, value in last["compute_joules_by_basis"].items()
    )
    unknown = last.get("joules_unknown_of") or []
    if "updates" in last:  # nobody waits for the longest board: a makespan would say nothing
        took = f"last {turn} {last['round']}: {_show.duration(last['wall_seconds'])}"
    else:
        took = f"last {turn} {last['round']}: makespan {_show.duration(last['makespan_seconds'])}"
        took += f" ({last['longest']})" if last.get("longest") else ""
        took += f", in all {_show.duration(last['wall_seconds'])}"
    yield (
        f"{took}; compute {joules or 'joules unknown'}"
        + (f", unknown of {', '.join(unknown)}" if unknown and joules else "")
    )
    if warning(last):
        yield f"  {warning(last)}"
    if evaluation:
        if evaluation.get("error"):
            yield f"held out: not known: {evaluation['error']}"
        else:
            accuracy, loss = evaluation.get("accuracy"), evaluation.get("loss")
            yield (
                f"held out after {turn} {evaluation['round']}: "
                f"accuracy {_show.percent(accuracy)}, loss {_show.figure(loss)}"
            )


def _boards(boards: Data) -> Iterator[str]:
    up = [name for name, board in boards.items() if board["link"] == "up"]
    yield f"boards: {len(up)} of {len(boards)} connected"
    lacking = [(name, board) for name, board in boards.items() if board["lack"] or board["link"] != "up"]
    for name, board in lacking:
        yield f"  {name}: {board['lack'] or 'link ' + board['link']}"


def _decisions(decisions: list[Data], turn: str) -> Iterator[str]:
    if decisions:
        yield "last decisions"
    for row in reversed(decisions):
        decision = row["decision"]
        shares = ", ".join(f"{board} {share:,}" for board, share in decision["shares"].items())
        yield f"  {turn} {row['round']}: {decision['reason']}"
        yield f"    {shares}"


def _counters(data: Data) -> Iterator[str]:
    odd = {board: counters for board, counters in data["counters"].items() if counters}
    yield "refused or odd, so far" if odd else "nothing was refused or odd"
    for board, counters in odd.items():
        yield f"  {'coordinator' if board == '-' else board}: {counted(counters)}"
        for name, text in (data.get("odd") or {}).get(board, {}).items():
            yield f"    {name.replace('_', ' ')}, last: {text}"
    own = data.get("board_counters") or {}
    if own:
        yield "what boards count themselves"
        for board, counters in own.items():
            yield f"  {board}: {counted(counters)}"


def _indented(columns: list[str], rows: list[list[str]], heading: bool = True) -> Iterator[str]:
    for line in _show.plain("", columns, rows, "<" * len(columns))[0 if heading else 1 :]:
        yield f"  {line}"
