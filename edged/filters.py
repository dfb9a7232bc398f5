"""The subscriptions of one connection: what was asked for, and whether a topic is among it. Sends nothing."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from paho.mqtt.matcher import MQTTMatcher

MOST_TOPICS: Final = 4096
"""Topics whose answer is remembered: telemetry comes on the same ones again and again."""


class Filters:
    """`asked` is filter -> QoS."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}
        self._matcher = MQTTMatcher()  # type: ignore[no-untyped-call]
        self._known = lru_cache(MOST_TOPICS)(self._found)

    def add(self, filters: Mapping[str, int]) -> None:
        """More of them."""
        self.asked |= filters
        for filter in filters:
            self._matcher[filter] = True
        self._known.cache_clear()

    def match(self, topic: str) -> bool:
        """Whether the topic was asked for."""
        return self._known(topic)

    def _found(self, topic: str) -> bool:
        return next(self._matcher.iter_match(topic), None) is not None  # type: ignore[no-untyped-call]
