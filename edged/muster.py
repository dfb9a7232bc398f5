"""How a rank comes into its group: it says what it has, waits for the others, and forms or keeps the group.

The order's group is the coordinator's word (`join`); gloo itself is `edged.gloo`'s.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from msgspec.structs import replace

from edged import gloo, reach
from edged.groups import Readiness, Rendezvous
from edged.regimes import PeerError, TrainingError

if TYPE_CHECKING:
    import torch

    from edged.bench import Bench
    from edged.messages import Train


def muster(order: Train, ranks: Rendezvous, model: torch.nn.Module, bench: Bench) -> gloo.Group:
    """Ready, wait, and be in the group that the coordinator names. Raises TrainingError, PeerError."""
    import torch

    said = Readiness(order.order, ranks.plan, fingerprint(model), str(torch.__version__), bench.address)
    if ranks.world == 1:
        meet = bench.meet(said)
        _leave(bench)
        bench.met(meet.group)
        return gloo.Alone()
    unable = reach.incapable()
    if unable:
        raise TrainingError(unable)
    reach.interface_of(bench.address)
    held = bench.memory.group
    mine = held is not None and not held.broken and (held.boards, held.rank) == (ranks.boards, ranks.rank)
    with reach.listen(bench.address) as listener:
        port = int(listener.getsockname()[1])
        meet = bench.meet(replace(said, port=port, holds=held.name if held is not None and mine else ""))
        if meet.peers:
            _leave(bench)
            place = gloo.Place(meet.group, ranks.rank, ranks.boards, meet.peers)
            held = bench.memory.group = gloo.form(place, listener, meet.formation_seconds)
        elif held is None or not mine or held.name != meet.group:
            raise PeerError(f"this rank is not in the group {meet.group} that is to go on", ())
    bench.met(held.name)
    return held


def fingerprint(model: torch.nn.Module) -> str:
    """SHA-256 of names, shapes and dtypes in the order in which DDP goes through them."""
    lines = [f"{name} {tuple(value.shape)} {value.dtype}" for name, value in model.state_dict().items()]
    lines += [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _leave(bench: Bench) -> None:
    held, bench.memory.group = bench.memory.group, None
    if held is not None:
        held.close()
