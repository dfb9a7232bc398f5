"""Weights files: equal bytes for equal tensors, and a corpus of files that are refused by name."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from edged import weights
from edged.weights import Entry, WeightsError


@pytest.fixture
def tensors() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return {
        "layer.weight": torch.randn(4, 3, generator=generator).t(),
        "layer.bias": torch.randn(3, generator=generator),
        "half": torch.randn(5, generator=generator).half(),
        "double": torch.randn(2, 2, generator=generator).double(),
        "steps": torch.tensor(7),
        "mask": torch.tensor([True, False, True]),
        "bytes": torch.arange(3, dtype=torch.uint8),
        "empty": torch.zeros(0, 3),
    }


@pytest.fixture
def file(tensors: dict[str, torch.Tensor], tmp_path: Path) -> Path:
    weights.save(tmp_path / "model.safetensors", tensors)
    return tmp_path / "model.safetensors"


def test_what_is_saved_comes_back(file: Path, tensors: dict[str, torch.Tensor]) -> None:
    loaded = weights.load_torch(file)
    assert loaded.keys() == tensors.keys()
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)
    loaded["layer.bias"].add_(1)
    assert torch.equal(weights.load_torch(file)["layer.bias"], tensors["layer.bias"]), "the file changed"


def test_arrays_come_one_at_a_time_in_order_of_name_and_cannot_be_written(
    file: Path, tensors: dict[str, torch.Tensor]
) -> None:
    seen = []
    for name, array in weights.arrays(file):
        assert np.array_equal(array, tensors[name].numpy())
        assert array.size == 0 or not array.flags.writeable
        seen.append(name)
    assert seen == sorted(tensors)


def test_equal_tensors_give_equal_bytes_in_any_order_and_from_either_library(
    file: Path, tensors: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    again = {name: tensors[name].contiguous().numpy() for name in reversed(list(tensors))}
    weights.save(tmp_path / "again", again, durable=True)
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    assert weights.schema(file)["layer.weight"] == ("F32", (3, 4))
    assert weights.schema(file)["steps"] == ("I64", ())


def test_tied_weights_are_saved_under_both_names(tmp_path: Path) -> None:
    shared = torch.arange(6.0)
    weights.save(tmp_path / "tied", {"a": shared, "b": shared, "part": shared[2:4]})
    assert weights.load_torch(tmp_path / "tied")["part"].tolist() == [2, 3]


@pytest.mark.parametrize("value", [torch.zeros(2, dtype=torch.bfloat16), np.zeros(2, np.uint32), "text"])
def test_a_dtype_that_no_board_may_send_is_not_saved(value: Any, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="tensor 'odd'"):
        weights.save(tmp_path / "odd", {"odd": value})
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file_and_nothing_else(file: Path) -> None:
    before = file.read_bytes()
    with pytest.raises(WeightsError, match="tensor 'x'"):
        weights.save(file, {"x": np.array(["no"])})
    with pytest.raises(WeightsError, match="cannot be written"):
        weights.save(file.parent / "no" / "folder", {"x": np.zeros(1)})
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_the_expected_model_passes_the_check(file: Path) -> None:
    weights.check(file, weights.schema(file), norm_bound=100.0)


SPOILS: dict[str, tuple[Callable[[dict[str, torch.Tensor]], Any], str]] = {
    "another name": (lambda t: t.update(other=t.pop("half")), "tensor 'half' is missing"),
    "one more": (lambda t: t.update(more=torch.zeros(1)), "tensor 'more' is not in the model"),
    "one less": (lambda t: t.pop("layer.bias"), "tensor 'layer.bias' is missing"),
    "shape": (
        lambda t: t.update(half=torch.zeros(6).half()),
        r"tensor 'half' has shape \[6\], expected \[5\]",
    ),
    "dtype": (lambda t: t.update(half=torch.zeros(5)), "tensor 'half' has dtype F32, expected F16"),
    "nan": (lambda t: t["layer.bias"].fill_(float("nan")), "tensor 'layer.bias' has a value that is not fin"),
    "infinite": (
        lambda t: t["half"].__setitem__(2, float("inf")),
        "tensor 'half' has a value that is not fin",
    ),
    "huge": (lambda t: t["double"].fill_(1e300), "tensor 'double' has norm"),
    "too long": (
        lambda t: t["layer.bias"].fill_(600.0),
        "tensor 'layer.bias' has norm 1039.23, more than 1000",
    ),
}


@pytest.mark.parametrize("case", SPOILS)
def test_an_update_of_another_kind_is_refused_by_tensor(
    case: str, file: Path, tensors: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    expected = weights.schema(file)
    spoil, message = SPOILS[case]
    spoil(tensors)
    weights.save(tmp_path / "update", tensors)
    with pytest.raises(WeightsError, match=message):
        weights.check(tmp_path / "update", expected, norm_bound=1000.0)


def test_a_value_at_the_end_of_a_large_tensor_is_seen(tmp_path: Path) -> None:
    large = np.zeros(3_000_001, np.float32)
    large[-1] = np.nan
    weights.save(tmp_path / "large", {"large": large})
    with pytest.raises(WeightsError, match="not finite"):
        weights.check(tmp_path / "large", {"large": ("F32", (3_000_001,))})


def test_a_boolean_of_two_is_refused(tmp_path: Path) -> None:
    path = _raw(tmp_path, {"b": _tensor("BOOL", [2], 0, 2)}, b"\x01\x02")
    with pytest.raises(WeightsError, match="tensor 'b' has a boolean"):
        weights.check(path, {"b": ("BOOL", (2,))})


def _tensor(dtype: Any, shape: Any, begin: Any, end: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def _raw(folder: Path, header: Any, data: bytes = b"", length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = folder / "hostile"
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


HOSTILE: dict[str, tuple[Any, bytes, str]] = {
    "not json": (b"{]", b"", "not JSON"),
    "not utf-8": (b'{"\xff": 1}', b"", "not JSON"),
    "deep": (b"[" * 100_000, b"", "not JSON"),
    "endless number": (b'{"a": ' + b"9" * 10_000 + b"}", b"", "not JSON|expected dtype"),
    "a list": ([], b"", "not a JSON object"),
    "twice": (b'{"a": {}, "a": {}}', b"", "twice"),
    "no dtype": ({"a": {"shape": [1], "data_offsets": [0, 4]}}, bytes(4), "tensor 'a': expected dtype"),
    "more keys": ({"a": {**_tensor("F32", [1], 0, 4), "code": "x"}}, bytes(4), "tensor 'a': expected dtype"),
    "foreign dtype": ({"a": _tensor("BF16", [2], 0, 4)}, bytes(4), "dtype 'BF16' is not one of"),
    "dtype a list": ({"a": _tensor(["F32"], [1], 0, 4)}, bytes(4), "is not one of"),
    "negative shape": ({"a": _tensor("F32", [-1], 0, 4)}, bytes(4), "shape is not"),
    "boolean shape": ({"a": _tensor("F32", [True], 0, 4)}, bytes(4), "shape is not"),
    "float shape": ({"a": _tensor("F32", [1.0], 0, 4)}, bytes(4), "shape is not"),
    "ninety dimensions": ({"a": _tensor("F32", [1] * 90, 0, 4)}, bytes(4), "shape is not"),
    "overflowing shape": ({"a": _tensor("F32", [1 << 40] * 8, 0, 4)}, bytes(4), "do not hold"),
    "wrong size": ({"a": _tensor("F32", [2], 0, 4)}, bytes(4), "4 bytes do not hold F32 of shape"),
    "reversed": ({"a": _tensor("F32", [0], 4, 0)}, bytes(4), "do not hold"),
    "negative offset": ({"a": _tensor("F32", [1], -4, 0)}, bytes(4), "data_offsets"),
    "three offsets": ({"a": {**_tensor("U8", [1], 0, 1), "data_offsets": [0, 1, 2]}}, b"1", "data_offsets"),
    "gap at the start": ({"a": _tensor("F32", [1], 4, 8)}, bytes(8), "begins at byte"),
    "gap": ({"a": _tensor("U8", [1], 0, 1), "b": _tensor("U8", [1], 2, 3)}, b"123", "tensor 'b' begins"),
    "overlap": ({"a": _tensor("U8", [2], 0, 2), "b": _tensor("U8", [2], 1, 3)}, b"123", "tensor 'b' begins"),
    "same bytes": (
        {"a": _tensor("U8", [2], 0, 2), "b": _tensor("U8", [2], 0, 2)},
        b"12",
        "tensor 'b' begins",
    ),
    "beyond the file": ({"a": _tensor("F32", [2], 0, 8)}, bytes(4), "the tensors end at byte"),
    "bytes left over": ({"a": _tensor("F32", [1], 0, 4)}, bytes(5), "the tensors end at byte"),
    "no tensors, some data": ({}, bytes(5), "the tensors end at byte"),
    "metadata of numbers": ({"__metadata__": {"a": 1}}, b"", "__metadata__"),
    "control characters": ({"a\x1b[31m": _tensor("U8", [1], 0, 1)}, b"1", "printable"),
    "endless name": ({"a" * 5000: _tensor("U8", [1], 0, 1)}, b"1", "at most 256"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_with_one_line(case: str, tmp_path: Path) -> None:
    header, data, message = HOSTILE[case]
    path = _raw(tmp_path, header, data)
    with pytest.raises(WeightsError, match=message) as caught:
        weights.read_header(path)
    text = str(caught.value)
    assert text.startswith("hostile: ")
    assert "\n" not in text
    assert "\x1b" not in text
    assert len(text) < 1000


@pytest.mark.parametrize("length", [10, 1 << 20, 1 << 62, (1 << 64) - 1])
def test_a_header_length_that_lies_is_refused_before_anything_is_read(length: int, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="does not fit"):
        weights.read_header(_raw(tmp_path, b"{}", b"", length))


def test_a_file_that_is_not_there_or_empty_is_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="none: cannot be read: No such file"):
        weights.read_header(tmp_path / "none")
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(WeightsError, match="empty: 0 bytes are too few"):
        weights.read_header(tmp_path / "empty")


def test_a_truncated_file_is_refused_wherever_it_ends(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    for end in range(0, len(whole), 7):
        (tmp_path / "cut").write_bytes(whole[:end])
        with pytest.raises(WeightsError):
            weights.read_header(tmp_path / "cut")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_file_is_refused_or_read_but_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damage")
    weights.save(
        folder / "model", {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.zeros(2, "i8")}
    )
    expected = weights.schema(folder / "model")
    content = bytearray((folder / "model").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (folder / "model").write_bytes(content)
    try:
        weights.check(folder / "model", expected)
    except WeightsError:
        return
    assert {name: array.shape for name, array in weights.arrays(folder / "model")} == {"a": (2, 3), "b": (2,)}
    assert weights.load_torch(folder / "model").keys() == {"a", "b"}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
naturals = st.integers(-2, 20)
plausible = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "U8", "I64", "X"]) | values,
        "shape": st.lists(naturals, max_size=3) | values,
        "data_offsets": st.lists(naturals, min_size=2, max_size=2) | values,
    }
)


@settings(max_examples=150, deadline=None)
@given(header=st.dictionaries(st.text(max_size=5), plausible | values, max_size=3), size=st.integers(0, 40))
def test_any_header_is_refused_or_describes_the_file_exactly(
    tmp_path_factory: pytest.TempPathFactory, header: dict[str, Any], size: int
) -> None:
    path = _raw(tmp_path_factory.mktemp("fuzz"), header, bytes(size))
    try:
        entries = weights.read_header(path)
    except WeightsError:
        return
    covered = sum(entry.end - entry.begin for entry in entries.values())
    assert covered == size
    assert all(isinstance(entry, Entry) for entry in entries.values())
