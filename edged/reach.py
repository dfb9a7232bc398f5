"""What a machine and its network must be for synchronous gradients, and who reaches whom. Forms no group.

gloo itself only says that its mesh failed; here the pair is named (ALGORITHMS 6.2).
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from edged.groups import Peer
from edged.regimes import PeerError, TrainingError

REACH_SECONDS = 5.0
_SIOCGIFADDR = 0x8915


def incapable() -> str:
    """Why this machine cannot take part in a group at all, "" if it can."""
    import torch.distributed as dist

    bits = 8 * struct.calcsize("P")
    if bits != 64 or sys.byteorder != "little":
        return f"gloo needs a 64-bit little-endian system, this is {bits}-bit {sys.byteorder}-endian"
    if not dist.is_available() or not dist.is_gloo_available():
        return "this torch build has no gloo (torch.distributed); `edged doctor` says which build has"
    return ""


def interface_of(address: str) -> str:
    """The network interface with that IPv4 address. Raises TrainingError where there is none."""
    import fcntl

    try:
        wanted = socket.inet_aton(address)
    except OSError:
        raise TrainingError(
            f"gradients need an IPv4 address towards the broker, this board has {address or 'none'}"
        ) from None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                found = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # an interface without an IPv4 address
            if found[20:24] == wanted:
                return name
    if wanted[0] == 127:
        return "lo"
    raise TrainingError(f"no network interface has the address {address} any more")


def listen(address: str) -> socket.socket:
    """A socket at a free port of that address: the store's on rank 0, on the others for the test of reach."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind((address, 0))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise TrainingError(f"cannot listen at {address}: {error.strerror}") from None
    return listener


def reach(peers: Sequence[Peer], boards: Sequence[str], rank: int, seconds: float = REACH_SECONDS) -> None:
    """Connect to every peer's port once. Raises PeerError naming the pairs that fail.

    A rank that fails goes on listening for a while: its end must not look to the others like a third fault.
    """
    others = [other for other in range(len(peers)) if other != rank]
    with ThreadPoolExecutor(max(1, len(others))) as pool:
        faults = list(pool.map(lambda other: _fault(peers[other], seconds), others))
    failed = {
        boards[other]: (peers[other], fault) for other, fault in zip(others, faults, strict=True) if fault
    }
    if not failed:
        return
    time.sleep(seconds)
    pairs = [
        f"{boards[rank]} cannot reach {board} at {peer.address}:{peer.port} ({fault})"
        for board, (peer, fault) in failed.items()
    ]
    raise PeerError("; ".join(pairs), tuple(failed))


def _fault(peer: Peer, seconds: float) -> str:
    try:
        socket.create_connection((peer.address, peer.port), seconds).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""
