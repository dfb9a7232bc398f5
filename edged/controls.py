"""What an operator asks of the coordinator, and its answers (control/request, control/reply).

Split from `messages` because boards never read these. Pure.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from edged.fields import Count, Id, Natural, Text

Weight = Annotated[float, Meta(ge=0)]


class SiloSettings(Struct, frozen=True):
    """A silo of hfl-ddp: its boards (none named: whoever announces it), its samples a round (else in
    proportion to its data), and its pool where that has another name than the run's."""

    boards: tuple[Id, ...] = ()
    budget: Natural | None = None
    pool: Id | None = None


class AsynchronousSettings(Struct, frozen=True):
    """How updates of regime asp are made and applied. `grain` is `gradient` (an order is one batch, its mean
    gradient is applied) or `model` (an order is local training, its model is mixed in by `alpha`).

    `staleness` names a rule, None is the grain's own: `none` of gradients, `polynomial` of models. Updates
    more than `bound` versions old are dropped. `scale` is `batch` (b_k / mean b) or `none`; None is `batch`
    for gradients, `none` for models. `momentum` is the coordinator's, with gradients.
    """

    grain: Text = "gradient"
    staleness: Text | None = None
    staleness_options: dict[str, Any] = {}
    bound: Count | None = None
    scale: Text | None = None
    alpha: float = 0.6
    momentum: float = 0.0
    allow_large: bool = False


class RunSettings(Struct, frozen=True):
    """Everything that defines a run (ARCHITECTURE 5, 5a); stored with it, equal over compared runs.

    With `learning_rate_batch` B0 the rate that is asked for is one of batches of B0 samples: synchronous
    training takes it B / B0 fold. In a run's stored settings `learning_rate` is what boards train with.
    """

    task: Text
    pool: Id
    budget: Natural
    rounds: Natural
    regime: Text = "pma"
    policy: Text = "adaptive"
    policy_options: dict[str, Any] = {}
    w_t: Weight = 1.0
    w_e: Weight = 0.0
    batch: Natural | None = None
    learning_rate: float | None = None
    learning_rate_batch: Natural | None = None
    optimizer: Text | None = None
    momentum: float | None = None
    weight_decay: float | None = None
    optimizer_state: Text = "reset"
    options: dict[str, Any] = {}
    seed: Count = 1
    boards: tuple[Id, ...] = ()
    min_boards: Natural = 1
    strict_boards: bool = False
    fixed_cost: Text = "none"
    energy_window: Text = "compute"
    deadline_floor_seconds: Annotated[float, Meta(gt=0)] = 30.0
    deadline_limit_seconds: Annotated[float, Meta(gt=0)] = 3600.0
    evaluate: bool = True
    silos: dict[Id, SiloSettings] = {}
    asynchronous: AsynchronousSettings | None = None
    name: Id | None = None
    chunk_bytes: Annotated[int, Meta(ge=1024, le=1 << 27)] = 256 * 1024


class Start(Struct, frozen=True, tag_field="action", tag="start"):
    """Begin a run with these settings."""

    settings: RunSettings


class Stop(Struct, frozen=True, tag_field="action", tag="stop"):
    """End the run now: the running round is abandoned, what was accepted stays."""


class Pause(Struct, frozen=True, tag_field="action", tag="pause"):
    """No new round after the running one."""


class Resume(Struct, frozen=True, tag_field="action", tag="resume"):
    """Go on after a pause."""


class SetWeights(Struct, frozen=True, tag_field="action", tag="weights"):
    """New w_e (and w_t, else 1 - w_e); without both: only tell what holds."""

    w_e: float | None = None
    w_t: float | None = None


class PreviewWeights(Struct, frozen=True, tag_field="action", tag="preview"):
    """Tell what shares, makespan and joules would become under these weights; nothing is changed."""

    w_e: float | None = None
    w_t: float | None = None


class SetPolicy(Struct, frozen=True, tag_field="action", tag="policy"):
    """Another policy from the next round on."""

    name: Text
    options: dict[str, Any] = {}


class Drain(Struct, frozen=True, tag_field="action", tag="drain"):
    """No more samples for the board from the next round on."""

    board: Id


class Readmit(Struct, frozen=True, tag_field="action", tag="readmit"):
    """Undo a drain."""

    board: Id


class Forget(Struct, frozen=True, tag_field="action", tag="forget"):
    """Remove a board that is gone: its readings, and its retained birth at the broker."""

    board: Id


class GetStatus(Struct, frozen=True, tag_field="action", tag="status"):
    """One screen of what goes on."""


class GetBoards(Struct, frozen=True, tag_field="action", tag="boards"):
    """All boards that are known."""


class GetRounds(Struct, frozen=True, omit_defaults=True, tag_field="action", tag="rounds"):
    """The last rounds of a run (None: of the present or newest); `brief`: without decisions and parts."""

    run: Id | None = None
    last: Natural = 20
    brief: bool = False


class GetRuns(Struct, frozen=True, tag_field="action", tag="runs"):
    """All runs in the store."""


Action = (
    Start
    | Stop
    | Pause
    | Resume
    | SetWeights
    | PreviewWeights
    | SetPolicy
    | Drain
    | Readmit
    | Forget
    | GetStatus
    | GetBoards
    | GetRounds
    | GetRuns
)


class Request(Struct, frozen=True):
    """control/request: `client` names the reply topic, `id` the request, `who` is kept with changes."""

    client: Id
    id: Id
    do: Action
    who: Text = ""


class Reply(Struct, frozen=True):
    """control/reply/<client>: `from_round` is the first round that a change applies to."""

    id: Id
    ok: bool
    text: Text = ""
    from_round: Count | None = None
    data: dict[str, Any] = {}
