"""What the present setting of a run is held against, each with the command that sets it. Pure."""

from typing import Any, Final

from msgspec import Struct

from coordinator.controller import NAMED_WEIGHTS
from coordinator.situation import Situation, label_of

GRID: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
SLACKS: Final = (1.05, 1.10, 1.20, None)


class Setting(Struct, frozen=True):
    """A policy with its options and weight, and the command that sets it."""

    label: str
    policy: str
    options: dict[str, Any] = {}
    w_e: float = 0.0
    w_t: float | None = None
    command: str = ""


def alternatives(where: Situation, with_joules: bool = True) -> tuple[Setting, ...]:
    """The present setting, then what it is held against; without joules only what goes by time."""
    label = label_of(where.policy, where.options, where.w_e)
    found = [Setting(label, where.policy, where.options, where.w_e, where.w_t)]
    for w_e in GRID if with_joules else GRID[:1]:
        command = f"weights --w-e {w_e:g}"
        if where.policy != "adaptive":
            named = [name for name, weights in NAMED_WEIGHTS.items() if weights.w_e == w_e]
            given = f"adaptive --option w_e={w_e:g} --option w_t={1 - w_e:g}"
            command = f"policy {named[0] if named else given}"
        found.append(Setting(label_of("adaptive", {}, w_e), "adaptive", {}, w_e, command=command))
    for slack in SLACKS if with_joules else ():
        value = "null" if slack is None else f"{slack:g}"
        options = {"slack": slack}
        command = f"policy min-energy --option slack={value}"
        found.append(Setting(label_of("min-energy", options, 0), "min-energy", options, command=command))
    found.append(Setting("equal", "equal", command="policy equal"))
    return tuple(found[:1] + [setting for setting in found[1:] if setting.label != label])
