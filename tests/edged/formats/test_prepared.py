"""Prepared pools: written whole or not at all, mapped and not copied, distrusted when read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edged.formats import prepared
from edged.tasks import OtherPoolError, PoolError, Prepared


def _made(count: int = 20, facts: dict[str, Any] | None = None) -> Prepared:
    arrays: dict[str, Any] = {
        "inputs": np.arange(count * 6, dtype=np.float32).reshape(count, 2, 3),
        "targets": np.arange(count) % 3,
        "test_inputs": np.ones((5, 2, 3), np.float32),
        "test_targets": np.zeros(5, np.int64),
        "extra": np.arange(4, dtype=">i2"),
    }
    return Prepared(arrays, "test", "by hand", "made up", facts or {"words": 3})


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    prepared.write(tmp_path / "pool", "mine", _made())
    return tmp_path / "pool"


def test_what_is_written_comes_back_as_maps(pool: Path) -> None:
    data = prepared.load(pool, "mine")
    assert np.array_equal(data.inputs, _made().arrays["inputs"])
    assert data.samples == 20
    assert data.facts["words"] == 3
    assert data.facts["extra"].tolist() == [0, 1, 2, 3]
    for array in (data.inputs, data.targets, data.test_inputs, data.facts["extra"]):
        assert not array.flags.owndata
        assert not array.flags.writeable


def test_equal_data_give_equal_pools_and_fingerprints_tell_data_apart(pool: Path, tmp_path: Path) -> None:
    again = prepared.write(tmp_path / "again", "mine", _made())
    assert (tmp_path / "again" / "pool.json").read_bytes() == (pool / "pool.json").read_bytes()
    others = [
        prepared.write(tmp_path / "count", "mine", _made(21)),
        prepared.write(tmp_path / "facts", "mine", _made(facts={"words": 4})),
        prepared.write(tmp_path / "task", "other", _made()),
    ]
    assert len({again.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_an_existing_folder_is_never_written_into(pool: Path) -> None:
    before = (pool / "pool.json").read_bytes()
    with pytest.raises(PoolError, match="exists already"):
        prepared.write(pool, "mine", _made(30))
    assert (pool / "pool.json").read_bytes() == before
    (pool.parent / "empty").mkdir()
    prepared.write(pool.parent / "empty", "mine", _made())
    assert prepared.verify(pool.parent / "empty").samples == 20


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    class Interrupted:
        dtype = np.dtype("f4")

        def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
            raise KeyboardInterrupt

    made = _made()
    made.arrays["more"] = Interrupted()  # type: ignore[index]
    with pytest.raises(KeyboardInterrupt):
        prepared.write(tmp_path / "pool", "mine", made)
    assert list(tmp_path.iterdir()) == []


def test_objects_are_not_written(tmp_path: Path) -> None:
    made = _made()
    made.arrays["more"] = np.array([{}, []], dtype=object)  # type: ignore[index]
    with pytest.raises(ValueError, match="allow_pickle"):
        prepared.write(tmp_path / "pool", "mine", made)
    assert list(tmp_path.iterdir()) == []


def test_a_pool_of_another_task_and_no_pool_are_told_apart(pool: Path) -> None:
    with pytest.raises(OtherPoolError, match="a pool of task mine, expected era5"):
        prepared.read(pool, "era5")
    with pytest.raises(
        OtherPoolError, match=r"no pool.json in it; expected a pool made by `edged data prepare"
    ):
        prepared.read(pool.parent, "era5")
    with pytest.raises(PoolError, match="no such folder"):
        prepared.read(pool / "none", "era5")


def _edit(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def spoil(pool: Path) -> None:
        content = json.loads((pool / "pool.json").read_text())
        change(content)
        (pool / "pool.json").write_text(json.dumps(content))

    return spoil


SPOILS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "not json": (lambda p: (p / "pool.json").write_text("{"), "pool.json: not the description of a pool"),
    "deep json": (lambda p: (p / "pool.json").write_text("[" * 99_999), "not the description of a pool"),
    "wrong type": (_edit(lambda c: c.update(samples="20")), r"Expected `int`, got `str` - at `\$.samples`"),
    "newer": (_edit(lambda c: c.update(version=2)), "version 2, this edged reads 1"),
    "array missing": (lambda p: (p / "targets.npy").unlink(), "targets.npy: missing"),
    "array not told": (_edit(lambda c: c["arrays"].pop("targets")), "describes no array 'targets'"),
    "a path as name": (
        _edit(lambda c: c["arrays"].update({"../x": c["arrays"]["targets"]})),
        "'../x' is no name of an array",
    ),
    "truncated": (lambda p: (p / "inputs.npy").write_bytes(b"x" * 100), "inputs.npy: 100 bytes, expected"),
    "counts differ": (_edit(lambda c: c.update(samples=19)), "inputs and targets are not 19 samples each"),
    "facts edited": (
        _edit(lambda c: c["facts"].update(words=9)),
        "its fingerprint is not that of the arrays",
    ),
    "fingerprint edited": (_edit(lambda c: c.update(fingerprint="0" * 64)), "its fingerprint is not that"),
}


@pytest.mark.parametrize("case", SPOILS)
def test_a_spoilt_pool_is_refused_at_a_glance(case: str, pool: Path) -> None:
    spoil, message = SPOILS[case]
    spoil(pool)
    with pytest.raises(PoolError, match=message) as caught:
        prepared.inspect(pool, "mine")
    assert "\n" not in str(caught.value)


def test_a_flipped_bit_is_found_by_verify(pool: Path) -> None:
    path = pool / "test_inputs.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    prepared.inspect(pool, "mine")
    with pytest.raises(PoolError, match=r"test_inputs.npy: its content is not what was prepared"):
        prepared.verify(pool)


def test_an_array_that_lies_about_its_shape_is_not_mapped(pool: Path) -> None:
    path = pool / "inputs.npy"
    path.write_bytes(path.read_bytes().replace(b"(20, 2, 3)", b"(10, 4, 3)"))
    with pytest.raises(PoolError, match=r"inputs.npy: .* \(10, 4, 3\), expected .* \(20, 2, 3\)"):
        prepared.load(pool, "mine")


def test_a_pickle_in_place_of_an_array_is_never_loaded(pool: Path) -> None:
    path = pool / "inputs.npy"
    path.write_bytes(path.read_bytes().replace(b"'<f4'", b"'|O' "))
    with pytest.raises(PoolError, match=r"inputs\.npy"):
        prepared.load(pool, "mine")
