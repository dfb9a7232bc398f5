"""The address and interface that other boards reach this one by, for gradients over gloo."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator

from edged.checks import Finding
from edged.identity import address_towards
from edged.reach import interface_of
from edged.regimes import TrainingError


def examine(host: str, port: int) -> Iterator[Finding]:
    """On the way to the broker at this address. Sends nothing but the look-up of names."""
    yield _address(address_towards(host, port), host)
    yield _own_name(socket.gethostname())


def _address(address: str, host: str) -> Finding:
    if not address:
        return Finding(
            "interface", "warn", f"no route to {host}", "check [broker] host, and this board's network"
        )
    found = ipaddress.ip_address(address.partition("%")[0])
    if found.version != 4:
        text = f"{address} is not IPv4, which gradients (ddp, hfl-ddp) need; models over MQTT do not"
        return Finding("interface", "warn", text, "name the broker by an IPv4 address")
    if found.is_loopback:
        text = f"{address}: in ddp and hfl-ddp only boards on this machine reach it"
        return Finding("interface", "ok", text, "name the broker by its address in the network")
    try:
        name = interface_of(address)
    except TrainingError as error:
        return Finding("interface", "warn", str(error), "is the network coming and going?")
    return Finding(
        "interface",
        "ok",
        f"{name}, {address} towards {host}; every port of it must be open to boards of a silo",
    )


def _own_name(name: str) -> Finding:
    try:
        address = socket.gethostbyname(name)
    except OSError:
        return Finding(
            "host name", "ok", f"{name} does not resolve; gloo is told the interface, so it need not"
        )
    if ipaddress.ip_address(address).is_loopback:
        text = f"{name} is {address} here; gloo is told the interface, so that does no harm"
        return Finding("host name", "ok", text)
    return Finding("host name", "ok", f"{name} is {address}")
