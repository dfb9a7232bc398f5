"""One virtual board in motion: its process, its order and where its seconds and joules go."""

import random

from msgspec import structs

from coordinator.simulator.boards import VirtualBoard
from edged.controls import RunSettings
from edged.groups import Readiness, Rendezvous, Synchronous
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
        self.group = ""
        """The process group that it is in."""
        self.stepping = False

    @property
    def boot(self) -> str:
        """The present process."""
        return f"{self.spec.id}-{self.boot_count}"[-63:].lstrip("-_")

    def birth(self, settings: RunSettings, samples: int, link: str = "up") -> Birth:
        """What it announces."""
        pools = {settings.pool: PoolOffer(HASH, samples, (settings.task,))}
        return Birth(
            self.spec.id,
            self.boot,
            1,
            link,
            host="virtual",
            address="127.0.0.1",
            cores=round(self.spec.cores or 0),
            tasks={settings.task: HASH},
            pools=pools,
            silo=self.spec.silo or "",
        )

    def state(self, phase: str, term: int) -> State:
        """What it says of itself."""
        return State(self.spec.id, self.boot, 1, phase, self.order.order if self.order else None, term=term)

    def take(self, order: Train, now: float) -> None:
        """Take an order of a rank; its steps begin when all ranks are ready."""
        self.order, self.report, self.parts, self.stepping = order, None, Parts(), False
        self.began_seconds = self.idle_seconds = now

    def ready(self, ranks: Rendezvous) -> State:
        """It waits for the other ranks."""
        assert isinstance(self.order, Train)
        said = Readiness(self.order.order, ranks.plan, MODEL.sha256, "virtual", "127.0.0.1", 1, self.group)
        return structs.replace(self.state("training", self.order.term), ready=said)

    def steps_with(self, other: "Actor", now: float) -> bool:
        """Whether it waits in an exchange with the other, or is still to meet it."""
        mine = self.order.rendezvous if isinstance(self.order, Train) else None
        waits = now < self.idle_seconds or not self.stepping
        return mine is not None and waits and other.spec.id in mine.boards

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
        samples: int | None = None,
    ) -> float:
        """Take an order of so many seconds at so many watts, with seconds of waiting and of communication
        within its steps; `samples` where ranks changed their parts on the way. Answers when its report,
        which is kept in `report`, is ready."""
        samples = order.samples if samples is None else samples
        spec, (seconds, watts) = self.spec, drawn
        joules = spec.joules(watts, seconds)
        compute = Part(seconds, joules)
        ready = now + spec.download_seconds + seconds + wait + communication
        window, communication = communication, communication + spec.download_seconds + spec.upload_seconds
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
            samples,
            steps=steps or -(-order.samples // order.batch),
            parts=self.parts,
            energy=Energy(joules, "" if spec.metered else "no meter", "virtual", "board", BASIS),
            steady=Steady(samples, seconds, joules),
            manifest=MODEL,
            synchronous=self._synchronous(order, seconds + wait + window),
        )
        return ready

    def _synchronous(self, order: Train, window_seconds: float) -> Synchronous | None:
        ranks = order.rendezvous
        if ranks is None:
            return None
        return Synchronous(
            self.group,
            ranks.rank,
            ranks.world,
            sum(ranks.shares),
            0.0,
            window_seconds,
            self.parts.compute.seconds / 3,
            0.0,
            "virtual",
        )

    def learnt(self, loss_sum: float, sums: dict[str, float]) -> None:
        """Its order was really trained, with that loss and other sums over the samples."""
        assert self.report is not None
        self.report = structs.replace(self.report, loss_sum=loss_sum, metrics=sums)

    def give_up(self, now: float) -> None:
        """The order cannot be finished: what was done for it is lost."""
        if self.order is None:
            return
        seconds = max(0.0, now - self.began_seconds)
        self.idle_seconds, self.group, self.stepping = now, "", False
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
