"""A process group over gloo: forming it, and the exchanges that a regime needs of it.

It trains nothing and decides nothing. gloo's own messages carry no version, no byte order and no names: what
could differ is compared before (`muster`, ALGORITHMS 6).
"""

from __future__ import annotations

import os
import re
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from edged.groups import Peer
from edged.reach import interface_of, reach
from edged.regimes import PeerError

if TYPE_CHECKING:
    import torch
    from torch.nn.parallel import DistributedDataParallel

CHECK_NUMBERS = 128
"""1 kB of float64: the first all-reduce of a group, whose answer is known."""


class Alone:
    """A group of one: every exchange is with itself, no torch.distributed is needed."""

    name = ""
    world = 1

    def allow(self, seconds: float) -> None:
        """Nothing is waited for."""

    def wrap(self, model: torch.nn.Module) -> torch.nn.Module:
        """The model itself."""
        return model

    def backward(self, loss: torch.Tensor, handed: Callable[[], None]) -> None:
        """Gradients; then the hand-over to nobody."""
        loss.backward()  # type: ignore[no-untyped-call]
        handed()

    def apart(self) -> AbstractContextManager[None]:
        """Nothing is exchanged anyway."""
        return nullcontext()

    def sum(self, values: Sequence[float]) -> list[float]:
        """The values."""
        return list(values)

    def gather(self, values: Sequence[float]) -> list[list[float]]:
        """The values, as rank 0's."""
        return [list(values)]

    def take_over(self, tensors: Sequence[torch.Tensor]) -> float:
        """Rank 0's tensors are these."""
        return 0.0

    def share(self, data: bytes, source: int) -> bytes:
        """The data."""
        return data

    def close(self) -> None:
        """Nothing was opened."""


class Gloo:
    """A formed group. After any failure it is `broken` and of no further use: its process must end."""

    def __init__(self, place: Place, store: Any, seconds: float) -> None:
        self.name, self.rank = place.group, place.rank
        self.boards, self.world = place.boards, len(place.boards)
        self.broken = False
        self._seconds = seconds
        self._store = store  # rank 0's serves the others as long as it lives
        self._wrapped: tuple[torch.nn.Module, DistributedDataParallel] | None = None
        self._handed: Callable[[], None] | None = None

    def allow(self, seconds: float) -> None:
        """Let a collective take so long from now on."""
        import torch.distributed as dist

        if not set_timeout(dist.distributed_c10d._get_default_group(), seconds):
            text = f"this torch cannot change a group's time-out: it stays at {self._seconds:g} s"
            sys.stderr.write(f"edged.trainer: {text}\n")

    def wrap(self, model: torch.nn.Module) -> torch.nn.Module:
        """The model as torch's DistributedDataParallel, with a hook that hands over and sums: with a hook
        DDP does not divide, so a loss of sum / B_s gives the mean over the global batch (ALGORITHMS 5)."""
        from torch.nn.parallel import DistributedDataParallel

        if self._wrapped is None or self._wrapped[0] is not model:
            with self._collective(), warnings.catch_warnings():
                # Newer releases call the flag deprecated; what replaces it exchanges buffers here, which
                # older releases on other ranks would not.
                warnings.filterwarnings("ignore", message=".*broadcast_buffers", category=FutureWarning)
                wrapped = DistributedDataParallel(model, broadcast_buffers=False)
            # Not the method itself: torch compares its annotations with types that exist only with torch.
            wrapped.register_comm_hook(None, lambda state, bucket: self._hook(bucket))
            self._wrapped = (model, wrapped)
        return self._wrapped[1]

    def backward(self, loss: torch.Tensor, handed: Callable[[], None]) -> None:
        """Gradients summed over the ranks; `handed` is called right before the last bucket goes out. An
        error before anything was exchanged is this rank's own."""
        self._handed = handed
        try:
            loss.backward()  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            if self.broken:
                raise _lost(error) from None
            raise
        finally:
            self._handed = None

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Forward and backward in here exchange nothing: gradients add up until the next `backward`."""
        assert self._wrapped is not None
        with self._wrapped[1].no_sync():
            yield

    def sum(self, values: Sequence[float]) -> list[float]:
        """Sums over the ranks, in float64."""
        import torch
        import torch.distributed as dist

        tensor = torch.tensor(values, dtype=torch.float64)
        with self._collective():
            dist.all_reduce(tensor)
        return [float(value) for value in tensor]

    def gather(self, values: Sequence[float]) -> list[list[float]]:
        """Everybody's values, in rank order; equally many on every rank."""
        import torch
        import torch.distributed as dist

        mine = torch.tensor(values, dtype=torch.float64)
        found = [torch.empty_like(mine) for _ in range(self.world)]
        with self._collective():
            dist.all_gather(found, mine)
        return [[float(value) for value in tensor] for tensor in found]

    def take_over(self, tensors: Sequence[torch.Tensor]) -> float:
        """Make the tensors those of rank 0, bit for bit; the largest deviation that there was."""
        import torch
        import torch.distributed as dist

        deviation = 0.0
        for tensor in tensors:
            theirs = tensor.detach().clone().contiguous()
            with self._collective():
                dist.broadcast(theirs, 0)
            if theirs.is_floating_point() and theirs.numel():
                deviation = max(deviation, float((theirs - tensor.detach()).abs().max()))
            with torch.no_grad():
                tensor.copy_(theirs)
        return deviation

    def share(self, data: bytes, source: int) -> bytes:
        """The data of rank `source`."""
        import torch
        import torch.distributed as dist

        length = torch.tensor([len(data) if self.rank == source else 0], dtype=torch.int64)
        with self._collective():
            dist.broadcast(length, source)
        payload = torch.zeros(int(length), dtype=torch.uint8)
        if self.rank == source and data:
            payload = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        with self._collective():
            dist.broadcast(payload, source)
        return bytes(payload.numpy().tobytes())

    def close(self) -> None:
        """Leave the group; another may be formed in this process. Raises PeerError where it hangs on."""
        import torch.distributed as dist

        self._wrapped = None
        with self._collective():
            dist.destroy_process_group()
        self._store = None

    def _hook(self, bucket: Any) -> Any:
        import torch.distributed as dist

        if bucket.is_last() and self._handed is not None:
            self._handed()
        with self._collective():
            future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(self._settled)

    def _settled(self, future: Any) -> Any:
        try:
            return future.value()[0]
        except RuntimeError:
            self.broken = True
            raise

    @contextmanager
    def _collective(self) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, ValueError) as error:
            self.broken = True
            raise _lost(error) from None


Group = Alone | Gloo


class Place(Struct, frozen=True):
    """A rank's place in a group; `peers` and `boards` stand in rank order."""

    group: str
    rank: int
    boards: tuple[str, ...]
    peers: tuple[Peer, ...]


def form(place: Place, listener: socket.socket, seconds: float) -> Gloo:
    """The group, checked by an all-reduce of 1 kB with a known answer. Raises PeerError."""
    import torch.distributed as dist
    from torch._C._distributed_c10d import PrefixStore

    world, rank = len(place.boards), place.rank
    reach(place.peers, place.boards, rank)
    os.environ["USE_LIBUV"] = "0"  # Debian's build has none, and both ends must agree
    os.environ["GLOO_SOCKET_IFNAME"] = interface_of(place.peers[rank].address)
    limit = timedelta(seconds=seconds)
    try:
        store = _store(place, listener, limit)
        dist.init_process_group(
            "gloo", store=PrefixStore(place.group, store), rank=rank, world_size=world, timeout=limit
        )
    except (RuntimeError, ValueError) as error:
        raise _lost(error) from None
    group = Gloo(place, store, seconds)
    expected = [(i + 1) * world * (world + 1) / 2 for i in range(CHECK_NUMBERS)]
    if group.sum([(i + 1) * (rank + 1) for i in range(CHECK_NUMBERS)]) != expected:
        group.broken = True
        raise PeerError("the group's first sum is wrong: its builds of torch do not fit together", ())
    return group


def _store(place: Place, listener: socket.socket, limit: timedelta) -> Any:
    """Rank 0 serves where it has listened so far, so that no port can be taken in between."""
    from torch._C._distributed_c10d import TCPStore

    first = place.rank == 0
    where = place.peers[0].address, place.peers[0].port, len(place.boards)
    make = partial(TCPStore, *where, is_master=first, timeout=limit, wait_for_workers=False, use_libuv=False)
    return served(make, listener) if first else make()


def served(make: Callable[..., Any], listener: socket.socket) -> Any:
    """What `make` makes with the listening socket, or where it cannot take one, after it is closed."""
    held = os.dup(listener.fileno())
    try:
        return make(master_listen_fd=held)
    except TypeError:
        os.close(held)
        listener.close()
        return make()


def set_timeout(group: Any, seconds: float) -> bool:
    """Let the group's collectives take so long; False where this torch has lost that private way."""
    import torch

    try:
        group._get_backend(torch.device("cpu"))._set_default_timeout(timedelta(seconds=seconds))
    except AttributeError:
        return False
    return True


def _lost(error: BaseException) -> PeerError:
    return PeerError(f"another rank was lost: {in_words(error)}", ())


def in_words(error: BaseException) -> str:
    """What gloo says, without the places in its source and without guesses.

    Of "[…/pair.cc:553] Connection closed by peer [10.0.0.5]:40123. This is typically …" the middle is left.
    """
    text = " ".join(str(error).split())
    text = re.sub(r"^.*?\.(?:cc|cpp|h|hpp):\d+\]\s*", "", text)
    return re.split(r"\.? (?:This is typically|Check the logs|Exception raised from)", text)[0][:300]
