"""From the boards' updates to the next model: what is checked of an update, how accepted ones are merged.

Files in, files out, a slice of one tensor at a time, so that memory does not grow with boards or models
(ARCHITECTURE 7.3). It runs on a worker thread and knows neither rounds nor links.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coordinator.slices import NUMPY, SLICE_ELEMENTS, header, piece, slices, whole, widest_first, write
from edged.messages import Manifest
from edged.optimizers import PREFIX
from edged.weights import Schema, WeightsError, check, read_header, schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

NORM_BOUND: Final = 10.0
"""An update may move a parameter, root mean square, by this times (1 + root mean square of the model)."""


def check_update(update: Path, model: Path, norm_bound: float = NORM_BOUND) -> None:
    """Raises WeightsError where the update is not a finite set of the model's tensors, or lies so far from
    the model that it would be the model: a site with 0.6 % of the data, scaled by 1,000, moved a
    size-weighted mean by 5.5 times its own norm (KatherLab/MediSwarm PR 566)."""
    expected = _expected(update, model)
    before, after = read_header(model), read_header(update)
    # The sums below tell of values that are not finite in the model's own tensors, not of these.
    special = any(dtype == "BOOL" or name.startswith(PREFIX) for name, (dtype, _) in expected.items())
    if special or schema(update) != expected:
        check(update, expected)
    squares = moved = 0.0
    elements = 0
    for name, entry in before.items():
        if not entry.dtype.startswith("F") or name.startswith(PREFIX):
            continue
        for old, new in zip(slices(model, entry), slices(update, after[name]), strict=True):
            step, place = _wide_difference(new, old)
            squares += place
            moved += step
        elements += math.prod(entry.shape)
    if not elements:
        return
    if not math.isfinite(moved):
        # One value that is not finite makes the sum so; this pass names the tensor.
        check(update, expected)
    rms, shift = math.sqrt(squares / elements), math.sqrt(moved / elements)
    if not shift <= norm_bound * (1 + rms):
        raise WeightsError(
            f"{update.name}: moves the model's parameters by {shift:.3g} (root mean square), "
            f"more than {norm_bound:g} x (1 + {rms:.3g})"
        )


def _expected(update: Path, model: Path) -> Schema:
    """The model's tensors, and what the update has of its optimizer: numbers, or as large as a parameter."""
    expected = {name: kind for name, kind in schema(model).items() if not name.startswith(PREFIX)}
    for name, (dtype, shape) in schema(update).items():
        if not name.startswith(PREFIX):
            continue
        parameter = expected.get(name.removeprefix(PREFIX).partition("/")[2])
        if parameter is None or not dtype.startswith("F") or shape not in ((), parameter[1]):
            raise WeightsError(f"{update.name}: {name!r} is no state of a parameter")
        expected[name] = (dtype, shape)
    return expected


def fold(
    updates: Sequence[tuple[Path, int]],
    target: Path,
    chunk_bytes: int,
    slice_elements: int = SLICE_ELEMENTS,
) -> Manifest:
    """Write the mean of the updates, weighted by samples, as the model file `target`; durable on return.

    `updates` are checked files with their ordered samples, in order of board id: the sums are made in that
    order in float64, so arrival changes no bit. Integer tensors are the first board's. Raises OSError,
    WeightsError.
    """
    import numpy as np

    total = sum(samples for _, samples in updates)
    if total < 1:
        raise ValueError("nothing to merge: no update with samples")
    if len(updates) == 1:
        # The same bytes, so that ranks that trained together hold the merged model already.
        return write(target, whole(updates[0][0]), chunk_bytes)
    headers = [read_header(path) for path, _ in updates]
    first = headers[0]
    for (path, _), found in zip(updates, headers, strict=True):
        if found.keys() != first.keys():
            odd = sorted(found.keys() ^ first.keys())[0]
            raise WeightsError(f"{path.name}: tensor {odd!r} is not in all of the updates")
    names = widest_first(first)

    def merged() -> Iterator[bytes]:
        yield header(names, first)
        for name in names:
            entry = first[name]
            if not entry.dtype.startswith("F"):
                for part in slices(updates[0][0], entry):
                    yield part.tobytes()
                continue
            for start in range(0, math.prod(entry.shape), slice_elements):
                mean: NDArray[Any] | None = None
                for (path, samples), found in zip(updates, headers, strict=True):
                    part = piece(path, found[name], start, slice_elements)
                    term = np.multiply(part, samples / total, dtype=np.float64)
                    mean = term if mean is None else np.add(mean, term, out=mean)
                assert mean is not None
                yield mean.astype(NUMPY[entry.dtype]).tobytes()

    return write(target, merged(), chunk_bytes)


def _wide_difference(new: "NDArray[Any]", old: "NDArray[Any]") -> tuple[float, float]:
    """Sums of squares of new - old and of old, in float64; not finite where new is not."""
    import numpy as np

    # einsum, because dot wakes the threads of a BLAS, which spin on cores that others need.
    with np.errstate(over="ignore", invalid="ignore"):
        wide = old.astype(np.float64)
        place = float(np.einsum("i,i", wide, wide))
        np.subtract(new, wide, out=wide)
        return float(np.einsum("i,i", wide, wide)), place
