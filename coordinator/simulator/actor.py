"""One virtual board in motion: its process, its order and where its seconds and joules go."""

import random

from msgspec import structs

from coordinator.simulator.boards import VirtualBoard
from edged.controls import RunSettings
from edged.messages import (
    Attend,
    Birth,
    Energy,
    Manifest,
    Part,
    Parts,
    PoolOffer,
    Report,
    State,
    Steady,
    Train,
)

BASIS = "simulated"
MODEL = Manifest(length_bytes=1, chunk_bytes=1, sha256="0" * 64)
HASH = "virtual"


class Actor:
    """A board's process and what it would say; `world` decides when."""

    def __init__(self, spec: VirtualBoard, rng: random.Random) -> None:
        self.spec, self.rng = spec, rng
        self.boot_count = 0
        self.order: Train | Attend | None = None
        self.began_seconds = self.idle_seconds = self.watts = 0.0
        self.parts = Parts()
        self.report: Report | None = None
        self.alive = True

    @property
    def boot(self) -> str:
        """The present process."""
        return f"{self.spec.id}-{self.boot_count}"[-63:].lstrip("-_")

    def birth(self, settings: RunSettings, samples: int, link: str = "up") -> Birth:
        """What it announces."""
        pools = {settings.pool: PoolOffer(HASH, samples, (settings.task,))}
        cores = round(self.spec.cores or 0)
        return Birth(self.spec.id, self.boot, 1, link, cores=cores, tasks={settings.task: HASH}, pools=pools)

    def state(self, phase: str, term: int) -> State:
        """What it says of itself."""
        return State(self.spec.id, self.boot, 1, phase, self.order.order if self.order else None, term=term)

    def train(self, order: Train, now: float) -> float:
        """Take the order and train it alone; answers when its report is ready."""
        seconds, watts = self.spec.draw(self.rng, now, order.samples)
        return self.spend(order, now, (seconds, watts))

    def spend(
        self,
        order: Train,
        now: float,
        drawn: tuple[float, float],
        *,
        wait: float = 0.0,
        communication: float = 0.0,
        steps: int | None = None,
    ) -> float:
        """Take an order of so many seconds at so many watts, with seconds of waiting and of communication
        within its steps. Answers when its report, which is kept in `report`, is ready."""
        spec, (seconds, watts) = self.spec, drawn
        joules = spec.joules(watts, seconds)
        compute = Part(seconds, joules)
        ready = now + spec.download_seconds + seconds + wait + communication
        communication += spec.download_seconds + spec.upload_seconds
        self.order, self.began_seconds, self.watts = order, now, watts
        self.idle_seconds = ready + spec.upload_seconds
        self.parts = Parts(
            compute,
            Part(communication, spec.joules(spec.link_watts, communication)),
            Part(wait, spec.joules(spec.waiting_watts, wait)),
        )
        self.report = Report(
            spec.id,
            self.boot,
            order.order,
            "trained",
            order.term,
            order.samples,
            steps=steps or -(-order.samples // order.batch),
            parts=self.parts,
            energy=Energy(joules, "" if spec.metered else "no meter", "virtual", "board", BASIS),
            steady=Steady(order.samples, seconds, joules),
            manifest=MODEL,
        )
        return ready

    def learnt(self, loss_sum: float, sums: dict[str, float]) -> None:
        """Its order was really trained, with that loss and other sums over the samples."""
        assert self.report is not None
        self.report = structs.replace(self.report, loss_sum=loss_sum, metrics=sums)

    def give_up(self, now: float) -> None:
        """The order cannot be finished: what was done for it is lost."""
        if self.order is None:
            return
        seconds = max(0.0, now - self.began_seconds)
        self.idle_seconds = now
        self.parts = Parts(lost=Part(seconds, self.spec.joules(self.watts, seconds)))
        energy = Energy(None, "nothing was computed that counts", "virtual", "board", BASIS)
        self.report = Report(
            self.spec.id, self.boot, self.order.order, "trained", self.order.term, energy=energy
        )

    def attend(self, order: Attend, now: float) -> None:
        """Take an order without samples: only waiting comes of it."""
        self.order, self.idle_seconds, self.parts = order, now, Parts()
        energy = Energy(None, "no samples", "virtual", "board", BASIS)
        self.report = Report(self.spec.id, self.boot, order.order, "trained", order.term, energy=energy)

    def close(self, now: float) -> Report | None:
        """The whole parts of the order that ends now."""
        if self.order is None or self.report is None:
            return None
        wait = self.parts.wait.seconds + now - self.idle_seconds
        wait = wait if wait > 1e-9 * (1 + now) else 0.0  # what is left by rounding is no waiting
        waited = Part(wait, self.spec.joules(self.spec.waiting_watts, wait))
        parts = Parts(self.parts.compute, self.parts.communication, waited, self.parts.lost)
        r, self.order, self.report = self.report, None, None
        return Report(r.board, self.boot, r.order, "closed", r.term, r.samples, r.steps, parts, r.energy)
