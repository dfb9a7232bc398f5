"""`edged-coordinator install`, `provision` and `uninstall`, step by step: broker, service, passwords."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from coordinator import provisioning
from coordinator.config import PATH, SAMPLE, Config, ConfigError, parse
from edged.identity import address_towards
from edged.install import board as boards
from edged.install import units
from edged.install.machine import InstallError, Machine
from edged.topics import VALID_ID

NAME: Final = boards.COORDINATOR
FILE: Final = str(PATH)
SECRET: Final = "/etc/edged/credentials/coordinator-password"
BROKER: Final = "/etc/mosquitto"
DROP_IN: Final = f"{BROKER}/conf.d/edged.conf"
PASSWORDS: Final = f"{BROKER}/edged.passwords"
ACCESS: Final = f"{BROKER}/edged.access"
STATE: Final = "/var/lib/edged-coordinator"
SOMEWHERE: Final = "192.0.2.1"


class Wish(Struct, frozen=True):
    """What was asked for; `host` is what boards are told, empty: this machine's address."""

    fleet: str = "main"
    port: int = 1883
    host: str = ""
    torch: str = "no"
    wheel: Path | None = None
    wheels: str = ""


def install(machine: Machine, wish: Wish) -> Iterator[str]:
    """Broker and service. Raises InstallError; a second time mends, and changes no password."""
    units.need_systemd(machine)
    _need_id("--fleet", wish.fleet)
    _need_broker(machine, wish.port)
    release = boards.Wish(torch=wish.torch, wheel=wish.wheel, wheels=wish.wheels)
    changed = yield from boards.put_release(machine, release)
    units.put(machine, NAME)
    machine.folder("/etc/edged")
    machine.folder("/etc/edged/tasks")
    password = (machine.read(SECRET) or "").strip() or provisioning.new_password()
    _put_secret(machine, password)
    yield from _put_settings(machine, wish)
    yield from _put_broker(machine, wish, password)
    yield from units.start(machine, NAME)
    if changed and machine.exists(units.UNIT):
        yield from units.start(machine, units.NAME)
    yield (
        "the next board: its own name in the place of BOARD, and then the line that this prints:\n"
        f"  sudo {NAME} provision BOARD"
    )


def provision(machine: Machine, board: str, *, again: bool, host: str) -> Iterator[str]:
    """A password and rules of its own for a board; yields the line to run there. Raises InstallError."""
    _need_id("BOARD", board)
    passwords, access = machine.read(PASSWORDS), machine.read(ACCESS)
    if passwords is None or access is None:
        raise InstallError(f"{PASSWORDS} is not there: sudo {NAME} install first")
    if board == provisioning.COORDINATOR:
        raise InstallError(f"{board} is the coordinator's own name at the broker; choose another")
    if board in provisioning.users(passwords) and not again:
        raise InstallError(
            f"{board} has a password already; is that another board? --again makes a new one in its place"
        )
    config = _settings(machine)
    password = provisioning.new_password()
    _put_for_broker(machine, PASSWORDS, provisioning.with_password(passwords, board, password))
    rules = provisioning.board_rules(config.fleet, board)
    _put_for_broker(machine, ACCESS, provisioning.with_rules(access, board, rules))
    if machine.live:
        # It reads both files again; one that does not run will, when it starts.
        machine.run("systemctl", "kill", "--signal=HUP", "mosquitto.service")
    place = host or _address()
    fleet = "" if config.fleet == "main" else f" --fleet {config.fleet}"
    yield (
        f"on {board}, after `pipx install edged`:\n"
        f'  echo {password} | sudo "$(command -v edged)" install --broker {place}:{config.broker.port} '
        f"--board {board}{fleet} --password-file - --pool NAME=PATH"
    )


def uninstall(machine: Machine, purge: bool) -> Iterator[str]:
    """Service, broker settings; with `purge` runs and passwords too. Boards and mosquitto itself stay."""
    yield from units.remove(machine, NAME)
    shared = machine.exists(units.UNIT)
    if machine.remove(DROP_IN) and machine.live:
        machine.run("systemctl", "restart", "mosquitto.service")
    if purge:
        for path in (PASSWORDS, ACCESS, FILE, f"{FILE}.new", SECRET):
            machine.remove(path)
        boards.remove_data(machine, STATE, NAME)
    yield from boards.remove_releases(machine, shared, purge)
    if not purge:
        yield f"{FILE}, {PASSWORDS} and {STATE} stay; `--purge` removes them too"


def _need_id(what: str, name: str) -> None:
    if not VALID_ID.match(name):
        raise InstallError(f"{what} {name!r}: a-z, 0-9, - and _ only, at most 63 characters", 2)


def _need_broker(machine: Machine, port: int) -> None:
    """Raises InstallError where mosquitto is missing, or has that port by somebody else's settings."""
    if not any(machine.exists(path) for path in ("/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto")):
        raise InstallError("mosquitto is not installed: apt install mosquitto, then run this again", 69)
    for name in ("mosquitto.conf", *(f"conf.d/{name}" for name in machine.names(f"{BROKER}/conf.d"))):
        path = f"{BROKER}/{name}"
        for line in (machine.read(path) or "").splitlines() if path != DROP_IN else ():
            words = line.split()
            if words[:1] in (["listener"], ["port"]) and words[1:2] == [str(port)]:
                text = f"{path} has `{line.strip()}` already; choose another: --port {port + 1}"
                raise InstallError(text, 78)


def _put_secret(machine: Machine, password: str) -> None:
    """Root's and the service's group's: members of it may use the operator's commands."""
    machine.folder("/etc/edged/credentials", 0o711)
    machine.write(SECRET, password + "\n", 0o640, secret=True)
    machine.run("chgrp", NAME, SECRET)


def _put_settings(machine: Machine, wish: Wish) -> Iterator[str]:
    there = machine.read(FILE)
    if there is None:
        text = SAMPLE.replace('fleet = "main"', f"fleet = {json.dumps(wish.fleet)}")
        text = text.replace('host = "localhost"', 'host = "127.0.0.1"')
        text = text.replace("port = 1883", f"port = {wish.port}")
        text = text.replace('# username = "coordinator"', f'username = "{provisioning.COORDINATOR}"')
        text = text.replace('# password_file = "/etc/edged/password"', f'password_file = "{SECRET}"')
        machine.write(FILE, text)
        yield f"{FILE}: written"
    else:
        found = parse(there.encode(), FILE) if _usable(there) else Config()
        same = (found.fleet, found.broker.port) == (wish.fleet, wish.port)
        yield f"{FILE}: kept" + ("" if same else f"; it says fleet {found.fleet}, port {found.broker.port}")


def _usable(text: str) -> bool:
    try:
        parse(text.encode(), FILE)
    except ConfigError as error:
        raise InstallError(str(error), 78) from None
    return True


def _settings(machine: Machine) -> Config:
    text = machine.read(FILE) or ""
    return parse(text.encode(), FILE) if _usable(text) else Config()


def _put_broker(machine: Machine, wish: Wish, password: str) -> Iterator[str]:
    fleet = _settings(machine).fleet if machine.exists(FILE) else wish.fleet
    passwords, access = machine.read(PASSWORDS) or "", machine.read(ACCESS) or ""
    if provisioning.COORDINATOR not in provisioning.users(passwords):
        passwords = provisioning.with_password(passwords, provisioning.COORDINATOR, password)
    rules = provisioning.coordinator_rules(fleet)
    _put_for_broker(machine, PASSWORDS, passwords)
    _put_for_broker(machine, ACCESS, provisioning.with_rules(access, provisioning.COORDINATOR, rules))
    own = machine.read(f"{BROKER}/mosquitto.conf") or ""
    kept = any(line.split()[:1] == ["persistence"] for line in own.splitlines())
    text = provisioning.broker_settings(wish.port, BROKER, persistence=not kept)
    machine.write(DROP_IN, text)
    if machine.live:
        machine.run("systemctl", "restart", "mosquitto.service", fault="mosquitto does not start")
    yield f"mosquitto: listens on port {wish.port}, with passwords; {DROP_IN}"


def _put_for_broker(machine: Machine, path: str, text: str) -> None:
    """Readable by the broker's user and root alone; the hashes in it are no one else's business."""
    if machine.write(path, text, 0o640, secret=True):
        machine.run("chgrp", "mosquitto", path)


def _address() -> str:
    return address_towards(SOMEWHERE, 9) or socket.gethostname()
