"""`edged-coordinator doctor`: broker, access list, disk, store, clocks, each with the way out."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import typer
from msgspec import Struct

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
from edged.controls import GetBoards, GetStatus
from edged.link import ASSUMED_MAX_PACKET_BYTES, LinkStatus
from edged.topics import Topics

Verdict = Literal["ok", "warn", "fail"]
SKEW_SECONDS = 5.0
LITTLE_DISK_BYTES = 1 << 30
NO_DISK_BYTES = 100 << 20
SMALLEST_PACKET_BYTES = 16 * 1024
MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


class Finding(Struct, frozen=True):
    """One thing that was looked at."""

    what: str
    verdict: Verdict
    text: str
    way_out: str = ""


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
            typer.echo(f"{MARKS[finding.verdict]}  {finding.what}: {finding.text}")
            if finding.way_out:
                typer.echo(f"      -> {finding.way_out}")
    if as_json:
        _show.json(findings)
    if any(finding.verdict == "fail" for finding in findings):
        raise typer.Exit(exits.FAILED)


def examine(config: Config, world: Outside) -> Iterator[Finding]:
    """All findings, each as soon as it is known."""
    broker = config.broker
    yield Finding("settings", "ok", f"fleet {config.fleet}, broker {broker.host}:{broker.port}")
    yield from _disk(config.store_folder())
    yield from _store(config.store_folder())
    yield from _pools(config)
    yield from _coordinator_link(config, world)
    try:
        with client_of(world, config) as client:
            yield from _coordinator(client)
    except NoBrokerError as error:
        yield Finding("broker", "fail", str(error), _way_out(str(error)))


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
    from coordinator.history import History

    try:
        history = History.open(folder)
        runs = len(history.runs())
        history.close()
    except FileNotFoundError:
        yield Finding("store", "ok", f"{folder}: none yet, the first start makes one")
    except sqlite3.Error as error:
        yield Finding("store", "fail", f"{folder}: {error}", "move it aside to begin a new one")
    else:
        yield Finding("store", "ok", f"{folder}: {runs} runs")


def _pools(config: Config) -> Iterator[Finding]:
    from edged import tasks

    for name, pool in config.data.items():
        if pool.path != str(tasks.BUILTIN) and not Path(pool.path).is_dir():
            yield Finding(
                f"pool {name}", "warn", f"{pool.path}: no such folder", "held-out figures will be missing"
            )
    if not config.data:
        yield Finding(
            "pools", "warn", "no [data.NAME] here", "training works, held-out figures will be missing"
        )


def _coordinator_link(config: Config, world: Outside) -> Iterator[Finding]:
    """The limits of the broker, and what its access list lets the coordinator's user hear."""
    from coordinator.reception import SUBSCRIPTIONS

    topics, name = Topics(config.fleet), client_name()
    link_config = config.broker.link(client_id(config.fleet, name))
    link = world.make_link(link_config)
    for route in SUBSCRIPTIONS:
        link.subscribe(topics.filter(route))
    try:
        with Client(link, link_config, config.fleet, name):
            yield from _limits(link.status())
    except NoBrokerError as error:
        yield Finding("broker", "fail", str(error), _way_out(str(error)))


def _limits(status: LinkStatus) -> Iterator[Finding]:
    place = f"{status.host}:{status.port}"
    if status.protocol == "3.1.1":
        yield Finding(
            "broker",
            "warn",
            f"{place} speaks MQTT 3.1.1 only, so its limits are not known",
            "mosquitto 2 speaks v5; with 3.1.1 refusals come without a reason",
        )
    else:
        yield Finding("broker", "ok", f"{place}, MQTT {status.protocol}")
    limit = status.max_packet_bytes
    said = "" if limit != ASSUMED_MAX_PACKET_BYTES else " (or did not say, and that is assumed)"
    if limit < SMALLEST_PACKET_BYTES:
        yield Finding(
            "packets", "fail", f"the broker takes {limit:,} bytes at most", "raise its max_packet_size"
        )
    else:
        yield Finding("packets", "ok", f"the broker takes {limit:,} bytes a message{said}")
    yield Finding("access list", "ok", "all subscriptions of a coordinator are granted")


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


def _way_out(error: str) -> str:
    for stage, words in (
        ("DNS", "check the name in [broker] host"),
        ("TCP", "is the broker running there, and the port open?"),
        ("TLS", "check ca_file, certificate_file and key_file in [broker]"),
        ("CONNACK", "check username and password_file in [broker]"),
        ("SUBACK", "let this user subscribe there in the broker's access list"),
    ):
        if f" {stage}" in error:
            return words
    return ""
