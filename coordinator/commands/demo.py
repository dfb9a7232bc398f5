"""`edged-coordinator demo`: equal against adaptive on emulated boards, all of them real processes."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from coordinator.commands import _show, compare, exits
from coordinator.commands._surroundings import JsonOption, told
from coordinator.commands.exits import CommandError


@told
def demo(
    *,
    boards: Annotated[int, typer.Option("--boards", help="How many emulated boards.")] = 4,
    w_e: Annotated[float, typer.Option("--w-e", help="Weight of energy of the adaptive run, 0 to 1.")] = 0.25,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Of each run.")] = 12,
    budget: Annotated[
        int | None,
        typer.Option("--budget", min=1, help="Samples a round; else by the boards.", show_default=False),
    ] = None,
    task: Annotated[str, typer.Option("--task", help="A task's name, or a .py file.")] = "digits",
    pool: Annotated[
        str | None,
        typer.Option("--pool", metavar="NAME[=FOLDER]", help="Else the task's name.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of both runs.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for all of it; else ./out.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the whole system on this machine in under two minutes: a broker, a coordinator, emulated boards.

    Trains with equal shares, then with adaptive ones, on the same samples, and compares makespan, joules by
    part (emulated: each board's published watts), waiting and held-out accuracy; draws shares and joules.

    Example: edged-coordinator demo --w-e 0.5 --boards 6
    """
    from coordinator.broker import BrokerError
    from coordinator.controller import Weights
    from coordinator.demo import plan as plans
    from coordinator.demo import stage
    from coordinator.demo.children import ChildError

    try:
        Weights.of(w_e)
        planned = plans.plan(
            task=task,
            pool=pool or Path(task).stem,
            board_count=boards,
            rounds=rounds,
            budget=budget,
            w_e=w_e,
            seed=seed,
            out=out,
        )
    except (plans.PlanError, ValueError) as error:
        raise CommandError(str(error), exits.USAGE) from None
    with _ended_by_sigterm(), _audience(planned, as_json) as audience:
        try:
            outcome = stage.play(planned, audience)
        except (BrokerError, ChildError, stage.DemoError) as error:
            raise CommandError(str(error)) from None
    path = planned.folder / "shares-and-joules.png"
    result = compare.compared(outcome.runs)
    compare.picture(outcome.runs, path, f"{planned.task}, {len(planned.boards)} emulated boards")
    if as_json:
        _show.json(
            {
                "comparison": result,
                "scale": outcome.scale,
                "boards": planned.boards,
                "broker": outcome.broker,
                "picture": str(path),
                "folder": str(planned.folder),
            }
        )
        return
    compare.show(result)
    typer.echo("joules are emulated: published watts of each board times the seconds of its paced training")
    typer.echo(f"picture: {path}")
    typer.echo(f"look closer: edged-coordinator rounds equal --store {outcome.store}")


def _audience(planned: Any, as_json: bool) -> Any:
    from coordinator.demo.screen import Lines, Screen

    if as_json:
        return Lines(planned, _show.progress)
    return Screen(planned) if _show.is_terminal() else Lines(planned, typer.echo)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the demo as Ctrl-C does, so that nothing it started is left."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
