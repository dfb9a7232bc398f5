"""Looks for sensors with every probe at once; what does not answer is left behind and named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue

from probes import Channel, Context, Finding, Probe, Status
from probes._choice import Choice, Role, Seen


@dataclass(frozen=True, slots=True)
class Found:
    """One line of `edged probe list`."""

    source: str
    channel: Channel | None
    status: Status
    reason: str
    remedy: str
    role: Role
    why: str
    watts: float | None


class Guard:
    """Reads files in a thread of its own: one that does not come back is a TimeoutError, and waits once."""

    def __init__(self, read_bytes: Callable[[Path], bytes], seconds: float) -> None:
        self._read_bytes = read_bytes
        self._seconds = seconds
        self._hung: dict[Path, SimpleQueue[bytes | OSError]] = {}

    def __call__(self, path: Path) -> bytes:
        answer = self._hung.get(path)
        if answer is None:
            answer = SimpleQueue()
            threading.Thread(target=self._read, args=(path, answer), name="edged-detect", daemon=True).start()
            wait = self._seconds
        else:
            wait = 0.0
        try:
            found = answer.get(timeout=wait) if wait else answer.get_nowait()
        except Empty:
            self._hung[path] = answer
            raise TimeoutError from None
        self._hung.pop(path, None)
        if isinstance(found, OSError):
            raise found
        return found

    def _read(self, path: Path, answer: SimpleQueue[bytes | OSError]) -> None:
        try:
            answer.put(self._read_bytes(path))
        except OSError as error:
            answer.put(error)


class Detector:
    """Detection by every probe, again and again; one that hangs is not started a second time meanwhile."""

    def __init__(
        self, probes: Sequence[Probe], context: Context, seconds: float, file_seconds: float
    ) -> None:
        self._probes = probes
        self._context = replace(context, read_bytes=Guard(context.read_bytes, file_seconds))
        self._seconds = seconds
        self._busy: dict[str, threading.Thread] = {}

    def detect(self) -> list[tuple[Probe, list[Finding]]]:
        """What each probe finds, in the probes' order; a channel that two name alike goes to the first."""
        answers: dict[str, list[Finding]] = {}
        for probe in self._probes:
            if probe.name in self._busy and self._busy[probe.name].is_alive():
                continue
            thread = threading.Thread(
                target=self._detect, args=(probe, answers), name=f"edged-detect-{probe.name}", daemon=True
            )
            self._busy[probe.name] = thread
            thread.start()
        until = self._context.clock.monotonic() + self._seconds
        for thread in self._busy.values():
            thread.join(min(max(until - self._context.clock.monotonic(), 0.0), self._seconds))
        late = [Finding("", "stale", f"looking for it did not come back within {self._seconds:g} s")]
        known: set[str] = set()
        found = []
        for probe in self._probes:
            mine = answers.get(probe.name) or [replace(one, source=probe.name) for one in late]
            if probe.name in answers and not answers[probe.name]:
                mine = []
            mine = [one for one in mine if one.channel is None or one.channel.id not in known]
            known.update(one.channel.id for one in mine if one.channel is not None)
            found.append((probe, mine))
        return found

    def _detect(self, probe: Probe, answers: dict[str, list[Finding]]) -> None:
        try:
            answers[probe.name] = probe.detect(self._context)
        except Exception as error:  # a foreign probe may raise anything, and the others still count
            reason = f"{type(error).__name__}: {error}"
            answers[probe.name] = [Finding(probe.name, "invalid", reason)]


def listing(findings: Sequence[Finding], seen: Sequence[Seen], choice: Choice) -> list[Found]:
    """Every channel once, as it reads now, then every place where nothing was found."""
    shown = []
    remedies = {one.channel.id: one.remedy for one in findings if one.channel is not None}
    for one in seen:
        channel = one.channel
        verdict = choice.verdicts.get(channel.id)
        role: Role = "unavailable" if verdict is None else verdict.role
        why = "not judged yet" if verdict is None else verdict.why
        remedy = "" if one.status == "ok" else remedies.get(channel.id, "")
        shown.append(Found(channel.id, channel, one.status, one.reason, remedy, role, why, one.watts))
    for finding in findings:
        if finding.channel is None:
            why = finding.reason
            shown.append(
                Found(finding.source, None, finding.status, why, finding.remedy, "unavailable", why, None)
            )
    return shown
