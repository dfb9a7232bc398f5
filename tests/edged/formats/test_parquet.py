"""Parquet as the Hugging Face hub serves it: reviews, pictures as PNG, and what can be wrong with them."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edged import tasks
from edged.tasks import PoolError, Prepared

pyarrow = pytest.importorskip("pyarrow", reason="parquet needs the extra edged[data]")
Image = pytest.importorskip("PIL.Image", reason="pictures need the extra edged[data]")


def _write(path: Path, columns: dict[str, list[Any]]) -> None:
    from pyarrow import parquet

    path.parent.mkdir(exist_ok=True)
    parquet.write_table(pyarrow.table(columns), path)


def _png(value: int, size: tuple[int, int], mode: str = "L") -> dict[str, Any]:
    out = io.BytesIO()
    Image.new(mode, size, value if mode == "L" else (value, 2 * value, 3)).save(out, "PNG")
    return {"bytes": out.getvalue(), "path": None}


def _prepare(task: str, source: Path, **settings: str) -> Prepared:
    found: Any = tasks.find(task)
    options = tasks.options_of(found, settings, strict=False, kind=found.Prepare)
    made: Prepared = found.prepare(source, options, lambda what, done, total: None)
    return made


def test_mnist_of_the_hub(tmp_path: Path) -> None:
    for part, count in (("train", 7), ("test", 3)):
        images = [_png(10 * row, (28, 28)) for row in range(count)]
        columns: dict[str, list[Any]] = {"image": images, "label": list(range(count))}
        _write(tmp_path / "mnist" / f"{part}-00000-of-00001.parquet", columns)
    made = _prepare("mnist", tmp_path)
    assert made.arrays["inputs"].shape == (7, 28, 28)
    assert made.arrays["inputs"][5].tolist() == np.full((28, 28), 50).tolist()
    assert made.arrays["test_targets"].tolist() == [0, 1, 2]


def test_cifar10_of_the_hub_has_colours_first(tmp_path: Path) -> None:
    for part, count in (("train", 4), ("test", 2)):
        images = [_png(20 + row, (32, 32), "RGB") for row in range(count)]
        _write(tmp_path / f"{part}-00000-of-00001.parquet", {"img": images, "label": list(range(count))})
    made = _prepare("cifar10", tmp_path)
    assert made.arrays["inputs"].shape == (4, 3, 32, 32)
    assert made.arrays["inputs"][1, :, 0, 0].tolist() == [21, 42, 3]
    assert made.facts["mean"][2] == pytest.approx(3 / 255)


def test_imdb_of_the_hub_without_its_unlabelled_part(tmp_path: Path) -> None:
    texts: dict[str, list[Any]] = {"text": ["a fine film", "a dull film"], "label": [1, 0]}
    for part in ("train", "test", "unsupervised"):
        _write(tmp_path / "plain_text" / f"{part}-00000-of-00001.parquet", texts)
    made = _prepare("imdb", tmp_path, words="100", length="8")
    assert made.split == "official: 2 to train, 2 held out"
    assert made.arrays["inputs"][:, :4].tolist() == [[2, 5, 3, 0], [2, 4, 3, 0]]
    assert made.facts["vocabulary"] == ["a", "film", "dull", "fine"]


BAD: dict[str, tuple[dict[str, list[Any]], str]] = {
    "another column": ({"picture": [1], "label": [1]}, "no column 'image', there are picture, label"),
    "label out of range": (
        {"image": [_png(1, (28, 28))], "label": [10]},
        "row 0 has label 10, expected 0 to 9",
    ),
    "label missing": ({"image": [_png(1, (28, 28))] * 2, "label": [1, None]}, "row 1 has label None"),
    "another size": ({"image": [_png(1, (32, 28))], "label": [1]}, "row 0 is 32 x 28, expected 28 x 28"),
    "no picture": ({"image": [{"bytes": b"GIF89a", "path": ""}], "label": [1]}, "row 0 is no PNG or JPEG"),
    "null picture": ({"image": [None, _png(1, (28, 28))], "label": [1, 1]}, "row 0 holds no picture"),
    "text": ({"image": ["x"], "label": [1]}, "row 0 holds no picture"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_is_named(case: str, tmp_path: Path) -> None:
    columns, message = BAD[case]
    for part in ("train", "test"):
        _write(tmp_path / f"{part}-00000-of-00001.parquet", columns)
    with pytest.raises(PoolError, match=message):
        _prepare("mnist", tmp_path)


def test_a_truncated_file_and_a_missing_part_are_named(tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-00001.parquet"
    _write(path, {"image": [_png(1, (28, 28))], "label": [1]})
    with pytest.raises(PoolError, match=r"no test-\*.parquet, expected the train and the test part"):
        _prepare("mnist", tmp_path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(PoolError, match=r"train-00000-of-00001.parquet: not a sound parquet file"):
        _prepare("mnist", tmp_path)
