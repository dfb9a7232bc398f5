"""Columns of parquet files as the Hugging Face hub serves them; needs pyarrow, and Pillow for pictures.

For `prepare` on a PC only: boards read prepared pools.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edged.formats import archives
from edged.tasks._contract import PoolError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = b"PAR1"


def is_parquet(source: Path) -> bool:
    """Whether this is a parquet file, or a folder that holds some."""
    if source.is_dir():
        return next(source.rglob("*.parquet"), None) is not None
    return source.is_file() and archives.magic(source, len(MAGIC)) == MAGIC


def parts(source: Path) -> dict[str, list[Path]]:
    """The files of a folder (or the file itself) by the part in their name: `train`, `test` or none."""
    files = [source] if source.is_file() else sorted(source.rglob("*.parquet"))
    found: dict[str, list[Path]] = {}
    for path in files:
        part = path.name.split(".")[0].split("-")[0]
        if part != "unsupervised":
            found.setdefault(part if part in {"train", "test"} else "", []).append(path)
    return found


def columns(paths: list[Path], names: tuple[str, ...]) -> list[list[Any]]:
    """The named columns of the files, one after another. Raises PoolError naming the missing one."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise PoolError(f"{paths[0]}: parquet needs pyarrow: pip install 'edged[data]'") from None
    found: list[list[Any]] = [[] for _ in names]
    for path in paths:
        try:
            file = parquet.ParquetFile(path)
            has = file.schema_arrow.names
            missing = [name for name in names if name not in has]
            if missing:
                raise PoolError(f"{path}: no column {missing[0]!r}, there are {', '.join(has)}")
            table = file.read(columns=list(names))
        except (pyarrow.ArrowException, OSError) as error:
            raise PoolError(f"{path}: not a sound parquet file: {str(error).splitlines()[0]}") from None
        for values, name in zip(found, names, strict=True):
            values.extend(table.column(name).to_pylist())
    return found


def pictures(values: list[Any], size: tuple[int, int], mode: str, shown: Path) -> NDArray[np.uint8]:
    """Encoded pictures (structs with `bytes`) as uint8 (n, height, width[, 3]); mode "L" or "RGB"."""
    import numpy as np

    try:
        from PIL import Image
    except ImportError:
        raise PoolError(f"{shown}: pictures need Pillow: pip install 'edged[data]'") from None
    shape = (len(values), *size) if mode == "L" else (len(values), *size, 3)
    pixels = np.empty(shape, np.uint8)
    for row, value in enumerate(values):
        content = value.get("bytes") if isinstance(value, dict) else None
        if not isinstance(content, bytes):
            raise PoolError(f"{shown}: row {row} holds no picture (no bytes)")
        try:
            # The size is known before the pixels are decoded, and bounds them.
            with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as picture:
                if picture.size != size[::-1]:
                    width, height = picture.size
                    raise PoolError(
                        f"{shown}: row {row} is {width} x {height}, expected {size[1]} x {size[0]}"
                    )
                pixels[row] = np.asarray(picture.convert(mode))
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            if isinstance(error, PoolError):
                raise
            raise PoolError(f"{shown}: row {row} is no PNG or JPEG picture: {error}") from None
    return pixels


def labels(values: list[Any], classes: int, shown: Path) -> NDArray[np.int64]:
    """A column of class numbers 0 to classes - 1."""
    import numpy as np

    for row, value in enumerate(values):
        if type(value) is not int or not 0 <= value < classes:
            raise PoolError(f"{shown}: row {row} has label {value!r}, expected 0 to {classes - 1}")
    return np.array(values, np.int64)


def classified(
    source: Path, names: tuple[str, str], size: tuple[int, int], mode: str
) -> dict[str, NDArray[Any]]:
    """A pool's four arrays of ten kinds of pictures: uint8 (n[, 3], height, width), labels int64 (n,)."""
    import numpy as np

    found = parts(source)
    arrays: dict[str, NDArray[Any]] = {}
    for part, prefix in (("train", ""), ("test", "test_")):
        if part not in found:
            raise PoolError(f"{source}: no {part}-*.parquet, expected the train and the test part")
        images, classes = columns(found[part], names)
        pixels = pictures(images, size, mode, found[part][0])
        arrays[f"{prefix}inputs"] = np.moveaxis(pixels, -1, 1) if mode == "RGB" else pixels
        arrays[f"{prefix}targets"] = labels(classes, 10, found[part][0])
    return arrays
