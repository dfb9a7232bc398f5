"""`edged-coordinator replay`: a recorded run's own costs, round by round, under another policy."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.commands import _recorded, _show, exits
from coordinator.commands._surroundings import ConfigOption, JsonOption, StoreOption, pairs, told
from coordinator.commands.exits import CommandError

if TYPE_CHECKING:
    from coordinator.replay import Replay, Round


@told
def replay(
    run: Annotated[str, typer.Argument(help="A recorded run.")],
    *,
    policy: Annotated[str, typer.Option("--policy", help="The other policy.")] = "adaptive",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="An option of the policy; may be repeated."),
    ] = None,
    w_e: Annotated[float, typer.Option("--w-e", help="Weight of energy, 0 to 1.")] = 0.0,
    store: StoreOption = None,
    config: ConfigOption = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the rounds there, too.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell what another policy would have made of a run: each round's own costs per sample, other shares.

    Each round's seconds and joules per sample stay what they were; a share outside 0.5 to 2 times the
    recorded one is marked, because no reading tells what it would have cost.

    Example: edged-coordinator replay monday --policy min-energy --option slack=1.2
    """
    from coordinator import replay as replaying
    from coordinator.controller import NAMED_WEIGHTS, Weights
    from coordinator.situation import UntoldError

    with _recorded.opened(_recorded.store_folder(store, config)) as history:
        found = _recorded.recorded(history, run)
    try:
        weights = NAMED_WEIGHTS.get(policy) or Weights.of(w_e)
        answer = replaying.replay(found, policy, pairs(option or (), "--option"), weights)
    except UntoldError as error:
        raise CommandError(str(error)) from None
    except ValueError as error:
        raise CommandError(str(error), exits.USAGE) from None
    if csv_file is not None:
        _write(answer, csv_file)
    if as_json:
        _show.json(answer)
        return
    show(answer)
    if csv_file is not None:
        _show.progress(f"written: {csv_file}")


def show(answer: "Replay") -> None:
    """The sums in a sentence, then a line a round."""
    from coordinator.replay import saving

    seconds, joules = saving(answer)
    _show.line(
        f"{answer.policy} instead of {answer.recorded_policy}: makespans {_change(seconds)} in all "
        f"({_show.figure(answer.recorded_seconds, 4)} to {_show.figure(answer.seconds, 4)} s), joules "
        f"{_change(joules)} ({_show.figure(answer.recorded_joules, 4)} to {_show.figure(answer.joules, 4)} J"
        f"{f' {answer.basis}' if answer.basis else ''})"
    )
    head = ["round", "makespan", "was", "joules", "was", "shares", "extrapolated for"]
    _show.table(f"run {answer.run}", head, [_cells(row) for row in answer.rounds], ">>>>><<")
    for note in answer.notes:
        _show.line(note)


def _cells(row: "Round") -> list[str]:
    return [
        str(row.round),
        _show.duration(row.makespan_seconds),
        _show.duration(row.recorded_makespan_seconds),
        _show.figure(row.joules, 4),
        _show.figure(row.recorded_joules, 4),
        _show.shares(row.shares),
        ", ".join(row.extrapolated),
    ]


def _change(value: float | None) -> str:
    return _show.UNKNOWN if value is None else f"{100 * value + 0.0:+.1f} %"


def _write(answer: "Replay", path: Path) -> None:
    head = ["round", "makespan_seconds", "recorded_makespan_seconds", "joules", "recorded_joules"]
    try:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*head, "extrapolated"])
            for row in answer.rounds:
                writer.writerow([*(getattr(row, name) for name in head), " ".join(row.extrapolated)])
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; give another --csv") from None
