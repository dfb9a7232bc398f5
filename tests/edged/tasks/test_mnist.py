"""MNIST from the folders that people have, the official set where it lies beside the repository."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edged.tasks import PoolError, mnist

WriteIdx = Callable[..., None]
OFFICIAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "mnist"


@pytest.mark.parametrize("below", ["", "MNIST/raw", "raw"])
@pytest.mark.parametrize("packed", [True, False])
def test_either_folder_form_and_packing_is_the_same_pool(
    below: str, packed: bool, tmp_path: Path, write_idx: WriteIdx
) -> None:
    write_idx(tmp_path / "a" / below, "train", 50, packed)
    write_idx(tmp_path / "a" / below, "t10k", 20, packed)
    write_idx(tmp_path / "b", "train", 50)
    write_idx(tmp_path / "b", "t10k", 20)
    info = mnist.inspect(tmp_path / "a")
    assert info == mnist.inspect(tmp_path / "b")
    assert (info.samples, info.test_samples) == (50, 20)
    assert info.split.startswith("official")
    assert info.origin == "other data than MNIST, in its format"
    data = mnist.load(tmp_path / "a", mnist.Options())
    assert np.array_equal(data.inputs, mnist.load(tmp_path / "b", mnist.Options()).inputs)
    if not packed:
        assert not data.inputs.flags.owndata, "a plain file is mapped, not copied"


def test_one_part_alone_is_split_by_hash_without_overlap(tmp_path: Path, write_idx: WriteIdx) -> None:
    write_idx(tmp_path, "t10k", 100)
    info, data = mnist.inspect(tmp_path), mnist.load(tmp_path, mnist.Options())
    assert (info.samples, info.test_samples) == (80, 20)
    assert info.split == "t10k only, shuffled by hash: 80 to train and 20 held out"
    seen = np.concatenate([data.inputs, data.test_inputs]).reshape(100, -1)
    assert len(np.unique(seen, axis=0)) == 100
    assert len(set(data.test_targets.tolist())) > 5, "shuffled, not the end of the file"


def test_other_content_is_another_fingerprint(tmp_path: Path, write_idx: WriteIdx) -> None:
    write_idx(tmp_path / "a", "t10k", 100)
    write_idx(tmp_path / "b", "t10k", 101)
    assert mnist.inspect(tmp_path / "a").fingerprint != mnist.inspect(tmp_path / "b").fingerprint


@pytest.mark.skipif(not OFFICIAL.is_dir(), reason="MNIST's official files are not beside the repository")
def test_the_official_files_are_recognised() -> None:
    info = mnist.inspect(OFFICIAL)
    assert (info.samples, info.test_samples) == (8000, 2000)
    assert info.origin == "the official MNIST files"
    labels = mnist.load(OFFICIAL, mnist.Options()).test_targets
    assert np.bincount(labels).min() > 140, "all ten classes are held out"


def _images(count: int, rows: int = 28) -> bytes:
    return struct.pack(">4I", 2051, count, rows, rows) + bytes(count * rows * rows)


def _labels(count: int, value: int = 1) -> bytes:
    return struct.pack(">2I", 2049, count) + bytes([value]) * count


IMAGES, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
BAD: dict[str, tuple[dict[str, bytes], str]] = {
    "label file of another length": (
        {IMAGES: _images(10), LABELS: _labels(9)},
        f"{LABELS}: 9 labels for 10 images in {IMAGES}",
    ),
    "labels in place of images": (
        {IMAGES: _labels(10), LABELS: _labels(10)},
        rf"{IMAGES}: magic 2049 \(a label file\), expected 2051 \(an image file\)",
    ),
    "another file altogether": (
        {IMAGES: b"<html>404 not found</html>", LABELS: _labels(10)},
        f"{IMAGES}: magic",
    ),
    "truncated gz": (
        {f"{IMAGES}.gz": gzip.compress(_images(10))[:-20], LABELS: _labels(10)},
        rf"{IMAGES}\.gz: truncated",
    ),
    "damaged gz": (
        {f"{IMAGES}.gz": gzip.compress(_images(10))[:30] + b"\xff" * 40, LABELS: _labels(10)},
        rf"{IMAGES}\.gz: not a sound gzip",
    ),
    "wrong checksum in gz": (
        {f"{IMAGES}.gz": gzip.compress(_images(10))[:-8] + bytes(8), LABELS: _labels(10)},
        rf"{IMAGES}\.gz: not a sound gzip",
    ),
    "truncated": (
        {IMAGES: _images(10)[:-5], LABELS: _labels(10)},
        f"{IMAGES}: truncated, 5 of 7840 bytes are",
    ),
    "truncated in its header": (
        {IMAGES: _images(10)[:9], LABELS: _labels(10)},
        f"{IMAGES}: truncated in its header",
    ),
    "empty file": ({IMAGES: b"", LABELS: _labels(10)}, f"{IMAGES}: truncated in its header"),
    "too long": (
        {IMAGES: _images(10) + b"x", LABELS: _labels(10)},
        f"{IMAGES}: goes on after the 10 samples",
    ),
    "no samples": ({IMAGES: _images(0), LABELS: _labels(0)}, f"{IMAGES}: its header tells of 0 x 28 x 28"),
    "a bomb": (
        {f"{IMAGES}.gz": gzip.compress(struct.pack(">4I", 2051, 2**32 - 1, 28, 28)), LABELS: _labels(10)},
        "which nobody's data has",
    ),
    "another size": (
        {IMAGES: _images(10, 32), LABELS: _labels(10)},
        f"{IMAGES}: images of 32 x 32, expected 28",
    ),
    "label out of range": (
        {IMAGES: _images(10), LABELS: _labels(10, 26)},
        f"{LABELS}: holds label 26, expected 0 to 9",
    ),
    "no labels": ({IMAGES: _images(10)}, r"t10k-labels-idx1-ubyte\[\.gz\] is missing"),
    "no images": ({LABELS: _labels(10)}, r"t10k-images-idx3-ubyte\[\.gz\] is missing"),
    "too few": ({IMAGES: _images(3), LABELS: _labels(3)}, f"{IMAGES}: 3 images are too few"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_named_with_what_was_expected(case: str, tmp_path: Path) -> None:
    files, message = BAD[case]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(PoolError, match=message) as caught:
        mnist.inspect(tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(PoolError):
        mnist.load(tmp_path, mnist.Options())


def test_a_gz_without_its_suffix_is_read_all_the_same(tmp_path: Path) -> None:
    (tmp_path / IMAGES).write_bytes(gzip.compress(_images(10)))
    (tmp_path / LABELS).write_bytes(_labels(10))
    assert mnist.inspect(tmp_path).samples == 8
    assert mnist.load(tmp_path, mnist.Options()).inputs.shape == (8, 28, 28)
