"""Whether a fleet fitted from one run of real processes predicts the run of another policy: six pairs.

Broker, coordinator and emulated boards are processes of their own, as in the demo; joules are emulated. From
each run a fleet is fitted and put under each other run's policy in virtual time; makespans and joules of all
rounds are held against the recorded ones. A busy machine shows as steps behind their pace.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import structs

from coordinator.comparison import Recorded
from coordinator.demo import plan as planning
from coordinator.demo.scale import Scale
from coordinator.demo.stage import play
from coordinator.fitting import fitted
from coordinator.pacing import behind_pace
from coordinator.simulator.experiments import Plan, played, settings_of
from coordinator.simulator.tally import tally
from coordinator.situation import joules_of, situation
from edged.messages import FleetState

POLICIES = ("equal", "time-only", "energy-only")
SEEDS = range(1, 10)
BOUND = 0.05


class Quiet:
    """Says what is going on."""

    def __enter__(self) -> "Quiet":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def says(self, text: str) -> None:
        print(text, flush=True)

    def scaled(self, scale: Scale) -> None:
        """The pace."""
        print(
            f"{scale.budget} samples a round, native work {100 * scale.native_share:.0f} % of a step",
            flush=True,
        )

    def sees(self, run: Recorded, state: FleetState | None) -> None:
        return None


def predicted(source: Recorded, target: Recorded) -> tuple[float, float]:
    """Makespans and joules of all rounds under the target's policy, on the fleet fitted from the source."""
    fleet = structs.replace(fitted(situation(source)), pool_samples=None)
    rule = target.decisions[-1]
    w_e = rule["w_e"] if rule["policy"] == "adaptive" else None
    plan = Plan(target.name, rule["policy"], dict(rule["options"]), w_e)
    found = []
    for seed in SEEDS:
        world = played(fleet, plan, settings_of(fleet, plan, len(target.rounds), seed))
        rounds = tally(world.rows)
        joules = sum(r.total_joules or 0.0 for r in rounds)
        found.append((sum(r.makespan_seconds or 0.0 for r in rounds), joules))
    return median(s for s, _ in found), median(j for _, j in found)


def observed(run: Recorded) -> tuple[float, float]:
    """Makespans and joules of all rounds, as recorded. Raises ValueError where joules are not known."""
    joules = joules_of(run.closed)
    if joules is None:
        raise ValueError(f"run {run.name}: not all joules are known")
    return sum(row["makespan_seconds"] for row in run.rounds), joules


def pairs(runs: tuple[Recorded, ...]) -> Iterator[dict[str, Any]]:
    """Each run's fleet under each other run's policy."""
    for source in runs:
        for target in runs:
            if source is not target:
                (seconds, joules), (was, used) = predicted(source, target), observed(target)
                yield {
                    "fitted_from": source.name,
                    "predicts": target.name,
                    "makespans_seconds": seconds,
                    "observed_seconds": was,
                    "makespan_error": seconds / was - 1,
                    "joules": joules,
                    "observed_joules": used,
                    "joules_error": joules / used - 1,
                }


def main() -> None:
    """Run, fit, predict, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--boards", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the pairs there, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edged-prediction-") as folder:
        plan = planning.plan(
            task="digits",
            pool="digits",
            board_count=given.boards,
            rounds=given.rounds,
            budget=None,
            w_e=0.0,
            seed=1,
            out=Path(folder),
        )
        outcome = play(plan, Quiet(), POLICIES)
    for run in outcome.runs:
        share = behind_pace(run.boards)
        print(f"{run.name}: {len(run.rounds)} rounds, steps behind their pace {100 * (share or 0.0):.2f} %")
    found = list(pairs(outcome.runs))
    head = ("s", "was", "error", "J", "was", "error")
    print(f"{'fitted from':12} {'predicts':12}" + "".join(f" {name:>8}" for name in head))
    for row in found:
        print(
            f"{row['fitted_from']:12} {row['predicts']:12} {row['makespans_seconds']:8.2f} "
            f"{row['observed_seconds']:8.2f} {100 * row['makespan_error']:+7.2f}% {row['joules']:8.1f} "
            f"{row['observed_joules']:8.1f} {100 * row['joules_error']:+7.2f}%"
        )
    inside = sum(max(abs(row["makespan_error"]), abs(row["joules_error"])) <= BOUND for row in found)
    print(f"{inside} of {len(found)} pairs within {100 * BOUND:g} % in makespan and joules")
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
