"""The processes that train together: torch.distributed's default group, or this one alone.

What they tell each other is one small message of a fixed length each; nothing of theirs is ever run.
"""

from __future__ import annotations

import os
from typing import TypeVar

import msgspec

MESSAGE_BYTES = 1024
T = TypeVar("T", bound=msgspec.Struct)


class Ranks:
    """Rank `rank` of `world`."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world

    @classmethod
    def here(cls) -> Ranks:
        """Raises RuntimeError where torchrun started several processes that have not met yet."""
        import torch.distributed as dist

        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        if int(os.environ.get("WORLD_SIZE") or 1) > 1:
            raise RuntimeError(
                "WORLD_SIZE says that there are several ranks, but they have not met: call "
                "torch.distributed.init_process_group() first"
            )
        return cls(0, 1)

    def gather(self, said: T) -> list[T]:
        """Everybody's, by rank: collective. Raises RuntimeError where a rank is lost or elsewhere."""
        if self.world == 1:
            return [said]
        import torch
        import torch.distributed as dist

        text = msgspec.json.encode(said)
        if len(text) > MESSAGE_BYTES:
            raise ValueError(f"a message of {len(text)} bytes is above {MESSAGE_BYTES}")
        on = f"cuda:{torch.cuda.current_device()}" if dist.get_backend() == "nccl" else "cpu"
        mine = torch.tensor(list(text.ljust(MESSAGE_BYTES)), dtype=torch.uint8, device=on)
        found = [torch.empty_like(mine) for _ in range(self.world)]
        dist.all_gather(found, mine)
        return [self._read(rank, bytes(one.tolist()), type(said)) for rank, one in enumerate(found)]

    @staticmethod
    def _read(rank: int, text: bytes, wanted: type[T]) -> T:
        try:
            return msgspec.json.decode(text, type=wanted)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RuntimeError(
                f"rank {rank} is elsewhere in its loop, or has another version of edged: {error}"
            ) from None
