"""Makes an ERA5 pool of a weather series: windows of hours, split by time with a gap, normalised on the
training hours alone. For a PC; boards never import it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from edged.formats import weather
from edged.tasks._contract import PoolError, Prepared, Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edged.formats.series import Series
    from edged.tasks.era5 import Prepare


def prepare(source: Path, options: Prepare, progress: Progress) -> Prepared:
    """Windows as start positions in one series, so that a pool is as small as its series."""
    import numpy as np

    progress("reading", 0, 0)
    place = None
    if options.latitude is not None and options.longitude is not None:
        place = options.latitude, options.longitude
    found, kind = weather.read(source, options.names, place)
    step = _step(source, found)
    window, horizon = (_steps(hours, step) for hours in (options.window_hours, options.horizon_hours))
    values = np.stack([found.columns[name] for name in options.names], axis=1)
    starts = _complete(found.seconds, values, step, window + horizon)
    held_out = len(starts) * options.held_out_percent // 100
    if held_out < 1:
        raise PoolError(f"{source}: {len(starts)} windows without a gap, too few to train and hold out")
    test = starts[-held_out:]
    # A training window ends, its target included, before the first hour that a held-out window sees.
    train = starts[starts + window + horizon <= test[0]]
    if len(train) < 1:
        raise PoolError(f"{source}: no window is left to train on before the {held_out} held out")
    hours = values[: train[-1] + window + horizon]
    mean, deviation = np.nanmean(hours, axis=0), np.nanstd(hours, axis=0)
    flat = [name for name, width in zip(options.names, deviation, strict=True) if not width > 0]
    if flat:
        raise PoolError(f"{source}: variable {flat[0]!r} never changes, nothing to learn from it")
    normal = np.nan_to_num((values - mean) / deviation).astype(np.float32)
    at = options.names.index(options.target)
    arrays = {
        "inputs": train,
        "targets": normal[train + window + horizon - 1, at],
        "test_inputs": test,
        "test_targets": normal[test + window + horizon - 1, at],
        "series": np.concatenate([normal, _clock(found.seconds)], axis=1),
    }
    facts = {
        "variables": list(options.names),
        "target": options.target,
        "target_index": at,
        "window": window,
        "horizon": horizon,
        "step_seconds": step,
        "mean": mean.tolist(),
        "deviation": deviation.tolist(),
        "place": found.where,
    }
    place_name = found.where or "no place told"
    first, last = (str(np.datetime64(int(found.seconds[row]), "s")) for row in (0, -1))
    return Prepared(
        arrays,
        kind,
        f"by time: {len(train)} windows to train, a gap, then {len(test)} held out",
        f"{source.name}: {len(found.seconds)} steps of {step} s, {first} to {last}, {place_name}",
        facts,
    )


def _step(source: Path, found: Series) -> int:
    import numpy as np

    if len(found.seconds) < 2:
        raise PoolError(f"{source}: {len(found.seconds)} time step is no series")
    return int(np.median(np.diff(found.seconds)))


def _steps(hours: int, step: int) -> int:
    steps, rest = divmod(hours * 3600, step)
    if rest or steps < 1:
        raise PoolError(f"the data has one value every {step} s, {hours} hours are no whole number of them")
    return steps


def _complete(
    seconds: NDArray[np.int64], values: NDArray[np.float64], step: int, length: int
) -> NDArray[np.int64]:
    """Starts of the stretches of `length` rows with no gap in time and no missing value."""
    import numpy as np

    spoiled = ~np.isfinite(values).all(axis=1)
    gaps = np.concatenate([[False], np.diff(seconds) != step])
    bad, cut = (np.concatenate([[0], np.cumsum(flags)]) for flags in (spoiled, gaps))
    starts = np.arange(max(0, len(seconds) - length + 1))
    ends = starts + length
    good = (bad[ends] == bad[starts]) & (cut[ends] == cut[np.minimum(starts + 1, len(seconds))])
    complete: NDArray[np.int64] = starts[good].astype(np.int64)
    return complete


def _clock(seconds: NDArray[np.int64]) -> NDArray[np.float32]:
    """The hour of the day as a point on a circle."""
    import numpy as np

    angle = (seconds % 86_400) * (2 * np.pi / 86_400)
    return np.stack([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)
