"""What is going on and what was, as plain data for commands and pages; unknown figures are None."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from coordinator import records
from coordinator.history import History
from coordinator.pushes import add
from edged import __version__
from edged.messages import Parts

if TYPE_CHECKING:
    from coordinator.server import Server

MOST_ROUNDS: Final = 200
DECISIONS: Final = 5
MOST_CONTROLS: Final = 200


def status(server: "Server") -> dict[str, Any]:
    """One screen: the fleet's state, the run's accounting, the last decisions, what is odd."""
    rounds, now = server.rounds, server.now
    link = server.link.status()
    data: dict[str, Any] = {
        "fleet": msgspec.to_builtins(server.fleet_state()),
        "version": __version__,
        "host": server.host,
        "boot": server.boot,
        "term": server.term,
        "preparing": server.runs.beginning,
        "failure": server.runs.failure,
        "problem": server.execution.problem,
        "link": {
            "stage": link.stage,
            "host": link.host,
            "port": link.port,
            "protocol": link.protocol,
            "reason": link.reason,
            "queued_messages": link.queued_messages,
            "reconnects": link.counters.reconnects,
        },
        "boards": {
            name: {"link": seen.birth.link, "lack": rounds.lack(name, now) if rounds else ""}
            for name, seen in sorted(server.fleet.boards.items())
        },
        "counters": {
            board: {name: count for name, (count, _) in server.counters.of(board).items() if count}
            for board in server.counters.boards()
        },
        "odd": {
            board: texts
            for board in server.counters.boards()
            if (texts := _odd(server.counters.of(board), board))
        },
        "board_counters": {
            name: counters
            for name, seen in sorted(server.fleet.boards.items())
            if seen.state and (counters := {k: n for k, n in seen.state.counters.items() if n})
        },
        "alerts": msgspec.to_builtins(server.lookout.alerts),
        "telemetry": server.lookout.telemetry(),
        "evaluations_open": server.evaluations.open,
        "published_bytes": dict(server.distribution.published_bytes),
        "received_bytes": server.collection.received_bytes,
        "run": None,
        "decisions": [],
        "evaluation": None,
    }
    if rounds is not None:
        state, history = rounds.state, server.store.history
        data["run"] = {
            "run": state.run,
            "settings": msgspec.to_builtins(state.settings),
            "phase": state.phase,
            "paused": state.paused,
            "reason": state.reason,
            "round": state.round,
            "accepted": state.accepted,
            "target": state.target,
            "returned": state.waiting_samples,
            "drained": list(state.drained),
            "model": state.version,
            "groups": records.group_rows(state),
        }
        data["decisions"] = [_slim(row) for row in history.rows("decision", state.run, DECISIONS)]
        data["evaluation"] = next(iter(history.rows("evaluation", state.run, 1)), None)
    return data


def rounds(history: History, run: str, last: int) -> dict[str, Any]:
    """The last rounds of a run, with the boards' parts of them and the held-out figures beside.

    Only the newest decision has the memories that it was made of: they are long, and the others' are in it.
    """
    found = history.rows("round", run, last + 1)
    rows, before = found[-last:], found[0]["at"] if len(found) > last else 0.0
    first = rows[0]["round"] if rows else 0
    decisions = [row for row in history.rows("decision", run) if row["round"] >= first]
    return {
        "run": run,
        "regime": history.settings(run)["regime"],
        "rounds": rows,
        "board_rounds": history.board_rounds(run, first),
        "closed": _closed([row for row in history.rows("closed", run) if row["round"] >= first], rows),
        "evaluations": [row for row in history.rows("evaluation", run) if row["round"] >= first],
        "decisions": [*(_slim(row) for row in decisions[:-1]), *decisions[-1:]],
        "controls": [row for row in history.rows("control", run, MOST_CONTROLS) if row["at"] > before],
        "restarts": [row for row in history.restarts(run, MOST_CONTROLS) if row["at"] > before],
    }


def newest(history: History, run: str, last: int) -> dict[str, Any]:
    """The last rounds and their held-out figures, with the boards' parts of the newest one alone."""
    rows = history.rows("round", run, last)
    first, present = (rows[0]["round"], rows[-1]["round"]) if rows else (0, 0)
    return {
        "run": run,
        "rounds": rows,
        "board_rounds": history.board_rounds(run, present),
        "closed": [],
        "evaluations": [row for row in history.rows("evaluation", run) if row["round"] >= first],
        "decisions": [],
        "controls": [],
        "restarts": [],
    }


def _closed(closed: list[dict[str, Any]], rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of asynchronous updates, of which a period has many, the accounts of a board's orders as one."""
    if not any("updates" in row for row in rounds):
        return closed
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for row in closed:
        key = (row["round"], row["board"])
        before = found.get(key)
        if before is None:
            found[key] = {**row, "orders": 1}
            continue
        parts = add(msgspec.convert(before["parts"], Parts), msgspec.convert(row["parts"], Parts))
        found[key] = {**row, "orders": before["orders"] + 1, "parts": msgspec.to_builtins(parts)}
    return list(found.values())


def _slim(decision: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in decision.items() if key != "memories"}


def _odd(counters: dict[str, tuple[int, str]], board: str) -> dict[str, str]:
    """The last words of each counter; of a board only those of its largest, for there may be many boards."""
    counted = sorted(((count, name, text) for name, (count, text) in counters.items() if count), reverse=True)
    return {name: text for _, name, text in (counted if board == "-" else counted[:1])}
