"""Has an asynchronous update applied on a worker thread, and tells the run what came of it.

What is done to the files is `application`'s, when and by how much the run's.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from coordinator import application
from coordinator import events as ev
from edged.messages import Manifest
from edged.weights import WeightsError

if TYPE_CHECKING:
    from coordinator.server import Server


def apply(server: "Server", effect: ev.Apply, done: Callable[[ev.Apply], object]) -> None:
    """Make the version; `done` hears of it before the run does."""
    assert server.rounds is not None
    chunk_bytes = server.rounds.state.manifest.chunk_bytes
    checkpoints = server.store.checkpoints
    base, update = checkpoints.model(effect.base), checkpoints.update(effect.order)
    target = checkpoints.model(effect.version)
    before = checkpoints.velocity(effect.base) if number(effect.base) else None
    velocity = (before, checkpoints.velocity(effect.version))

    def make() -> Manifest:
        if effect.grain == "model":
            return application.mix(base, update, target, chunk_bytes, effect.rate)
        return application.descend(
            base,
            update,
            target,
            chunk_bytes,
            effect.rate,
            weight_decay=effect.weight_decay,
            momentum=effect.momentum,
            velocity=velocity,
        )

    def made(result: object) -> None:
        if isinstance(result, Manifest):
            done(effect)
            server.feed(ev.Applied(effect.version, result))
        else:
            text = result.strerror if isinstance(result, OSError) else str(result)
            unusable = isinstance(result, WeightsError) and update.exists()
            server.feed(ev.ApplyFailed(effect.version, text or type(result).__name__, unusable))

    server.work(make, made)


def number(version: str) -> int:
    """How many updates are in a version."""
    return int(version.rpartition(".")[2])
