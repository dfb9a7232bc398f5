"""What people see while the demo runs: a live table on a terminal, plain lines elsewhere."""

from collections.abc import Callable, Iterator
from statistics import median
from types import TracebackType

from coordinator.commands import _show
from coordinator.comparison import Recorded, Row
from coordinator.demo.plan import WANTED_SECONDS, Plan, estimate_seconds
from coordinator.demo.scale import Scale
from edged.messages import FleetState

COLUMNS = ["board", "share", "compute", "joules (emulated)", "wait", "phase"]
SIDES = "<>>>><"
BAR = 24


class Lines:
    """An audience that gets a line for each round; `say` prints one."""

    def __init__(self, plan: Plan, say: Callable[[str], None]) -> None:
        self._plan, self._say = plan, say
        self._told: set[tuple[str, int]] = set()

    def __enter__(self) -> "Lines":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def says(self, text: str) -> None:
        self._say(text)

    def scaled(self, scale: Scale) -> None:
        for line in scale_words(self._plan, scale):
            self._say(line)

    def sees(self, run: Recorded, state: FleetState | None) -> None:
        for row in run.rounds:
            if (run.name, row["round"]) not in self._told:
                self._told.add((run.name, row["round"]))
                self._say(round_words(run.name, row, self._plan.rounds))


class Screen:
    """An audience with a live table."""

    def __init__(self, plan: Plan) -> None:
        from rich.console import Console
        from rich.live import Live

        self._plan = plan
        self._console = Console()
        self._live = Live(console=self._console, refresh_per_second=4, transient=False)
        self._runs: dict[str, Recorded] = {}

    def __enter__(self) -> "Screen":
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def says(self, text: str) -> None:
        from rich.spinner import Spinner
        from rich.text import Text

        self._live.console.print(Text(text))
        if not self._runs:
            self._live.update(Spinner("dots", Text("working")))

    def scaled(self, scale: Scale) -> None:
        for line in scale_words(self._plan, scale):
            self.says(line)

    def sees(self, run: Recorded, state: FleetState | None) -> None:
        from rich.console import Group
        from rich.text import Text

        self._runs[run.name] = run
        table = _show.rich_table("", COLUMNS, list(cells(self._plan, run, state)), SIDES)
        progress = [Text(progress_words(seen, self._plan.rounds)) for seen in self._runs.values()]
        self._live.update(Group(table, *progress))


def scale_words(plan: Plan, scale: Scale) -> Iterator[str]:
    """What was measured, and what follows from it."""
    yield (
        f"a step of {plan.batch} samples takes {1000 * scale.native_seconds_per_step:.1f} ms here; one scale "
        f"for all: a Raspberry Pi 4 gets {1000 * scale.seconds_per_sample:.2f} ms a sample, "
        f"and native work is {100 * scale.native_share:.0f} % of the fastest board's step"
    )
    expected = estimate_seconds(plan, scale.budget, scale.seconds_per_sample)
    slow = (
        " (this machine is slow or busy; fewer --rounds take less)" if expected > 1.1 * WANTED_SECONDS else ""
    )
    yield (
        f"{len(plan.boards)} boards, {scale.budget} samples a round, {plan.rounds} rounds equal, then "
        f"{plan.rounds} adaptive with w_e {plan.w_e:g}: about {expected:.0f} s{slow}"
    )


def round_words(run: str, row: Row, rounds: int) -> str:
    """A round on one line."""
    joules = ", ".join(
        f"{_show.figure(value)} J {basis}" for basis, value in row["compute_joules_by_basis"].items()
    )
    shares = " ".join(f"{board}:{samples}" for board, samples in row["shares"].items())
    makespan = _show.duration(row["makespan_seconds"])
    return (
        f"{run} {row['round']}/{rounds}: makespan {makespan} ({row['longest']}), "
        f"compute {joules or 'joules unknown'}, shares {shares}"
    )


def progress_words(run: Recorded, rounds: int) -> str:
    """A bar with the median makespan so far."""
    done = len(run.rounds)
    filled = round(BAR * min(1.0, done / rounds))
    spans = [row["makespan_seconds"] for row in run.rounds if row["makespan_seconds"] is not None]
    typical = f"  makespan {_show.duration(median(spans))} (median)" if spans else ""
    return f"{run.name:9} {'━' * filled}{'─' * (BAR - filled)} {done}/{rounds}{typical}"


def cells(plan: Plan, run: Recorded, state: FleetState | None) -> Iterator[list[str]]:
    """A line for each board: its present share, and its last round."""
    last = run.rounds[-1] if run.rounds else None
    parts = {row["board"]: row for row in run.boards if last is not None and row["round"] == last["round"]}
    present: dict[str, int] = dict(state.shares) if state is not None and state.run == run.name else {}
    waiting = {item.board: item.what for item in state.waiting} if state is not None else {}
    for board in plan.boards:
        part = parts.get(board)
        yield [
            board,
            str(present.get(board, "")),
            _show.duration(part["seconds"]) if part else "",
            _show.figure(part["joules"]) if part else "",
            _wait(part, last),
            waiting.get(board, "waits for the others" if waiting else ""),
        ]


def _wait(part: Row | None, last: Row | None) -> str:
    if part is None or last is None or part["seconds"] is None or last["makespan_seconds"] is None:
        return ""
    return _show.duration(max(0.0, last["makespan_seconds"] - part["seconds"]))
