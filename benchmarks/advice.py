"""How often the truth lies inside the 90 % intervals of `advise`, over random fleets in virtual time.

Each fleet runs some rounds under one policy; its rows alone go into the advice; then the true fleet runs each
setting for as many rounds as the advice speaks of. Counts are printed by setting, and apart for shares that
the advice itself calls extrapolated. `--json` gives the counts.
"""

import argparse
import json
import random
import time
from collections import Counter

import msgspec

from coordinator.advice import ROUNDS, Range, advise, play
from coordinator.alternatives import Setting
from coordinator.comparison import Recorded
from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.experiments import Plan, played, settings_of
from coordinator.simulator.fleetfile import FleetFile
from coordinator.simulator.world import World
from coordinator.situation import situation

FLEETS = 500
DRAWS = 60
SOURCES = (
    Plan("equal", "equal"),
    Plan("time-only", "adaptive", w_e=0.0),
    Plan("w_e 0.5", "adaptive", w_e=0.5),
    Plan("min-energy", "min-energy", {"slack": 1.1}),
)
SETTINGS = (
    Setting("time-only", "adaptive"),
    Setting("w_e 0.25", "adaptive", w_e=0.25),
    Setting("w_e 1", "adaptive", w_e=1.0),
    Setting("min-energy 1.10", "min-energy", {"slack": 1.10}),
    Setting("min-energy, any makespan", "min-energy", {"slack": None}),
)


def fleet(rng: random.Random) -> FleetFile:
    """3 to 11 boards of log-normal speeds, Pw/Pa 0.15 to 0.75, noise 1 to 8 %, half with fixed costs,
    half of them seen idle before the run."""
    noise = rng.uniform(0.01, 0.08)
    fixed, link = rng.random() < 0.5, rng.random() < 0.5
    boards = []
    for number in range(rng.randint(3, 11)):
        active = rng.uniform(4, 35)
        boards.append(
            VirtualBoard(
                f"board-{number:02}",
                100 * rng.lognormvariate(0, 0.8),
                active,
                active * rng.uniform(0.15, 0.75),
                fixed_seconds=rng.uniform(0, 1.0) if fixed else 0.0,
                upload_seconds=rng.uniform(0, 3.0) if link else 0.0,
                noise=noise,
            )
        )
    idle_seen = rng.random() < 0.5
    return FleetFile("random", tuple(boards), budget=2000 * len(boards), batch=32, idle_seen=idle_seen)


def recorded(found: FleetFile, plan: Plan, rounds: int, seed: int) -> tuple[World, Recorded]:
    """A run in virtual time and what its coordinator would have stored."""
    settings = settings_of(found, plan, rounds, seed)
    world = played(found, plan, settings)
    run = {"run": "random", "settings": msgspec.to_builtins(settings), "complete": True}
    rows = {name: tuple(world.rows[name]) for name in ("round", "board_round", "closed", "decision")}
    tables = (rows["round"], rows["board_round"], rows["closed"])
    return world, Recorded(run, *tables, decisions=rows["decision"])


def inside(value: float, found: Range | None) -> bool:
    """Whether the interval holds it."""
    return found is not None and found.low <= value <= found.high


def covered(fleets: int, draws: int, seed: int = 1) -> tuple[Counter[str], Counter[str]]:
    """Hits and trials, by quantity, setting and kind of share."""
    hits: Counter[str] = Counter()
    trials: Counter[str] = Counter()
    for number in range(fleets):
        rng = random.Random(f"{seed}/{number}")
        found = fleet(rng)
        plan = rng.choice(SOURCES)
        _, run = recorded(found, plan, rng.randint(4, 14), number)
        where = situation(run)
        advice = advise(where, draws=draws, seed=number, settings=SETTINGS)
        for prediction in advice.predictions:
            lived = play(where, prediction.setting, found.board, rng.randrange(1 << 40))
            assert len(lived) == ROUNDS - 1
            spans = sorted(r.makespan_seconds for r in lived)
            joules = sum(r.joules or 0.0 for r in lived) / len(lived)
            kind = "extrapolated" if prediction.extrapolated else "within 0.5-2 x"
            for what, hit in (
                ("makespan", inside(spans[len(spans) // 2], prediction.makespan_seconds)),
                ("joules", inside(joules, prediction.joules)),
            ):
                for key in (what, f"{what}, {prediction.setting.label}", f"{what}, {kind}"):
                    trials[key] += 1
                    hits[key] += hit
    return hits, trials


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fleets", type=int, default=FLEETS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    given = parser.parse_args()
    began = time.perf_counter()
    hits, trials = covered(given.fleets, given.draws)
    if given.json:
        print(json.dumps({key: [hits[key], trials[key]] for key in sorted(trials)}, indent=1))
        return
    print(f"{given.fleets} random fleets, {given.draws} draws each, {time.perf_counter() - began:.0f} s")
    print(f"{'inside the 90 % interval':44} {'hits':>6} {'of':>6} {'share':>8}")
    for key in sorted(trials):
        print(f"{key:44} {hits[key]:>6} {trials[key]:>6} {100 * hits[key] / trials[key]:>6.1f} %")


if __name__ == "__main__":
    main()
