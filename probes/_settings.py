"""PURE. Values out of a probe's `[energy.X]` table, refused with the key's full name."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import cast, get_args

from probes import Scope


class SettingError(ValueError):
    """The text names the key, what it held and what it takes."""


def only(settings: Mapping[str, object], table: str, keys: Collection[str]) -> None:
    """Refuses a key that is none of these: a misspelt one must not be a silent default."""
    for key in settings:
        if key not in keys:
            raise SettingError(f"energy.{table}.{key}: unknown key; there are: {', '.join(keys)}")


def number(settings: Mapping[str, object], table: str, key: str, default: float | None = None) -> float:
    """A finite number of 0 or more."""
    value = settings.get(key, default)
    if value is None:
        raise SettingError(f"energy.{table}.{key} is missing")
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or value < 0
    ):
        raise SettingError(f"energy.{table}.{key}: {value!r} is no number of 0 or more")
    return float(value)


def word(settings: Mapping[str, object], table: str, key: str, default: str | None = None) -> str:
    """A text that is not empty."""
    value = settings.get(key, default)
    if value is None:
        raise SettingError(f"energy.{table}.{key} is missing")
    if not isinstance(value, str) or not value:
        raise SettingError(f"energy.{table}.{key}: {value!r} is no text")
    return value


def scope(settings: Mapping[str, object], table: str, default: Scope = "wall") -> Scope:
    """One of the scopes that joules can have."""
    said = word(settings, table, "scope", default)
    if said not in get_args(Scope):
        raise SettingError(f"energy.{table}.scope: {said!r} is none of {', '.join(get_args(Scope))}")
    return cast("Scope", said)


def words(settings: Mapping[str, object], table: str, key: str) -> tuple[str, ...]:
    """A list of texts; empty where the key is not there."""
    value = settings.get(key, ())
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
        raise SettingError(f"energy.{table}.{key}: {value!r} is no list of texts")
    return tuple(value)
