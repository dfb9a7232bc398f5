"""How a run comes to be: checked, prepared by the evaluation process, begun; or taken up after a restart.

What happens within it is `rounds`'. Here stands also which of its model files may go.
"""

import logging
import re
import secrets
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from coordinator import asynchronous
from coordinator import events as ev
from coordinator.controller import NAMED_WEIGHTS
from coordinator.controller.policies import find
from coordinator.evaluate import Answer, Foundation
from coordinator.evaluations import Beginning, Source
from coordinator.pushes import by_gradients, settled
from coordinator.rounds import Rounds
from coordinator.run import RunState, begin, rate
from coordinator.store import Row, StoreError
from coordinator.telemetry.lines import is_set
from edged import tasks
from edged.controls import RunSettings, SiloSettings
from edged.messages import Manifest
from edged.orders import round_name
from edged.topics import version_id
from edged.transfers import TransferError, chunk_bytes_for

if TYPE_CHECKING:
    from coordinator.server import Server

LOG = logging.getLogger(__name__)
ACCOUNTS_SECONDS: Final = 3.0
REGIMES: Final = ("pma", "ddp", "hfl-ddp", "asp")
"""Whose rounds the coordinator knows."""


class RunError(ValueError):
    """A run cannot begin; the text says why and what to do."""


class Runs:
    """The runs of one coordinator, one at a time."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._sources: dict[str, Source] = {}
        self._asked: Beginning | None = None
        self.failure = ""
        """Why the run that was asked for last did not begin."""
        self._accounts: set[str] = set()
        self._accounts_until = float("-inf")

    @property
    def beginning(self) -> str | None:
        """The run that is being prepared."""
        return self._asked.run if self._asked is not None else None

    @property
    def active(self) -> bool:
        """True while a run is prepared or not over."""
        rounds = self._server.rounds
        return self.beginning is not None or (rounds is not None and rounds.state.phase != "done")

    @property
    def accounts_open(self) -> bool:
        """True while a finished run's boards may still close the account of their last order."""
        return bool(self._accounts) and self._server.now < self._accounts_until

    def finished(self, now: float) -> None:
        """The run is over: boards that are connected are about to report the whole parts of their orders."""
        server = self._server
        assert server.rounds is not None
        up = {name for name, seen in server.fleet.boards.items() if seen.birth.link == "up"}
        self._accounts = {a.order for a in server.rounds.state.assignments.values() if a.board in up}
        self._accounts_until = now + ACCOUNTS_SECONDS

    def closed(self, order: str) -> None:
        """The account of an order is closed."""
        self._accounts.discard(order)

    def start(self, settings: RunSettings, who: str) -> str:
        """Promise a run and return its name; it begins when it is prepared. Raises RunError."""
        settings = self._checked(settings)
        if self.active:
            rounds = self._server.rounds
            present = self.beginning or (rounds.state.run if rounds else "")
            raise RunError(f"run {present} is not over: wait for it or `edged-coordinator stop` it")
        run = settings.name or name_of(settings.task, self._server.tools.wall())
        if self._server.store.history.known(run):
            raise RunError(f"run {run} is in the store already; give another --name")
        try:
            chunk_bytes = min(settings.chunk_bytes, chunk_bytes_for(self._server.link.max_packet_bytes))
            settings = structs.replace(settings, chunk_bytes=chunk_bytes)
            self._server.store.ask(run, settings, who)
        except (TransferError, StoreError) as error:
            raise RunError(str(error)) from None
        self._prepare(Beginning(run, settings, who))
        return run

    def cancel(self, reason: str) -> None:
        """The run that is being prepared is not wanted any more."""
        assert self._asked is not None
        self._give_up(self._asked, reason)

    def prepared(self, beginning: Beginning, answer: Answer, now: float) -> None:
        """The first model is there, or why not."""
        if beginning is not self._asked:
            return  # it was stopped meanwhile
        self._asked = None
        try:
            if answer.foundation is None:
                raise RunError(answer.error)
            self._begin(beginning, answer.foundation, now)
        except (ValueError, StoreError) as error:
            self._give_up(beginning, str(error))
        self._server.herald.change()

    def _prepare(self, beginning: Beginning) -> None:
        self._asked, self.failure = beginning, ""
        self._server.evaluations.prepare(beginning, beginning.settings.chunk_bytes)
        self._server.herald.change()

    def _give_up(self, beginning: Beginning, reason: str) -> None:
        self._asked = None
        self.failure = f"run {beginning.run} could not begin: {reason}"
        LOG.error("%s", self.failure)
        try:
            self._server.store.unask()
        except StoreError as error:
            LOG.error("it will be tried again at the next start: %s", error)
        self._server.tell("failed", {"run": beginning.run, "reason": reason})
        self._server.herald.change()

    def resume(self) -> None:
        """Take up the newest run that is not over, where the store left it, or prepare the one that was
        promised; what else is open is ended."""
        store = self._server.store
        for run in store.history.unfinished_runs():
            text = store.history.state(run)
            if text is None:
                store.end_run(run, "the coordinator ended before it began", False)
            elif self._server.rounds is not None:
                store.end_run(run, f"run {self._server.rounds.state.run} took its place", False)
            else:
                self._resume(run, text)
        try:
            asked = store.asked()
            if asked is not None and self._server.rounds is None:
                LOG.warning("run %s, which was asked for before, is prepared", asked[0])
                self._prepare(Beginning(*asked))
        except msgspec.DecodeError as error:
            LOG.error("what was asked for is of another version of this program (%s)", error)
            store.unask()

    def _resume(self, run: str, text: bytes) -> None:
        store = self._server.store
        try:
            state = msgspec.json.decode(text, type=RunState)
        except msgspec.DecodeError as error:
            reason = f"its stored state is of another version of this program ({error})"
            LOG.error("run %s cannot be taken up again: %s", run, reason)
            store.end_run(run, reason, False)
            return
        if state.phase == "done":
            store.end_run(run, state.reason, state.accepted >= state.target)
            return
        s = state.settings
        self._sources[run] = Source(store.history.task_source(run) or s.task, s.options, s.pool)
        LOG.warning("run %s goes on in %s %d", run, round_name(s.regime), state.round)
        self._server.rounds = Rounds(state, self._server.fleet, self._server.host)
        self._server.feed(ev.Restored(self._server.term, self._server.boot))
        # Deadlines stand still until the broker is there.
        self._server.feed(ev.OwnLink(False))

    def measure(self, effect: ev.Evaluate) -> list[Row]:
        """Have a version measured; rows of measurements that are skipped for it."""
        source = self._sources.get(effect.run)
        if source is None:
            return []
        return self._server.evaluations.measure(source, effect.run, effect.round, effect.version)

    def prune(self) -> None:
        """Remove model files that nobody will want."""
        rounds = self._server.rounds
        if rounds is not None:
            keep, state = self._server.config.store.keep_checkpoints, rounds.state
            needed = {state.version, *self._server.evaluations.needed()}
            if state.pushes is None:
                self._server.store.checkpoints.prune(state.run, keep, needed)
            else:
                # Every update makes a version: kept are those that boards work from, and ends of periods.
                ends = [0, *state.pushes.marks][-keep:]
                needed |= {version_id(state.run, number) for number in ends}
                needed |= asynchronous.versions(state)
                self._server.store.checkpoints.keep_only(state.run, needed, state.merges)

    def _checked(self, settings: RunSettings) -> RunSettings:
        """What can be judged before the task is loaded. Files are run only where the asker is trusted."""
        files = [name for name in (settings.task, settings.policy) if name.endswith(".py") or "/" in name]
        if files and not self._server.trusted:
            raise RunError(
                f"{files[0]}: over the broker a task or policy is given by name; copy a task's file to "
                f"{self._server.config.tasks.folder} on the coordinator and on each board"
            )
        try:
            tasks.source_of(settings.task, self._server.task_folders)
        except tasks.TaskError as error:
            raise RunError(str(error)) from None
        named = NAMED_WEIGHTS.get(settings.policy)
        if named is not None:
            settings = structs.replace(settings, w_t=named.w_t, w_e=named.w_e)
        if settings.regime not in REGIMES:
            raise RunError(f"regime {settings.regime!r}: this coordinator has {', '.join(REGIMES)}")
        settings = self._with_silos(settings)
        try:
            begin(_rehearsal(settings), 1, "rehearsal")
            policy = find(settings.policy)
        except ValueError as error:
            raise RunError(str(error)) from None
        if settings.regime not in policy.REGIMES:
            raise RunError(
                f"policy {policy.NAME} does not work in regime {settings.regime}, but in "
                f"{', '.join(policy.REGIMES)}"
            )
        return settings

    def _with_silos(self, settings: RunSettings) -> RunSettings:
        """Of hfl-ddp: the silos of this coordinator's settings, where the run names none of its own."""
        if settings.regime != "hfl-ddp":
            if settings.silos:
                raise RunError(f"silos are for regime hfl-ddp, not for {settings.regime}")
            return settings
        found = settings.silos or {
            name: SiloSettings(silo.boards, silo.budget, silo.pool)
            for name, silo in self._server.config.silo.items()
        }
        twice = Counter(board for silo in found.values() for board in silo.boards)
        if found and twice and max(twice.values()) > 1:
            names = ", ".join(sorted(board for board, count in twice.items() if count > 1))
            raise RunError(f"{names}: named in more than one silo")
        fixed = [silo.budget for silo in found.values() if silo.budget is not None]
        whole = bool(found) and len(fixed) == len(found)
        if sum(fixed) > settings.budget or (whole and sum(fixed) < settings.budget):
            raise RunError(f"the silos' budgets add up to {sum(fixed)}, the run's is {settings.budget}")
        return structs.replace(settings, silos=found)

    def _begin(self, beginning: Beginning, found: Foundation, now: float) -> None:
        server, defaults = self._server, found.defaults
        s = beginning.settings
        batch = s.batch or defaults.batch
        asked = defaults.learning_rate if s.learning_rate is None else s.learning_rate
        settings = structs.replace(
            s,
            task=found.name,
            name=beginning.run,
            batch=batch,
            learning_rate=rate(asked, batch, s),
            optimizer=s.optimizer or defaults.optimizer,
            momentum=0.0 if by_gradients(s) else defaults.momentum if s.momentum is None else s.momentum,
            weight_decay=defaults.weight_decay if s.weight_decay is None else s.weight_decay,
            asynchronous=settled(s),
        )
        prepared = ev.Prepared(
            beginning.run, settings, found.task_hash, found.manifest, found.fingerprint, found.pool_samples
        )
        state = begin(prepared, server.term, server.boot)
        rounds = Rounds(state, server.fleet, server.host)
        kept = msgspec.json.encode(state)
        server.store.add_run(beginning.run, settings, found.task_hash, found.source, kept)
        self._sources[beginning.run] = Source(found.source, settings.options, settings.pool)
        server.rounds = rounds
        row: dict[str, Any] = {"run": beginning.run, "from_round": 1, "who": beginning.who, "what": "start"}
        server.execution.keep(Row(beginning.run, "control", row))
        server.tell("begun", {"run": beginning.run, "settings": msgspec.to_builtins(settings)})
        server.tell("control", row)
        if found.pool_error and settings.evaluate:
            server.note(ev.Note("-", "unevaluated_runs", f"run {beginning.run}: {found.pool_error}"))
        server.feed(prepared)
        server.feed(ev.OwnLink(server.link.status().stage == "up"))


def _rehearsal(settings: RunSettings) -> ev.Prepared:
    """A beginning with settings that the task has not completed yet, to see what is wrong with the others."""
    asked = 1.0 if settings.learning_rate is None else settings.learning_rate
    whole = structs.replace(settings, batch=settings.batch or 1, learning_rate=asked)
    return ev.Prepared("rehearsal", whole, "", Manifest(1, 1, "0" * 64), None, None)


def name_of(task: str, wall: float) -> str:
    """By task and date; by a clock that was not set, by chance in place of the date."""
    stem = task.rpartition("/")[2].removesuffix(".py").lower()
    stem = re.sub(r"[^a-z0-9_-]", "-", stem).strip("-_") or "run"
    when = time.strftime("%Y%m%d-%H%M%S", time.gmtime(wall)) if is_set(wall) else secrets.token_hex(4)
    return f"{stem[:40]}-{when}"
