"""What is checked of a gradient before it is applied, and what applying writes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coordinator.application import check_gradient, descend, mix
from edged.transfers import describe
from edged.weights import WeightsError, arrays, save, schema

MODEL = {
    "w": np.linspace(-1, 1, 12, dtype="f4").reshape(3, 4),
    "half": np.ones(5, dtype="f2"),
    "seen": np.array(7),
    "mean": np.zeros(3, dtype="f4"),
}
GRADIENT = {
    "gradient/w": np.full((3, 4), 0.5, dtype="f4"),
    "gradient/half": np.full(5, 0.25, dtype="f2"),
    "seen": np.array(8),
    "mean": np.full(3, 0.1, dtype="f4"),
}


def write(folder: Path, name: str, values: dict[str, Any]) -> Path:
    path = folder / f"{name}.safetensors"
    save(path, values)
    return path


def test_a_step_along_the_gradient_and_new_values_of_what_has_none(tmp_path: Path) -> None:
    base, update = write(tmp_path, "base", MODEL), write(tmp_path, "update", GRADIENT)
    check_gradient(update, base, 0.1)
    manifest = descend(base, update, tmp_path / "next", 1024, 0.1)
    found = dict(arrays(tmp_path / "next"))
    np.testing.assert_allclose(found["w"], MODEL["w"] - 0.05, rtol=1e-6)
    np.testing.assert_allclose(found["half"], 0.975, rtol=1e-3)
    assert found["seen"] == 8
    np.testing.assert_array_equal(found["mean"], GRADIENT["mean"])
    assert schema(tmp_path / "next") == schema(base)
    assert manifest == describe(tmp_path / "next", 1024)


def test_the_same_application_gives_the_same_bytes(tmp_path: Path) -> None:
    base, update = write(tmp_path, "base", MODEL), write(tmp_path, "update", GRADIENT)
    written = []
    for name in ("one", "two"):
        velocity = (None, tmp_path / f"{name}.velocity")
        descend(base, update, tmp_path / name, 1024, 0.1, momentum=0.9, velocity=velocity)
        written.append((tmp_path / name).read_bytes() + velocity[1].read_bytes())
    assert written[0] == written[1]
    assert mix(base, base, tmp_path / "three", 1024, 0.3) == mix(base, base, tmp_path / "four", 1024, 0.3)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"gradient/w": None, "w": MODEL["w"] + 1000}, "moves the model's parameters by"),
        ({"gradient/w": None}, "'gradient/w' is missing"),
        ({"gradient/x": np.ones(3, dtype="f4")}, "'gradient/x' is not in the model"),
        ({"gradient/w": np.ones((4, 3), dtype="f4")}, "has shape"),
        ({"gradient/w": np.ones((3, 4), dtype="f8")}, "has dtype F64, expected F32"),
        ({"gradient/w": np.full((3, 4), np.nan, dtype="f4")}, "'gradient/w' has a value that is not finite"),
        ({"gradient/w": np.full((3, 4), 1e6, dtype="f4")}, "moves the model's parameters by"),
        (
            {"gradient/w": None, "gradient/half": None, "w": MODEL["w"], "half": MODEL["half"]},
            "has no gradient",
        ),
        ({"optimizer/step/w": np.array(1.0)}, "'optimizer/step/w' is not in the model"),
    ],
)
def test_what_is_no_gradient_of_this_model_is_refused(
    tmp_path: Path, changes: dict[str, Any], text: str
) -> None:
    given = {name: value for name, value in {**GRADIENT, **changes}.items() if value is not None}
    base, update = write(tmp_path, "base", MODEL), write(tmp_path, "update", given)
    with pytest.raises(WeightsError, match=text):
        check_gradient(update, base, 0.1)
