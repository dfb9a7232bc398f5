"""What the coordinator works with, as contracts: link, clocks, workers, evaluation. Tests give others."""

import time
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from coordinator.evaluate import Answer, Question
from coordinator.evaluator import Evaluator
from coordinator.workers import Callback, Done, Job, Workers
from edged.link import Announcement, Link, LinkConfig

Follow = Callable[[str, dict[str, Any]], None]
"""`follow(what, row)`: rows as they are recorded, and `begun`, `failed`, `evaluation`, `finished`."""
Onlooker = Callable[[str, Any], None]
"""Sees the same, and `power`, `note`, `fleet` and `alert` with their values; must return at once."""


class Crew(Protocol):
    """Does jobs elsewhere (`workers.Workers`)."""

    def __call__(self, job: Job, callback: Callback, /) -> None: ...

    def close(self) -> None: ...


class Examiner(Protocol):
    """The evaluation process, or what stands for it (`evaluator.Evaluator`)."""

    def ask(self, question: Question, /) -> None: ...

    def close(self) -> None: ...


def mqtt_link(config: LinkConfig, announcement: Announcement) -> Link:
    """A link over MQTT."""
    from edged.paho_link import PahoLink

    return PahoLink(config, announcement)


class Tools(Struct, frozen=True):
    """The real ones by default. `wall` is only shown to people, nothing is decided by it."""

    make_link: Callable[[LinkConfig, Announcement], Link] = mqtt_link
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    crew: Callable[[Callable[[Done], None]], Crew] = Workers
    examiner: Callable[[Callable[[Answer], None]], Examiner] = Evaluator
