"""Messages to JSON and back, with refusals that name the field; knows no message. Pure."""

import math
from typing import Any, TypeVar, overload

import msgspec
from msgspec import Struct

MAX_JSON_BYTES = 1 << 20


class MessageError(ValueError):
    """A payload that is not the message its topic promises; the text names the field by dotted path."""


T = TypeVar("T")


def encode(message: Struct) -> bytes:
    """JSON of a message. Raises MessageError where a number is not finite (JSON has no word for it)."""
    _refuse_non_finite(message, type(message).__name__)
    return msgspec.json.encode(message)


@overload
def decode(kind: type[T], payload: bytes) -> T: ...
@overload
def decode(kind: Any, payload: bytes) -> Any: ...
def decode(kind: Any, payload: bytes) -> Any:
    """The message of that kind, or MessageError with the dotted path of what is wrong."""
    if len(payload) > MAX_JSON_BYTES:
        raise MessageError(f"{len(payload)} bytes, more than the {MAX_JSON_BYTES} that a message may have")
    try:
        return msgspec.json.decode(payload, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MessageError(str(error) or type(error).__name__) from None


def unknown_fields(kind: type[Struct], payload: bytes) -> dict[str, Any]:
    """Top-level fields that this version does not know, with their values, to be shown to people."""
    raw = msgspec.json.decode(payload)
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    return {name: value for name, value in raw.items() if name not in known} if isinstance(raw, dict) else {}


def _refuse_non_finite(value: object, path: str) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise MessageError(f"{path}: {value} is not a finite number")
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            _refuse_non_finite(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_non_finite(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _refuse_non_finite(item, f"{path}[{index}]")
