"""Who this board is: its process, its host, its hardware. Read once at start; `root` stands for `/`."""

import os
import platform
import secrets
import socket
from pathlib import Path

from msgspec import Struct


class Identity(Struct, frozen=True):
    """What a birth says of a board; unknown is "" or 0."""

    boot: str
    host: str
    arch: str
    model: str
    cores: int
    memory_bytes: int


def identify(root: Path = Path("/")) -> Identity:
    """This board. `boot` is random: it names this process, not the machine."""
    return Identity(
        boot=secrets.token_hex(8),
        host=socket.gethostname(),
        arch=platform.machine(),
        model=board_model(root),
        cores=os.cpu_count() or 0,
        memory_bytes=memory_bytes(root),
    )


def board_model(root: Path) -> str:
    """The board's own name: of its device tree (Arm, RISC-V), else of its firmware (x86)."""
    for name in ("proc/device-tree/model", "sys/class/dmi/id/product_name"):
        try:
            return (root / name).read_text(errors="replace").strip("\0 \n")[:200]
        except OSError:
            continue
    return ""


def memory_bytes(root: Path) -> int:
    """Physical memory, 0 if the kernel does not say."""
    try:
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass  # 0 means unknown
    return 0


def address_towards(host: str, port: int, *, look_up: bool = True) -> str:
    """This board's address on the route to that host, "" if there is no route. Sends nothing; with `look_up`
    a name is looked up, which may take a name server's whole patience, else it has no route.
    """
    flags = 0 if look_up else socket.AI_NUMERICHOST
    try:
        family, _, _, _, peer = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=flags)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(peer)
            return str(probe.getsockname()[0])
    except OSError:
        return ""
