"""`edged-coordinator doctor`: broker, access list, disk, store, clocks, each with the way out."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import typer
from msgspec.structs import replace

from coordinator.cleaning import visible
from coordinator.client import Client, NobodyAnswersError, NoBrokerError, client_id, client_name
from coordinator.commands import _show, exits
from coordinator.commands._surroundings import (
    BrokerOption,
    ConfigOption,
    FleetOption,
    JsonOption,
    Outside,
    client_of,
    outside,
    settings,
    told,
)
from coordinator.config import Config
from edged.checks import Finding, written
from edged.checks.broker import echoed, limits, way_out
from edged.controls import GetBoards, GetStatus
from edged.topics import Topics

SKEW_SECONDS = 5.0
LITTLE_DISK_BYTES = 1 << 30
NO_DISK_BYTES = 100 << 20


@told
def doctor(
    context: typer.Context,
    *,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at all that a run needs: broker and its limits, access list, disk, store, boards and clocks.

    Ends with 0 when nothing fails, else with 1.

    Example: edged-coordinator doctor --config /etc/edged/coordinator.toml
    """
    found = settings(config, broker, fleet)
    findings: list[Finding] = []
    for finding in examine(found, outside(context)):
        findings.append(finding)
        if not as_json:
            typer.echo(_shown(finding))
    if as_json:
        _show.json(findings)
    if any(finding.verdict == "fail" for finding in findings):
        raise typer.Exit(exits.FAILED)


def _shown(finding: Finding) -> str:
    """Boards and brokers have a say in its words."""
    words = {name: visible(getattr(finding, name)) for name in ("what", "text", "way_out")}
    return written(replace(finding, **words))


def examine(config: Config, world: Outside) -> Iterator[Finding]:
    """All findings, each as soon as it is known."""
    broker = config.broker
    yield Finding("settings", "ok", f"fleet {config.fleet}, broker {broker.host}:{broker.port}")
    yield from _disk(config.store_folder())
    yield from _store(config.store_folder())
    yield from _pools(config)
    links = list(_coordinator_link(config, world))
    yield from links
    if any(finding.verdict == "fail" and finding.what == "broker" for finding in links):
        return  # an operator's link would meet the same
    try:
        with client_of(world, config) as client:
            yield from _coordinator(client)
    except NoBrokerError as error:
        yield Finding("broker", "fail", str(error), way_out(str(error)))


def _disk(folder: Path) -> Iterator[Finding]:
    there = next((path for path in (folder, *folder.parents) if path.exists()), None)
    if there is None:
        return
    free = shutil.disk_usage(there).free
    text = f"{free / (1 << 30):,.1f} GiB free at {there}"
    if free < NO_DISK_BYTES:
        yield Finding("disk", "fail", text, "free some space, or set another [store] folder")
    elif free < LITTLE_DISK_BYTES:
        yield Finding("disk", "warn", text, "runs of large models need two models and their updates")
    else:
        yield Finding("disk", "ok", text)


def _store(folder: Path) -> Iterator[Finding]:
    """The one that these settings name; a coordinator that runs elsewhere has another, and tells of it."""
    from coordinator.history import History

    where = f"{folder}, where a coordinator started with these settings keeps its runs"
    try:
        history = History.open(folder)
        runs = len(history.runs())
        history.close()
    except FileNotFoundError:
        yield Finding("store", "ok", f"{where}: there is none yet, the first start makes one")
    except sqlite3.Error as error:
        yield Finding("store", "fail", f"{folder}: {error}", "move it aside to begin a new one")
    else:
        yield Finding("store", "ok", f"{where}: {runs} runs")


def _pools(config: Config) -> Iterator[Finding]:
    from edged import tasks

    for name, pool in config.data.items():
        if pool.path != str(tasks.BUILTIN) and not Path(pool.path).is_dir():
            yield Finding(
                f"pool {name}", "warn", f"{pool.path}: no such folder", "held-out figures will be missing"
            )
    if not config.data:
        yield Finding(
            "pools",
            "warn",
            "no [data.NAME] in these settings",
            "built-in data have held-out figures all the same, runs on others will have none",
        )


def _coordinator_link(config: Config, world: Outside) -> Iterator[Finding]:
    """The limits of the broker, and what its access list lets the coordinator's user hear."""
    from coordinator.reception import SUBSCRIPTIONS

    topics, name = Topics(config.fleet), client_name()
    link_config = config.broker.link(client_id(config.fleet, name))
    link = world.make_link(link_config)
    for route in SUBSCRIPTIONS:
        link.subscribe(topics.filter(route))
    # Nobody listens to either: no board is called so, and the client is this one.
    words = (topics.of("echo", board=name), topics.of("reply", client=name))
    link.subscribe(words[0])
    try:
        with Client(link, link_config, config.fleet, name):
            yield from limits(link.status())
            # A broker may grant a subscription and yet deliver nothing.
            faults = (echoed(link, word, link_config.echo_seconds, []) for word in words)
            fault = next((fault for fault in faults if fault), "")
            if fault:
                yield Finding("access list", "fail", fault, way_out(fault))
            else:
                text = "all subscriptions of a coordinator are granted, and words to the fleet came back"
                yield Finding("access list", "ok", text)
    except NoBrokerError as error:
        yield Finding("broker", "fail", str(error), way_out(str(error)))


def _coordinator(client: Client) -> Iterator[Finding]:
    try:
        status = client.demand(GetStatus()).data
    except NobodyAnswersError as error:
        yield Finding("coordinator", "warn", str(error), "edged-coordinator serve")
        return
    yield Finding(
        "coordinator", "ok", f"on {status['host']}, edged {status['version']}, term {status['term']}"
    )
    if status.get("problem"):
        yield Finding("its store", "fail", status["problem"], "free space there; the run waits for it")
    boards = client.demand(GetBoards()).data["boards"]
    if not boards:
        yield Finding(
            "boards", "warn", "none was heard of", "edged run on a board, with this broker and fleet"
        )
    for row in boards:
        yield from _board(row)


def _board(row: dict[str, object]) -> Iterator[Finding]:
    name = f"board {row['board']}"
    if row["link"] != "up":
        yield Finding(name, "warn", f"link {row['link']}", "edged-coordinator boards forget, if it is gone")
        return
    found: list[Finding] = []
    skew = row.get("skew_seconds")
    if isinstance(skew, float | int) and abs(skew) > SKEW_SECONDS:
        text = f"its clock is {abs(skew):,.0f} s {'ahead' if skew > 0 else 'behind'}"
        found.append(Finding(name, "warn", text, "timedatectl set-ntp true on the board"))
    if row.get("lack"):
        found.append(Finding(name, "warn", f"takes no part: {row['lack']}"))
    if not row.get("basis"):
        found.append(Finding(name, "warn", "no energy sensor", "edged doctor on the board"))
    if row.get("throttled"):
        found.append(Finding(name, "warn", f"throttled: {row['throttled']}", "cooling, supply"))
    yield from found
    if not found:
        shown = "clock not heard" if skew is None else f"clock within {SKEW_SECONDS:g} s"
        yield Finding(name, "ok", f"connected, {shown}, joules {row.get('basis')}")
