"""What boards say, for the run and beside it: presence, power, clock; and the list of boards for people.

Without a run it greets them by itself. Whether a board takes part is `fleet`'s and `rounds`' to say.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from coordinator import events as ev
from coordinator.silos import name_of
from coordinator.store import Row
from edged.messages import Birth, Power, Report, StandBy, State

if TYPE_CHECKING:
    from coordinator.server import Server

POWER_ROW_SECONDS: Final = 10.0
NO_RUN: Final = "no run is going on"


class Boards:
    """All boards heard of by one coordinator."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._power: dict[str, Power] = {}
        self._recorded: dict[str, float] = {}

    def born(self, birth: Birth) -> None:
        """A birth, will or farewell."""
        server = self._server
        if server.rounds is not None:
            server.feed(ev.Born(birth))
        else:
            change = server.fleet.hear(birth, server.now)
            if change == "duplicate":
                rivals = " and ".join(server.fleet.boards[birth.board].rivals)
                server.note(ev.Note(birth.board, "duplicate_ids", f"duplicate id: {rivals}"))
            if birth.link == "up" and change != "ignored":
                server.send(birth.board, StandBy(server.boot, server.term, NO_RUN))
        server.herald.change()

    def heard(self, state: State) -> None:
        """A state message."""
        server, seen = self._server, self._server.fleet.boards.get(state.board)
        if seen is not None and state.boot == seen.birth.boot and state.clock_seconds:
            seen.skew_seconds = state.clock_seconds - server.tools.wall()
        if server.rounds is not None:
            server.feed(ev.Heard(state))
        elif seen is not None and state.boot == seen.birth.boot:
            seen.state, seen.heard_seconds = state, server.now
            if state.order is not None:
                server.send(state.board, StandBy(server.boot, server.term, NO_RUN))

    def reported(self, report: Report) -> None:
        """A report."""
        server = self._server
        if server.rounds is not None:
            server.feed(ev.Reported(report))
        else:
            server.note(ev.Note(report.board, "stray_reports", f"a report of {report.order}; {NO_RUN}"))

    def powered(self, power: Power) -> None:
        """Watts and joules, once a second; one in ten is recorded during a run."""
        server, seen = self._server, self._server.fleet.boards.get(power.board)
        if seen is None or seen.birth.boot != power.boot:
            text = "watts of a process that did not announce itself"
            server.note(ev.Note(power.board, "foreign_powers", text))
            return
        self._power[power.board] = power
        seen.idling.hear(power, server.now)
        server.show("power", power)
        rounds = server.rounds
        if rounds is None or rounds.state.phase == "done":
            return
        if power.order is not None and power.order_joules is not None:
            metered = ev.Metered(power.board, power.boot, power.order, power.order_joules, power.basis)
            server.feed(metered)
        if server.now - self._recorded.get(power.board, float("-inf")) >= POWER_ROW_SECONDS:
            self._recorded[power.board] = server.now
            row: dict[str, Any] = {
                "run": rounds.state.run,
                "round": rounds.state.round,
                "board": power.board,
                "watts": power.watts,
                "joules": power.joules,
                "headline": power.headline,
                "basis": power.basis,
                "temperature_celsius": power.temperature_celsius,
                "throttled": list(power.throttled),
                "sampler_cpu_seconds": power.sampler_cpu_seconds,
            }
            server.execution.keep(Row(rounds.state.run, "power", row))

    def forget(self, board: str) -> None:
        """A board that is gone: its retained birth, its counters, its figures."""
        server = self._server
        server.fleet.boards.pop(board, None)
        self._power.pop(board, None)
        self._recorded.pop(board, None)
        server.counters.forget(board)
        server.link.publish(server.topics.of("birth", board=board), b"", retain=True)

    def latest_power(self, board: str) -> Power | None:
        """The newest watts of a board."""
        return self._power.get(board)

    def bases(self) -> tuple[str, ...]:
        """What the joules of the connected boards rest on."""
        births = [seen.birth for seen in self._server.fleet.boards.values() if seen.birth.link == "up"]
        return tuple(
            sorted({channel.basis for birth in births for channel in birth.channels if channel.headline})
        )

    def rows(self) -> list[dict[str, Any]]:
        """Every board for people, in order of id; unknown figures are None."""
        names = {
            *self._server.fleet.boards,
            *(name for name in self._server.counters.boards() if name != "-"),
        }
        return [self._row(name) for name in sorted(names)]

    def _row(self, board: str) -> dict[str, Any]:
        server, seen = self._server, self._server.fleet.boards.get(board)
        counters = {name: count for name, (count, _) in server.counters.of(board).items() if count}
        row: dict[str, Any] = {
            "board": board,
            "link": seen.birth.link if seen else "never seen",
            "counters": counters,
            "last_odd": next((text for count, text in _newest(server.counters.of(board))), ""),
        }
        if seen is None:
            return row
        birth, state, power = seen.birth, seen.state, self._power.get(board)
        rounds = server.rounds
        a = rounds.state.assignments.get(board) if rounds else None
        memory = rounds.state.memory(board) if rounds else None
        settings = rounds.state.settings if rounds else None
        grouped = settings is not None and settings.regime == "hfl-ddp"
        headline = next((channel for channel in birth.channels if channel.headline), None)
        return row | {
            "host": birth.host,
            "address": birth.address,
            "arch": birth.arch,
            "model": birth.model,
            "cores": birth.cores,
            "memory_bytes": birth.memory_bytes,
            "emulates": birth.emulates,
            "versions": birth.versions,
            "pools": sorted(birth.pools),
            "tasks": sorted(birth.tasks),
            "boot": birth.boot,
            "heard_seconds_ago": max(0.0, server.now - seen.heard_seconds),
            "skew_seconds": seen.skew_seconds,
            "phase": state.phase if state else None,
            "order": state.order if state else None,
            "reason": state.reason if state else "",
            "model_version": state.model if state else None,
            "silo": name_of(settings, server.fleet, board) if settings and grouped else birth.silo,
            "board_counters": state.counters if state else {},
            "lack": rounds.lack(board, server.now) if rounds else "",
            "drained": bool(rounds and board in rounds.state.drained),
            "samples": a.samples if a else None,
            "samples_done": state.samples_done if state else None,
            "status": a.status if a else None,
            "seconds_per_sample": memory.seconds_per_sample if memory else None,
            "joules_per_sample": memory.joules_per_sample if memory else None,
            "cost": rounds.state.costs.get(board) if rounds else None,
            "watts": power.watts.get(power.headline) if power else None,
            "temperature_celsius": power.temperature_celsius if power else None,
            "throttled": list(power.throttled) if power else [],
            "basis": headline.basis if headline else "",
            "scope": headline.scope if headline else "",
        }


def _newest(counters: dict[str, tuple[int, str]]) -> Sequence[tuple[int, str]]:
    return sorted((value for value in counters.values() if value[0]), reverse=True)
