"""`python -m edged.daemon JSON`: puts the board's parts together and serves until SIGTERM or SIGINT.

`edged run` checks the settings and becomes this process, so that the command line's libraries are not kept.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any

import msgspec

from edged import identity
from edged.agent import Agent, Stop
from edged.boards import BoardError
from edged.cargo import Cargo
from edged.child import Child
from edged.coach import Plan, Shelves
from edged.config import EXIT_CONFIG, Settings, password_file
from edged.emulation import emulation_of, estimate_of_this_board
from edged.hands import Hands
from edged.journal import Lines
from edged.link import LinkConfig
from edged.messages import EnergyChannel
from edged.notify import Notify
from edged.paho_link import PahoLink
from edged.plugs import hearing
from edged.reload import Start, again
from edged.runtime import Runtime
from edged.sizing import Sizing
from edged.stock import take_stock
from edged.topics import Topics
from edged.voice import Voice
from probes import load, load_all
from probes._outside import real_context
from probes.emulated import Activity
from probes.meter import Meter, Options, Preferences

log = logging.getLogger("edged")

EXIT_FAILED = 1
MOST_CHANNELS = 64
"""Of a birth: a machine with hundreds of rails does not fill the message."""


def main(text: str) -> int:
    """Serve with the settings of a Start in JSON. 0 after a clean end, 78 for what cannot be used here."""
    start = msgspec.json.decode(text, type=Start)
    settings = start.settings
    level = settings.log.level.upper()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=level, handlers=[handler])
    try:
        runtime = Runtime(settings.storage.runtime, f"{settings.board.fleet}-{settings.board.id}")
    except OSError as error:
        log.error("storage.runtime: %s: %s", error.filename, error.strerror)
        # Where no folder was asked for, no settings are at fault, and the next start may find one.
        return EXIT_CONFIG if settings.storage.runtime else EXIT_FAILED
    if runtime.reason:
        log.warning("models and updates lie in %s: %s", runtime.folder, runtime.reason)
    try:
        return serve(start, runtime)
    except BoardError as error:
        log.error("emulate.board: %s", error)
        return EXIT_CONFIG
    finally:
        runtime.close()


def serve(start: Start, runtime: Runtime) -> int:
    """Build the parts, run the loop, end them. Raises BoardError."""
    settings = start.settings
    queue: SimpleQueue[object] = SimpleQueue()
    activity = Activity()
    plan, energy = plan_of(settings), dict(settings.energy.probes)
    heed_signals(start, queue)
    me = identity.identify()
    voice = Voice(Topics(plan.fleet), plan.board, me)
    if settings.emulate.board:
        found = emulation_of(settings.emulate.board, settings.emulate.speed_scale)
        plan = msgspec.structs.replace(plan, seconds_per_sample=found.seconds_per_sample)
        energy["emulated"] = found.probe_options
        voice.change_birth(emulates=settings.emulate.board)
    elif "estimate" not in energy and (figures := estimate_of_this_board()):
        energy["estimate"] = figures
    meter = open_meter(settings, energy, activity)
    voice.change_birth(
        silo=settings.board.silo,
        # Where the broker has a name, the link tells once it is up: no name server holds up the start.
        address=identity.address_towards(settings.broker.host, settings.broker.port, look_up=False),
        channels=channels_of(meter),
    )
    voice.settle_birth()
    link = PahoLink(link_config(settings), voice.announcement, queue)
    voice.attach(link)
    hands = Hands(
        plan,
        voice=voice,
        meter=meter,
        cargo=Cargo(runtime.folder, voice.chunk),
        child=Child(queue),
        activity=activity,
        queue=queue,
        max_packet_bytes=lambda: link.max_packet_bytes,
        sizing=Sizing(sizes_file(runtime.folder)),
    )
    note = f"models lie in {runtime.folder}: {runtime.reason}" if runtime.reason else ""
    agent = Agent(plan, boot=me.boot, link=link, hands=hands, notify=Notify(), note=note)
    log.info("board %s of fleet %s, broker %s:%d", plan.board, plan.fleet, link.config.host, link.config.port)
    take_stock(plan.pools, plan.folders, queue)
    agent.run()
    meter.close()
    return 0


def heed_signals(start: Start, queue: SimpleQueue[object]) -> None:
    """Have signals put on the queue what they ask for. Early: a search for sensors takes seconds, and an end
    that is asked for meanwhile comes first out of the queue."""
    now = start

    def stop(number: int, frame: FrameType | None) -> None:
        queue.put(Stop(signal.Signals(number).name))

    def look_again(number: int, frame: FrameType | None) -> None:
        nonlocal now
        log.info("looking again at settings, pools and task files")
        now = again(now)
        plan = plan_of(now.settings)
        queue.put(Shelves(plan.pools, plan.folders))
        take_stock(plan.pools, plan.folders, queue)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGHUP, look_again)


def sizes_file(runtime: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Where it stands how many samples fit into memory: the service's folder outlives a reboot."""
    given = environment.get("STATE_DIRECTORY", "").split(":")[0]
    return (Path(given) if given else runtime) / "micro-batches.json"


def plan_of(settings: Settings) -> Plan:
    """What the loop needs of the settings. An emulated board gets one thread: it is paced anyway."""
    emulate = bool(settings.emulate.board)
    return Plan(
        board=settings.board.id,
        fleet=settings.board.fleet,
        pools={name: table.path for name, table in settings.data.items()},
        folders=(settings.tasks.folder,),
        threads=settings.training.threads or (1 if emulate else None),
        micro_batch=settings.training.micro_batch or None,
        emulate=emulate,
    )


def link_config(settings: Settings) -> LinkConfig:
    """The broker's table as the link takes it."""
    broker = settings.broker
    return LinkConfig(
        host=broker.host,
        port=broker.port,
        client_id=f"edged-{settings.board.fleet}-{settings.board.id}",
        username=broker.username or None,
        password_file=password_file(settings),
        tls=bool(broker.ca_file),
        ca_file=broker.ca_file or None,
        certificate_file=broker.certificate_file or None,
        key_file=broker.key_file or None,
        keepalive_seconds=broker.keepalive_seconds,
    )


def open_meter(settings: Settings, energy: dict[str, dict[str, Any]], activity: Activity) -> Meter:
    """A meter that samples; an emulated board's has no other sensor, so that no joule of this machine
    gets in.
    """
    table = settings.energy
    chosen = [load("emulated")] if settings.emulate.board else load_all(table.exclude)
    preferences = Preferences(prefer=table.prefer, exclude=table.exclude, count_psys=table.count_psys)
    try:
        plugs = None if settings.emulate.board else hearing(link_config(settings), energy)
    except ValueError as error:
        log.error("%s", error)
        plugs = None
    context = real_context(
        options=energy, activity=activity, mqtt_subscribe=plugs.subscribe if plugs is not None else None
    )
    meter = Meter(context, chosen, Options(preferences=preferences))
    meter.start()
    return meter


def channels_of(meter: Meter) -> tuple[EnergyChannel, ...]:
    """What a birth says of the sensors, those that do not work with their reason and remedy."""
    return tuple(
        EnergyChannel(
            id=found.channel.id if found.channel else found.source,
            scope=found.channel.scope if found.channel else "",
            basis=found.channel.basis if found.channel else "",
            kind=found.channel.kind if found.channel else "",
            headline=found.role == "headline",
            status=found.status,
            reason=" ".join(part for part in (found.reason, found.remedy) if part)[:500],
        )
        for found in meter.channels()[:MOST_CHANNELS]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
