"""Answers what operators ask: changes are checked here, told with the round they hold from, and passed on.

A refusal names the allowed values. What a change does to the run is `wishes`'.
"""

import logging
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from coordinator import allocation, brevity, views, wishes
from coordinator import events as ev
from coordinator.controller import Weights
from coordinator.controller.policies import find
from coordinator.rounds import Rounds
from coordinator.runs import RunError
from edged import controls as ask
from edged.controls import Reply, Request
from edged.orders import round_name

if TYPE_CHECKING:
    from coordinator.server import Server

LOG = logging.getLogger(__name__)
NO_RUN = "no run is going on; start one with `edged-coordinator run`"


class RefusalError(ValueError):
    """It is not done; the text says why and what would be."""


def answer(server: "Server", request: Request) -> Reply:
    """The reply to a request, whatever it is; the change is under way when this returns."""
    try:
        whole = structs.replace(_answer(server, request), id=request.id)
        return brevity.reply(whole, _most(server))
    except (RefusalError, RunError) as error:
        return Reply(request.id, False, str(error))
    except Exception as error:
        # Silence would look like an absent coordinator to whoever asks.
        LOG.exception("a request of %s could not be answered", request.client)
        text = f"{type(request.do).__name__}: {type(error).__name__}: {error}"
        server.note(ev.Note("-", "internal_errors", text))
        return Reply(request.id, False, f"a fault of the coordinator, its log has more: {text}")


def _answer(server: "Server", request: Request) -> Reply:
    do, who = request.do, request.who or request.client
    match do:
        case ask.Start():
            run = server.runs.start(do.settings, who)
            return _yes(f"run {run} is being prepared", 1, run=run)
        case ask.SetWeights():
            return _weights(server, do, who)
        case ask.PreviewWeights():
            return _preview(server, do)
        case ask.SetPolicy():
            return _policy(server, do, who)
        case ask.Drain() | ask.Readmit() | ask.Forget():
            return _admission(server, do, who)
        case ask.Stop() | ask.Pause() | ask.Resume():
            return _hold(server, do, who)
        case ask.GetStatus():
            return _yes("", data=views.status(server))
        case ask.GetBoards():
            return _yes("", data=brevity.rows("boards", server.boards.rows(), _most(server)))
        case ask.GetRounds():
            return _rounds(server, do)
        case ask.GetRuns():
            return _yes("", data=brevity.rows("runs", server.store.history.runs(), _most(server)))


def _yes(text: str, from_round: int | None = None, data: dict[str, Any] | None = None, **more: Any) -> Reply:
    return Reply("-", True, text, from_round, data={**(data or {}), **more})


def _most(server: "Server") -> int:
    return brevity.most_bytes(server.link.max_packet_bytes)


def _present(server: "Server") -> Rounds:
    if server.rounds is None or server.rounds.state.phase == "done":
        if server.runs.beginning is not None:
            raise RefusalError(f"run {server.runs.beginning} is still being prepared: ask again in a moment")
        raise RefusalError(NO_RUN)
    return server.rounds


def _weights(server: "Server", do: ask.SetWeights, who: str) -> Reply:
    rounds = _present(server)
    control, (first, since) = rounds.state.control, _since(rounds, "weights")
    if do.w_e is None and do.w_t is None:
        text = f"w_t {control.w_t:g}, w_e {control.w_e:g}, policy {control.policy}"
        return _yes(text, w_t=control.w_t, w_e=control.w_e, policy=control.policy, shares=rounds.state.shares)
    try:
        weights = Weights.of(do.w_e, do.w_t)
        would = rounds.preview(weights)
    except ValueError as error:
        raise RefusalError(str(error)) from None
    before = rounds.state.shares
    server.feed(ev.Weigh(weights.w_t, weights.w_e, who))
    text = f"w_t {weights.w_t:g}, w_e {weights.w_e:g} {since}"
    if "w_e" not in {field.name for field in structs.fields(find(control.policy).Options)}:
        text += f"; policy {control.policy} does not use them"
    shares = would.shares if would else {}
    return _yes(
        text,
        first,
        w_t=weights.w_t,
        w_e=weights.w_e,
        present=before,
        shares=shares,
        reason=would.reason if would else "no board has a share yet",
    )


def _preview(server: "Server", do: ask.PreviewWeights) -> Reply:
    rounds = _present(server)
    control = rounds.state.control
    try:
        weights = Weights.of(do.w_e, do.w_t)
        would, kept = rounds.preview(weights), rounds.preview(Weights(control.w_t, control.w_e))
    except ValueError as error:
        raise RefusalError(str(error)) from None
    used = "w_e" in {field.name for field in structs.fields(find(control.policy).Options)}
    return _yes(
        would.reason if would else "no board has a share yet",
        wishes.from_round(rounds.state, "weights"),
        w_t=weights.w_t,
        w_e=weights.w_e,
        used=used,
        shares=would.shares if would else {},
        changed=bool(would and would.shares != rounds.state.shares),
        notes=list(would.notes) if would else [],
        bases=sorted({m.basis for m in control.memories.values() if m.basis}),
        **allocation.promised("", would),
        **allocation.promised("present_", kept),
    )


def _policy(server: "Server", do: ask.SetPolicy, who: str) -> Reply:
    rounds = _present(server)
    first, since = _since(rounds, "policy")
    if (do.name.endswith(".py") or "/" in do.name) and not server.trusted:
        raise RefusalError(f"{do.name}: over the broker a policy is given by name")
    try:
        would = rounds.preview_policy(do.name, do.options)
    except (ValueError, msgspec.ValidationError) as error:
        raise RefusalError(str(error)) from None
    server.feed(ev.Choose(do.name, do.options, who))
    return _yes(
        f"policy {do.name} {since}",
        first,
        policy=do.name,
        present=rounds.state.shares,
        shares=would.shares if would else {},
        reason=would.reason if would else "no board has a share yet",
    )


def _admission(server: "Server", do: ask.Drain | ask.Readmit | ask.Forget, who: str) -> Reply:
    seen = server.fleet.boards.get(do.board)
    if seen is None and do.board not in server.counters.boards():
        known = ", ".join(sorted(server.fleet.boards)) or "none"
        raise RefusalError(f"no board {do.board} is known; known are: {known}")
    if isinstance(do, ask.Forget):
        if seen is not None and seen.birth.link == "up":
            raise RefusalError(
                f"{do.board} is connected: drain it, or stop its service before it is forgotten"
            )
        if server.runs.active:
            server.feed(ev.Admission(do.board, "forget", who))
        server.boards.forget(do.board)
        return _yes(f"{do.board} is forgotten")
    rounds = _present(server)
    what = "drain" if isinstance(do, ask.Drain) else "readmit"
    out = do.board in rounds.state.drained or (what == "readmit" and rounds.state.silent(do.board))
    if out == (what == "drain"):
        raise RefusalError(f"{do.board} is {'drained already' if what == 'drain' else 'not drained'}")
    first, since = _since(rounds, what)
    server.feed(ev.Admission(do.board, what, who))
    text = "gets no samples" if what == "drain" else "takes part again"
    return _yes(f"{do.board} {text} {since}", first)


def _hold(server: "Server", do: ask.Stop | ask.Pause | ask.Resume, who: str) -> Reply:
    preparing = server.runs.beginning
    if isinstance(do, ask.Stop) and preparing is not None:
        server.runs.cancel(f"stopped by {who}")
        return _yes(f"run {preparing} is stopped before it began")
    rounds = _present(server)
    state = rounds.state
    if isinstance(do, ask.Stop):
        server.feed(ev.Halt(f"stopped by {who}", who))
        return _yes(f"run {state.run} is stopped with {state.accepted:,} samples accepted", state.round)
    paused = isinstance(do, ask.Pause)
    if paused == state.paused:
        raise RefusalError(f"run {state.run} is {'paused already' if paused else 'not paused'}")
    first, _ = _since(rounds, "pause" if paused else "resume")
    ends = "no board gets another order" if state.pushes else "no round begins after the running one"
    server.feed(ev.Hold(paused, who))
    return _yes(f"run {state.run}: {ends if paused else 'goes on'}", first)


def _since(rounds: Rounds, what: str) -> tuple[int, str]:
    """The round from which such a wish holds if it is made now, as a number and in words."""
    first = wishes.from_round(rounds.state, what)
    return first, f"from {round_name(rounds.state.settings.regime)} {first} on"


def _rounds(server: "Server", do: ask.GetRounds) -> Reply:
    history = server.store.history
    run = do.run or (server.rounds.state.run if server.rounds else history.newest_run())
    if run is None:
        raise RefusalError("the store has no run yet")
    if not history.known(run):
        raise RefusalError(f"the store has no run {run}; `edged-coordinator runs` lists them")
    last = min(do.last, views.MOST_ROUNDS)
    told = views.newest if do.brief else views.rounds
    return _yes("", data=brevity.rounds(lambda n: told(history, run, n), last, _most(server)))
