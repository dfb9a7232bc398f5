"""Hears metered plugs over MQTT for the meter: a link of its own, on the fleet's broker or the home's.

A link apart from the board's, so that a plug that chatters cannot fill the board's queue.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from edged.link import LinkConfig, Message
from edged.paho_link import PahoLink

Heard = Callable[[str, bytes], None]
END = object()


class PlugLink:
    """Give its `subscribe` to the meter's context. `[energy.plug]` may name a broker of its own."""

    def __init__(self, board: LinkConfig, plug: Mapping[str, Any]) -> None:
        """The fleet's broker, unless the plug's table has `host` (`port`, `username`, `password_file`)."""
        self._config = link_config(board, plug)
        self._lock = threading.Lock()
        self._link: PahoLink | None = None
        self._heard: dict[str, list[Heard]] = {}

    def subscribe(self, topic: str, heard: Heard) -> Callable[[], None]:
        """Call back at each message of a topic, from a thread of the link; gives back the unsubscribe."""
        with self._lock:
            first = topic not in self._heard
            self._heard.setdefault(topic, []).append(heard)
            link = self._link
            if link is None:
                link = self._link = PahoLink(self._config)
                threading.Thread(target=self._follow, args=(link,), name="edged-plug", daemon=True).start()
                link.subscribe(topic)
                link.start()
            elif first:
                link.subscribe(topic)

        def stop() -> None:
            with self._lock:
                self._heard[topic].remove(heard)

        return stop

    def close(self) -> None:
        with self._lock:
            link, self._link = self._link, None
        if link is not None:
            link.close()
            link.events.put(END)

    def _follow(self, link: PahoLink) -> None:
        while (event := link.events.get()) is not END:
            if isinstance(event, Message):
                with self._lock:
                    wanted = list(self._heard.get(event.topic, ()))
                for heard in wanted:
                    heard(event.topic, event.payload)


def hearing(board: LinkConfig, energy: Mapping[str, Mapping[str, Any]]) -> PlugLink | None:
    """A link where the settings name a plug's topic. Raises ValueError for an address that is none."""
    plug = energy.get("plug", {})
    return PlugLink(board, plug) if plug.get("topic") else None


def link_config(board: LinkConfig, plug: Mapping[str, Any]) -> LinkConfig:
    """Where the plug speaks. Raises ValueError for an address that is none."""
    client_id = f"{board.client_id}-meter"
    host = plug.get("host")
    if host is None:
        return replace(board, client_id=client_id)
    port = plug.get("port", 1883)
    if not isinstance(host, str) or isinstance(port, bool) or not isinstance(port, int):
        raise ValueError(f"energy.plug: host {host!r} and port {port!r} are no address")
    return LinkConfig(
        host=host,
        port=port,
        client_id=client_id,
        username=_text(plug, "username"),
        password_file=_text(plug, "password_file"),
    )


def _text(plug: Mapping[str, Any], key: str) -> str | None:
    value = plug.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"energy.plug.{key}: {value!r} is no text")
    return value
