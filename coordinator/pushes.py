"""What a run keeps of its asynchronous updates: by board over the whole run, by board within a period. Pure.

A push is an order, its report and its update. Here are values and sums; what follows of an event stands in
`asynchronous`, rows and the turn of a period in `periods`.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from coordinator.controller import staleness
from edged.controls import AsynchronousSettings, RunSettings
from edged.messages import Part, Parts, Report
from edged.orders import GRAINS

REGIME = "asp"
SCALES = ("batch", "none")
MOST_AGES = 48
LARGEST_GRADIENT_BYTES = 8_000_000
"""A push per batch moves the whole model there and back: above this it is refused unless it is asked for."""


class Pusher(Struct):
    """A board over the run. `clock` counts its accepted updates, from those of the slowest when it joined."""

    sequence: int = 0
    """Of its newest order; the number in that order's id."""
    clock: int = 0
    updates: int = 0
    samples: int = 0
    dropped: int = 0
    staleness: dict[int, int] = {}
    """Versions an update was old when it was applied -> so many updates."""
    failures: int = 0
    """Orders in a row that came to nothing; a push that was only too old is none."""
    holding: str = ""
    """Its newest order to wait for a slower board, until the account of that is closed."""
    not_before: float = 0.0


class Tally(Struct):
    """A board within a period. Samples are accepted ones; seconds and joules those of their compute."""

    updates: int = 0
    samples: int = 0
    dropped: int = 0
    lost: int = 0
    returned: int = 0
    staleness: dict[int, int] = {}
    steps: int = 0
    seconds: float = 0.0
    joules: dict[str, float] = {}
    """By basis."""
    unmetered: str = ""
    """Why the joules of some update are not known."""
    scope: str = ""
    flags: list[str] = []
    loss_sum: float | None = None
    peak_memory_bytes: int = 0
    behind_pace_steps: int = 0
    steady_samples: int = 0
    steady_seconds: float = 0.0
    steady_joules: float | None = 0.0
    parts: Parts = Parts()
    """Of the orders whose accounts were closed within the period."""
    closed: int = 0
    held: Part = Part(0.0, 0.0)
    """Of these, waiting for a slower board."""
    order: str = ""
    """The newest accepted one."""
    reason: str = ""
    """Why the newest lost one was lost."""


class Pushes(Struct):
    """The asynchronous side of a run; times are those of the run's state."""

    settings: AsynchronousSettings
    boards: dict[str, Pusher] = {}
    members: list[str] = []
    """Boards that take part: they have an order, or could have one."""
    left: list[str] = []
    """Boards that the policy gave up."""
    tallies: dict[str, Tally] = {}
    pending: list[str] = []
    """Boards whose update is stored and waits to be applied, in order of arrival."""
    applying: bool = False
    trouble: str = ""
    """Why the first of them could not be applied; resuming tries again."""
    marks: list[int] = []
    """Model versions at the ends of periods."""
    since_version: int = 0
    carried: int = 0
    """Samples that were open when the period began."""
    ordered: int = 0
    """Samples ordered within the period."""
    barren: int = 0
    """Orders in a row, of whatever board, that came to nothing."""

    def pusher(self, board: str) -> Pusher:
        """The board's side of the run, made if it is new."""
        return self.boards.setdefault(board, Pusher())

    def tally(self, board: str) -> Tally:
        """The board's side of the period, made if it is new."""
        return self.tallies.setdefault(board, Tally())

    def factor(self, age: int) -> float:
        """What the rule makes of an update so many versions old, computed afresh each time."""
        rule = self.settings.staleness or ""
        given = staleness.options(rule, self.settings.staleness_options)
        return staleness.factor(rule, age, max(1, len(self.members)), given)

    @property
    def ahead(self) -> int | None:
        """So many updates a board may be ahead of the slowest; None where nobody waits."""
        rule = self.settings.staleness or ""
        return staleness.ahead(rule, staleness.options(rule, self.settings.staleness_options))


def settled(settings: RunSettings) -> AsynchronousSettings | None:
    """The run's asynchronous settings with everything filled in, None for another regime.

    Raises ValueError naming the setting and what it may be.
    """
    given = settings.asynchronous
    if settings.regime != REGIME:
        if given is not None:
            raise ValueError(f"grain, staleness and scale are for regime {REGIME}, not for {settings.regime}")
        return None
    given = given or AsynchronousSettings()
    if given.grain not in GRAINS:
        raise ValueError(f"grain is {' or '.join(GRAINS)}, not {given.grain!r}")
    gradient = given.grain == "gradient"
    found = structs.replace(
        given,
        staleness=given.staleness or ("none" if gradient else "polynomial"),
        scale=given.scale or ("batch" if gradient else "none"),
    )
    _check(found, settings, gradient=gradient)
    return found


def by_gradients(settings: RunSettings) -> bool:
    """Whether boards only send gradients, which the coordinator steps along."""
    given = settings.asynchronous or AsynchronousSettings()
    return settings.regime == REGIME and given.grain == "gradient"


def _check(found: AsynchronousSettings, settings: RunSettings, *, gradient: bool) -> None:
    if found.scale not in SCALES:
        raise ValueError(f"scale is {' or '.join(SCALES)}, not {found.scale!r}")
    staleness.options(found.staleness or "", found.staleness_options)
    staleness.mixing(found.alpha, 1.0)
    if not 0 <= found.momentum < 1:
        raise ValueError(f"the coordinator's momentum must be at least 0 and below 1, not {found.momentum}")
    if gradient and settings.momentum:
        raise ValueError(
            f"momentum {settings.momentum} is the boards' optimizer's, and with grain gradient they have "
            "none: give the coordinator's (--server-momentum)"
        )
    if found.momentum and not gradient:
        raise ValueError("the coordinator's momentum is for grain gradient, not for model")
    if settings.optimizer_state == "average" or (gradient and settings.optimizer_state != "reset"):
        raise ValueError(
            f"optimizer_state {settings.optimizer_state} does not work with grain {found.grain}: "
            "updates of unlike age have no common state; take reset" + ("" if gradient else " or keep")
        )
    if gradient and settings.optimizer not in (None, "sgd"):
        raise ValueError(
            f"grain gradient is applied as plain sgd by the coordinator, not by {settings.optimizer}: "
            "give optimizer sgd with a learning rate for it, or take grain model"
        )
    if gradient and settings.batch is not None and settings.batch > settings.budget:
        raise ValueError(
            f"batch {settings.batch} is larger than the {settings.budget} samples of a period: "
            "give a larger budget or a smaller batch"
        )


def check_size(settings: RunSettings, model_bytes: int) -> None:
    """Raises ValueError where a model is too large to go there and back for every batch."""
    found = settings.asynchronous
    if settings.regime != REGIME or found is None or found.grain != "gradient" or found.allow_large:
        return
    if model_bytes > LARGEST_GRADIENT_BYTES:
        raise ValueError(
            f"the model has {model_bytes:,} bytes, and with grain gradient it goes to a board and comes back "
            f"for every batch: above {LARGEST_GRADIENT_BYTES:,} bytes take --grain model, "
            "or --allow-large if the network bears it"
        )


def count(tally: Tally, pusher: Pusher, age: int, samples: int, report: Report) -> None:
    """An update so many versions old is accepted."""
    for one in (tally, pusher):
        one.updates += 1
        one.samples += samples
        one.staleness[age] = one.staleness.get(age, 0) + 1
    pusher.clock += 1
    pusher.failures, pusher.not_before = 0, 0.0
    tally.order = report.order
    tally.steps += report.steps
    tally.seconds += report.parts.compute.seconds
    energy = report.energy
    if energy.scope and tally.scope not in ("", energy.scope):
        tally.unmetered, tally.steady_joules = f"of different scope: {tally.scope}, {energy.scope}", None
    tally.scope = energy.scope or tally.scope
    tally.flags += [flag for flag in energy.flags if flag not in tally.flags]
    if energy.joules is None:
        tally.unmetered = energy.reason or "no reason was told"
    else:
        tally.joules[energy.basis] = tally.joules.get(energy.basis, 0.0) + energy.joules
    if report.loss_sum is not None:
        tally.loss_sum = (tally.loss_sum or 0.0) + report.loss_sum
    tally.peak_memory_bytes = max(tally.peak_memory_bytes, report.peak_memory_bytes)
    tally.behind_pace_steps += report.behind_pace_steps
    steady = report.steady
    if steady.samples and steady.seconds > 0:
        tally.steady_samples += steady.samples
        tally.steady_seconds += steady.seconds
        known = tally.steady_joules is not None and steady.joules is not None
        tally.steady_joules = (tally.steady_joules or 0.0) + (steady.joules or 0.0) if known else None


def add(one: Parts, other: Parts) -> Parts:
    """Two accounts as one; joules are unknown where a part that took time has none."""
    return Parts(
        joined(one.compute, other.compute),
        joined(one.communication, other.communication),
        joined(one.wait, other.wait),
        joined(one.lost, other.lost),
        joined(one.overhead, other.overhead),
    )


def waiting_share(accounts: Iterable[Parts]) -> float | None:
    """Of the boards' accounted time, the part that they waited; None where nothing is accounted."""
    waited = spent = 0.0
    for parts in accounts:
        waited += parts.wait.seconds
        every = (parts.compute, parts.communication, parts.wait, parts.lost, parts.overhead)
        spent += sum(part.seconds for part in every)
    return waited / spent if spent > 0 else None


def joined(one: Part, other: Part) -> Part:
    """Two parts as one; joules are unknown where a part that took time has none."""
    known = [part.joules for part in (one, other) if part.seconds > 0 or part.joules is not None]
    joules = None if not known or None in known else sum(value for value in known if value is not None)
    return Part(one.seconds + other.seconds, joules)


def quantile(ages: Mapping[str, int], part: float) -> int:
    """The age that this part of the updates does not exceed. Raises ValueError without any."""
    total, passed = sum(ages.values()), 0
    for age, n in sorted((int(age), n) for age, n in ages.items()):
        passed += n
        if passed >= part * total:
            return age
    raise ValueError("no update, no age")


def coarse(staleness: dict[int, int], most: int = MOST_AGES) -> dict[str, int]:
    """The distribution by age; where there are more ages than `most`, neighbours together by their least."""
    width = max(1, -(-(max(staleness, default=0) + 1) // most)) if len(staleness) > most else 1
    found: dict[int, int] = {}
    for age, n in sorted(staleness.items()):
        least = age // width * width
        found[least] = found.get(least, 0) + n
    return {str(age): n for age, n in found.items()}
