"""Looks at the coordinator once a second: alerts as they begin and end, and the fleet's line for telemetry.

What is an alert is `alerts`' to say. An operator's command runs on a thread; nothing waits for it.
"""

import logging
import subprocess
from typing import TYPE_CHECKING, Any, Final

import msgspec

from coordinator import events as ev
from coordinator.alerts import Alert, AlertOptions, Facts, Seen, Waited, alerts
from coordinator.telemetry.schema import Value
from coordinator.telemetry.sink import Sink

if TYPE_CHECKING:
    from coordinator.server import Server

LOG = logging.getLogger(__name__)
LOOK_SECONDS: Final = 1.0
FLEET_SECONDS: Final = 5.0
COMMAND_SECONDS: Final = 30.0


class Lookout:
    """All calls from the loop; `sink` is set where telemetry is sent."""

    def __init__(self, server: "Server", options: AlertOptions) -> None:
        self._server, self._options = server, options
        self.sink: Sink | None = None
        self.alerts: tuple[Alert, ...] = ()
        self._looked_seconds = self._shown_seconds = float("-inf")

    def due(self) -> float:
        """When it looks next."""
        return self._looked_seconds + LOOK_SECONDS

    def tick(self, now: float) -> None:
        """Look, if it is time."""
        if now < self.due():
            return
        self._looked_seconds = now
        before, self.alerts = self.alerts, alerts(self._facts(now), self._options)
        gone = {alert.id: alert for alert in before}
        for alert in self.alerts:
            if gone.pop(alert.id, None) is None:
                self._tell(alert, True)
        for alert in gone.values():
            self._tell(alert, False)
        if now - self._shown_seconds >= FLEET_SECONDS:
            self._shown_seconds = now
            self._server.show("fleet", (self._server.fleet_state(), self._counts()))

    def telemetry(self) -> dict[str, Any] | None:
        """How it goes with the time series, for people; None where none are sent."""
        if self.sink is None:
            return None
        return {
            **msgspec.to_builtins(self.sink.sending),
            "url": self.sink.options.url,
            "spool_bytes": self.sink.spool.size_bytes,
            "spool_limit_bytes": self.sink.options.spool_bytes,
            "spool_problem": self.sink.spool.problem,
            "dropped": dict(self.sink.spool.dropped),
            "faults": self.sink.faults,
        }

    def _tell(self, alert: Alert, begins: bool) -> None:
        log = LOG.warning if begins else LOG.info
        log("alert %s: %s", "begins" if begins else "ends", alert.text)
        self._server.show("alert", (alert, begins))
        self._server.herald.change()
        if self._options.command:
            told = {**msgspec.to_builtins(alert), "begins": begins, "fleet": self._server.config.fleet}
            text = msgspec.json.encode(told)
            self._server.work(lambda: _run(self._options.command, text), self._ran)

    def _ran(self, result: object) -> None:
        if isinstance(result, BaseException):
            name = self._options.command[0]
            self._server.note(ev.Note("-", "failed_alert_commands", f"[alerts] command {name}: {result}"))

    def _facts(self, now: float) -> Facts:
        server, sink = self._server, self.sink
        rounds = server.rounds if server.runs.active else None
        taking = rounds.state.assignments if rounds else {}
        seen = []
        for name, presence in server.fleet.boards.items():
            a, power = taking.get(name), server.boards.latest_power(name)
            headline = next((channel for channel in presence.birth.channels if channel.headline), None)
            energy = a.report.energy if a is not None and a.report is not None else None
            seen.append(
                Seen(
                    name,
                    presence.birth.link,
                    a is not None,
                    max(0.0, now - presence.heard_seconds),
                    headline.basis if headline else "",
                    power.basis if power and power.boot == presence.birth.boot else None,
                    energy.reason if energy and energy.joules is None else "",
                )
            )
        waiting = [
            Waited(
                a.board,
                a.doing() if a.open else a.reason,
                max(0.0, now - a.issued_seconds),
                max(0.0, a.deadline_seconds - now) if a.open else None,
                a.status == "expired",
            )
            for a in taking.values()
            if a.open or a.status == "expired"
        ]
        facts = Facts(tuple(seen), tuple(waiting), server.execution.problem)
        if sink is None:
            return facts
        sending = sink.sending
        return msgspec.structs.replace(
            facts,
            sending_state=sending.state,
            sending_text=sending.text,
            spool_bytes=sink.spool.size_bytes,
            spool_limit_bytes=sink.options.spool_bytes,
            spool_problem=sink.spool.problem,
            dropped_rounds=sink.spool.dropped["rounds"],
        )

    def _counts(self) -> dict[str, Value | None]:
        server, totals = self._server, self._server.counters.totals()
        rounds, link = server.rounds, server.link.status().counters
        up = sum(seen.birth.link == "up" for seen in server.fleet.boards.values())
        spool = self.sink.spool if self.sink else None
        refusals = ("refused", "malformed", "foreign", "stray", "strange")
        return {
            "boards_up": up,
            "boards_known": len(server.fleet.boards),
            "alerts": len(self.alerts),
            "accepted": rounds.state.accepted if rounds else None,
            "target": rounds.state.target if rounds else None,
            "duplicates": sum(count for name, count in totals.items() if name.startswith("duplicate")),
            "refusals": sum(count for name, count in totals.items() if name.startswith(refusals)),
            "drops": link.dropped_telemetry,
            "reconnects": link.reconnects,
            "spool_bytes": spool.size_bytes if spool else None,
            "spool_dropped": sum(spool.dropped.values()) if spool else None,
        }


def _run(command: tuple[str, ...], text: bytes) -> None:
    """Raises OSError, subprocess.SubprocessError."""
    subprocess.run(command, input=text, check=True, timeout=COMMAND_SECONDS, capture_output=True)
