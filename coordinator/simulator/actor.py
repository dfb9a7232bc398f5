"""One virtual board in motion: its process, its order and where its seconds and joules go."""

import random

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
        self.idle_seconds = 0.0
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

    def joules(self, watts: float, seconds: float) -> float | None:
        """Simulated joules; None for a board without a meter."""
        return watts * seconds if self.spec.metered else None

    def train(self, order: Train, now: float) -> float:
        """Take the order; answers when its report is ready. The report is kept in `report`."""
        spec = self.spec
        seconds = self._noisy(spec.fixed_seconds + order.samples / spec.speed(now))
        joules = self.joules(self._noisy(spec.active_watts), seconds)
        compute = Part(seconds, joules)
        communication = spec.download_seconds + spec.upload_seconds
        self.order = order
        self.idle_seconds = now + spec.download_seconds + seconds + spec.upload_seconds
        self.parts = Parts(compute, Part(communication, self.joules(spec.waiting_watts, communication)))
        self.report = Report(
            spec.id,
            self.boot,
            order.order,
            "trained",
            order.term,
            order.samples,
            steps=-(-order.samples // order.batch),
            parts=self.parts,
            energy=Energy(joules, "" if spec.metered else "no meter", "virtual", "board", BASIS),
            steady=Steady(order.samples, seconds, joules),
            manifest=MODEL,
        )
        return now + spec.download_seconds + seconds

    def attend(self, order: Attend, now: float) -> None:
        """Take an order without samples: only waiting comes of it."""
        self.order, self.idle_seconds, self.parts = order, now, Parts()
        energy = Energy(None, "no samples", "virtual", "board", BASIS)
        self.report = Report(self.spec.id, self.boot, order.order, "trained", order.term, energy=energy)

    def close(self, now: float) -> Report | None:
        """The whole parts of the order that ends now."""
        if self.order is None or self.report is None:
            return None
        wait = max(0.0, now - self.idle_seconds)
        parts = Parts(
            self.parts.compute,
            self.parts.communication,
            Part(wait, self.joules(self.spec.waiting_watts, wait)),
        )
        r, self.order, self.report = self.report, None, None
        return Report(r.board, self.boot, r.order, "closed", r.term, r.samples, r.steps, parts, r.energy)

    def _noisy(self, value: float) -> float:
        return value * max(0.1, self.rng.gauss(1.0, self.spec.noise)) if self.spec.noise else value
