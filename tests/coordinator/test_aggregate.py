"""Updates are checked with distrust and merged to the same bytes whatever the order of arrival."""

import random
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coordinator.aggregate import check_update, fold
from edged.transfers import describe
from edged.weights import WeightsError, arrays, save, schema

Arrays = dict[str, NDArray[Any]]


def tensors(seed: int, scale: float = 1.0) -> Arrays:
    random_numbers = np.random.default_rng(seed)
    return {
        "conv.weight": (random_numbers.normal(size=(4, 3, 3)) * scale).astype("f4"),
        "conv.bias": (random_numbers.normal(size=4) * scale).astype("f4"),
        "half": (random_numbers.normal(size=7) * scale).astype("f2"),
        "wide": random_numbers.normal(size=()) * scale,
        "seen": np.array(seed, dtype="i8"),
        "mask": np.array([True, False, bool(seed % 2)]),
        "none": np.empty((0, 3), dtype="f4"),
    }


def write(folder: Path, name: str, values: Mapping[str, Any]) -> Path:
    path = folder / f"{name}.safetensors"
    save(path, values)
    return path


def reference(parts: list[tuple[Arrays, int]]) -> Arrays:
    total = sum(samples for _, samples in parts)
    merged: Arrays = {}
    for name, first in parts[0][0].items():
        if np.asarray(first).dtype.kind == "f":
            mean = np.zeros(np.shape(first))
            for values, samples in parts:
                mean = mean + np.asarray(values[name], dtype="f8") * (samples / total)
            merged[name] = mean.astype(np.asarray(first).dtype)
        else:
            merged[name] = np.asarray(first)
    return merged


@settings(max_examples=25, deadline=None)
@given(shares=st.lists(st.integers(1, 10_000), min_size=1, max_size=6), seed=st.integers(0, 1000))
def test_the_merged_model_is_the_mean_by_samples(shares: list[int], seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = [(tensors(seed + i), n) for i, n in enumerate(shares)]
        updates = [(write(folder, f"b{i}", values), n) for i, (values, n) in enumerate(parts)]
        manifest = fold(updates, folder / "merged.safetensors", 1024)
        found = dict(arrays(folder / "merged.safetensors"))
        for key, expected in reference(parts).items():
            assert found[key].dtype == expected.dtype
            np.testing.assert_array_equal(found[key], expected)
        assert manifest == describe(folder / "merged.safetensors", 1024)


@settings(max_examples=15, deadline=None)
@given(order=st.permutations(range(5)))
def test_the_bytes_do_not_depend_on_the_order_of_arrival(order: list[int]) -> None:
    """Updates are stored in the order of arrival and merged in board order, as `rounds` lists them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stored = {f"b{i}": (write(folder, f"b{i}", tensors(i)), 100 + i) for i in order}
        ours = fold([stored[board] for board in sorted(stored)], folder / "ours.safetensors", 4096)
        again = {f"b{i}": (write(folder, f"again{i}", tensors(i)), 100 + i) for i in range(5)}
        assert fold([again[board] for board in sorted(again)], folder / "a.safetensors", 4096) == ours


def test_large_tensors_go_through_in_slices(tmp_path: Path) -> None:
    updates = [(write(tmp_path, f"b{i}", tensors(i)), i + 1) for i in range(3)]
    whole = fold(updates, tmp_path / "whole.safetensors", 64)
    assert fold(updates, tmp_path / "s.safetensors", 64, slice_elements=5) == whole
    assert schema(tmp_path / "s.safetensors") == schema(tmp_path / "b0.safetensors")


def test_equal_updates_change_nothing(tmp_path: Path) -> None:
    updates = [(write(tmp_path, f"b{i}", tensors(3)), 7) for i in range(4)]
    fold(updates, tmp_path / "merged.safetensors", 64)
    merged = dict(arrays(tmp_path / "merged.safetensors"))
    for key, value in tensors(3).items():
        np.testing.assert_allclose(merged[key], value, rtol=1e-6)


def test_a_failed_merge_leaves_nothing_behind(tmp_path: Path) -> None:
    good, gone = write(tmp_path, "a", tensors(1)), write(tmp_path, "b", tensors(2))
    other = {**tensors(2), "conv.bias": np.zeros(3, "f4")}
    save(gone, other)
    with pytest.raises(WeightsError):
        fold([(gone, 1), (good, 1), (_cut(tmp_path, good), 1)], tmp_path / "merged.safetensors", 64)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.safetensors",
        "b.safetensors",
        "cut.safetensors",
    ]


def _cut(folder: Path, path: Path) -> Path:
    cut = folder / "cut.safetensors"
    cut.write_bytes(path.read_bytes()[:-8])
    return cut


HOSTILE: dict[str, tuple[Arrays, str]] = {
    "another name": ({"conv.weights": np.zeros((4, 3, 3), "f4")}, "conv.weight"),
    "another shape": ({"conv.bias": np.zeros(5, "f4")}, "shape"),
    "another dtype": ({"conv.bias": np.zeros(4, "f8")}, "dtype"),
    "not a number": ({"conv.bias": np.array([0, np.nan, 0, 0], "f4")}, "not finite"),
    "infinite": ({"half": np.full(7, np.inf, "f2")}, "not finite"),
    "far away": ({"conv.weight": np.full((4, 3, 3), 1e5, "f4")}, "moves the model"),
}


@pytest.mark.parametrize("case", sorted(HOSTILE))
def test_a_hostile_update_is_refused_by_name(tmp_path: Path, case: str) -> None:
    model = write(tmp_path, "model", tensors(0))
    change, word = HOSTILE[case]
    values = tensors(1)
    if case == "another name":
        del values["conv.weight"]
    with pytest.raises(WeightsError, match=word):
        check_update(write(tmp_path, "update", {**values, **change}), model)


def test_bytes_that_are_no_weights_are_refused(tmp_path: Path) -> None:
    model = write(tmp_path, "model", tensors(0))
    content = model.read_bytes()
    update = tmp_path / "update.safetensors"
    bad = [b"", b"PK\x03\x04", b"\xff" * 64, content[:-1], content + b"\0", content[:20]]
    bad += [random.Random(seed).randbytes(200) for seed in range(20)]
    for payload in bad:
        update.write_bytes(payload)
        with pytest.raises(WeightsError):
            check_update(update, model)


def test_an_honest_update_passes_even_from_a_model_of_zeros(tmp_path: Path) -> None:
    zeros = {name: np.zeros_like(value) for name, value in tensors(0).items()}
    check_update(write(tmp_path, "update", tensors(1)), write(tmp_path, "model", zeros))


def test_a_model_of_integers_alone_has_no_norm(tmp_path: Path) -> None:
    model = write(tmp_path, "model", {"n": np.arange(3)})
    check_update(write(tmp_path, "update", {"n": np.arange(3) + 5}), model)


def test_an_optimizers_state_travels_with_the_model_and_is_averaged_with_it(tmp_path: Path) -> None:
    bare, one, two = tmp_path / "model", tmp_path / "one", tmp_path / "two"
    weight = np.ones((2, 3), np.float32)
    save(bare, {"w": weight})
    state = {"optimizer/exp_avg/w": weight, "optimizer/step/w": np.float32(3)}
    save(one, {"w": 2 * weight, **state})
    save(two, {"w": weight, "optimizer/exp_avg/w": 5 * weight, "optimizer/step/w": np.float32(7)})
    for update in (one, two):
        check_update(update, bare)
    fold([(one, 3), (two, 1)], tmp_path / "next", 1024)
    found = dict(arrays(tmp_path / "next"))
    assert found["optimizer/exp_avg/w"][0, 0] == 2.0
    assert float(found["optimizer/step/w"]) == 4.0
    check_update(one, tmp_path / "next")
    check_update(bare, tmp_path / "next")


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"optimizer/exp_avg/v": np.ones((2, 3), np.float32)}, "is no state of a parameter"),
        ({"optimizer/exp_avg/w": np.ones((2, 2), np.float32)}, "is no state of a parameter"),
        ({"optimizer/exp_avg/w": np.ones((2, 3), np.int64)}, "is no state of a parameter"),
        ({"optimizer/exp_avg/w": np.full((2, 3), np.nan, np.float32)}, "is not finite"),
    ],
)
def test_a_state_that_fits_no_parameter_is_refused(tmp_path: Path, state: dict[str, Any], text: str) -> None:
    weight = np.ones((2, 3), np.float32)
    save(tmp_path / "model", {"w": weight})
    save(tmp_path / "update", {"w": weight, **state})
    with pytest.raises(WeightsError, match=text):
        check_update(tmp_path / "update", tmp_path / "model")


def test_one_update_is_the_merged_model_byte_for_byte(tmp_path: Path) -> None:
    save(tmp_path / "update", {"w": np.arange(7, dtype=np.float32), "n": np.arange(3)})
    manifest = fold([(tmp_path / "update", 10)], tmp_path / "next", 1024)
    assert (tmp_path / "next").read_bytes() == (tmp_path / "update").read_bytes()
    assert manifest.length_bytes == (tmp_path / "update").stat().st_size
