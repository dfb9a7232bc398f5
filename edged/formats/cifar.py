"""CIFAR-10's binary version (folder or tar.gz). The python version holds pickles, which are never read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edged.formats import archives
from edged.tasks._contract import PoolError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RECORD_BYTES = 1 + 3 * 32 * 32
MAX_RECORDS = 100_000
_BINARY = re.compile(r"(?:^|/)(data_batch_\d+|test_batch)\.bin$")
_PICKLED = re.compile(r"(?:^|/)(data_batch_\d+|test_batch)$")


def read(source: Path) -> dict[str, NDArray[Any]]:
    """A pool's four arrays: pictures uint8 (n, 3, 32, 32), labels int64 (n,)."""
    import numpy as np

    found: dict[str, NDArray[np.uint8]] = {}
    for member in archives.members(source, lambda name: bool(_BINARY.search(name) or _PICKLED.search(name))):
        if _PICKLED.search(member.name):
            raise PoolError(
                f"{member.shown}: the python version of CIFAR-10, whose files are pickles and can run code;"
                " take cifar-10-binary.tar.gz or the parquet files"
            )
        if member.size % RECORD_BYTES or not 0 < member.size <= MAX_RECORDS * RECORD_BYTES:
            raise PoolError(f"{member.shown}: {member.size} bytes, expected a multiple of {RECORD_BYTES}")
        records = np.frombuffer(member.read(), np.uint8).reshape(-1, RECORD_BYTES)
        if records[:, 0].max() > 9:
            raise PoolError(f"{member.shown}: holds label {records[:, 0].max()}, expected 0 to 9")
        found[Path(member.name).stem] = records
    train = [found[name] for name in sorted(found) if name.startswith("data_batch")]
    if not train or "test_batch" not in found:
        missing = "test_batch.bin" if train else "data_batch_1.bin"
        raise PoolError(f"{source}: no {missing} in it; expected the files of cifar-10-binary.tar.gz")
    arrays: dict[str, NDArray[Any]] = {}
    for prefix, records in (("", np.concatenate(train)), ("test_", found["test_batch"])):
        arrays[f"{prefix}inputs"] = records[:, 1:].reshape(-1, 3, 32, 32)
        arrays[f"{prefix}targets"] = records[:, 0].astype(np.int64)
    return arrays
