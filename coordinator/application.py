"""One asynchronous update applied to the model: a step along its gradient, or a mixture of the two models.

Files in, files out, a slice of one tensor at a time; on a worker thread, knowing neither boards nor rules.
The same files and numbers give the same bytes, so an application that a crash cut off is simply done again.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator.aggregate import NORM_BOUND
from coordinator.slices import NUMPY, SLICE_ELEMENTS, header, piece, slices, widest_first, write
from edged.messages import Manifest
from edged.optimizers import GRADIENT, PREFIX
from edged.weights import Entry, Schema, WeightsError, check, read_header, schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]


def check_gradient(update: Path, model: Path, rate: float, norm_bound: float = NORM_BOUND) -> None:
    """Raises WeightsError where the update is not a finite gradient (or new value) for each of the model's
    tensors, or a step of `rate` along it would go as far as `aggregate.check_update` allows nobody to."""
    check(update, _expected(update, model))
    before, after = read_header(model), read_header(update)
    squares = moved = 0.0
    elements = 0
    for name, entry in before.items():
        gradient = after.get(GRADIENT + name)
        if name.startswith(PREFIX) or not entry.dtype.startswith("F"):
            continue
        for place, given in zip(slices(model, entry), slices(update, gradient or after[name]), strict=True):
            squares += _square(place)
            moved += _square(rate * given.astype("f8") if gradient else given.astype("f8") - place)
        elements += math.prod(entry.shape)
    rms, shift = math.sqrt(squares / elements), math.sqrt(moved / elements)
    if not shift <= norm_bound * (1 + rms):
        raise WeightsError(
            f"{update.name}: moves the model's parameters by {shift:.3g} (root mean square), "
            f"more than {norm_bound:g} x (1 + {rms:.3g})"
        )


def descend(
    base: Path,
    update: Path,
    target: Path,
    chunk_bytes: int,
    rate: float,
    *,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    velocity: tuple[Path | None, Path] | None = None,
) -> Manifest:
    """Write base - rate (g + weight_decay base) as `target`; durable on return.

    With `momentum` m the step is v = m v + rate (g + weight_decay base); `velocity` names the file of v
    before (None: nothing yet) and after, which is written first. Tensors without a gradient are the update's.
    Raises OSError, WeightsError.
    """
    found, entries = read_header(update), read_header(base)
    before = velocity[0] if velocity is not None and momentum else None
    old = read_header(before) if before is not None else {}

    def step(name: str, start: int, count: int) -> "Numbers":
        import numpy as np

        place = piece(base, entries[name], start, count).astype(np.float64)
        move = rate * (piece(update, found[GRADIENT + name], start, count) + weight_decay * place)
        if before is not None:
            move = move + momentum * piece(before, old[name], start, count).astype(np.float64)
        return np.asarray(move)

    if velocity is not None and momentum:
        moving = {name: entry for name, entry in entries.items() if GRADIENT + name in found}
        _written(velocity[1], moving, chunk_bytes, step)

    def place(name: str, start: int, count: int) -> "Numbers":
        if GRADIENT + name not in found:
            return piece(update, found[name], start, count)
        return piece(base, entries[name], start, count) - step(name, start, count)

    return _written(target, entries, chunk_bytes, place)


def mix(base: Path, update: Path, target: Path, chunk_bytes: int, rate: float) -> Manifest:
    """Write (1 - rate) base + rate update as `target` (FedAsync, ALGORITHMS 3.3); durable on return.

    Integer tensors are the update's. Raises OSError, WeightsError.
    """
    found = read_header(update)
    entries = {name: entry for name, entry in read_header(base).items() if not name.startswith(PREFIX)}

    def mixed(name: str, start: int, count: int) -> "Numbers":
        import numpy as np

        new = piece(update, found[name], start, count)
        if not entries[name].dtype.startswith("F"):
            return new
        old = piece(base, entries[name], start, count).astype(np.float64)
        return (1 - rate) * old + rate * new.astype(np.float64)

    return _written(target, entries, chunk_bytes, mixed)


def _written(
    target: Path, entries: dict[str, Entry], chunk_bytes: int, part: "Callable[[str, int, int], Numbers]"
) -> Manifest:
    names = widest_first(entries)

    def parts() -> Iterator[bytes]:
        yield header(names, entries)
        for name in names:
            kind = NUMPY[entries[name].dtype]
            for start in range(0, math.prod(entries[name].shape), SLICE_ELEMENTS):
                yield part(name, start, SLICE_ELEMENTS).astype(kind).tobytes()

    return write(target, parts(), chunk_bytes)


def _expected(update: Path, model: Path) -> Schema:
    """A gradient for each of the model's tensors, or its new value: only numbers that are no gradient's may
    go without one."""
    given, expected = schema(update), {}
    for name, kind in schema(model).items():
        if name.startswith(PREFIX):
            continue
        gradient = kind[0].startswith("F") and name not in given
        expected[GRADIENT + name if gradient else name] = kind
    if not any(name.startswith(GRADIENT) for name in expected):
        raise WeightsError(f"{update.name}: has no gradient")
    return expected


def _square(values: "Numbers") -> float:
    import numpy as np

    wide = values.astype(np.float64)
    return float(np.einsum("i,i", wide, wide))
