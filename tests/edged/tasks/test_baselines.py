"""The shipped models beat the linear baselines on the same real files, trained on one machine.

The files lie beside the repository; without them these tests are skipped.
"""

from pathlib import Path
from typing import Any

import pytest
import torch

from edged import schedule, tasks
from edged.formats import prepared
from edged.tasks import BUILTIN

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"

pytestmark = pytest.mark.slow


def _real(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"shared/data/{name} is not beside the repository")
    return DATA / name


def _pool(task: str, source: Path, folder: Path, **settings: str) -> Path:
    found: Any = tasks.find(task)
    options = tasks.options_of(found, settings, strict=False, kind=found.Prepare)
    prepared.write(folder / "pool", task, found.prepare(source, options, lambda what, done, total: None))
    return folder / "pool"


def _trained(name: str, pool: Path, epochs: int, **settings: str) -> list[dict[str, float]]:
    """Held-out figures before training and after each epoch, with the task's own defaults."""
    task = tasks.find(name)
    options = tasks.options_of(task, settings, strict=False)
    data, model, use = task.load(pool, options), task.model(options, 1), task.DEFAULTS
    optimizer: torch.optim.Optimizer
    if use.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), use.learning_rate, use.momentum)
    else:
        optimizer = torch.optim.Adam(model.parameters(), use.learning_rate)
    figures = [task.evaluate(model, data)]
    for epoch in range(epochs):
        order, at = schedule.permutation(1, epoch, data.samples), 0
        for count in schedule.even_batches(data.samples, use.batch):
            optimizer.zero_grad()
            loss, _ = task.loss_sum(model, task.batch(data, order[at : at + count]))
            torch.autograd.backward(loss / count)
            optimizer.step()
            at += count
        figures.append(task.evaluate(model, data))
    return figures


def test_digits() -> None:
    assert _trained("digits", BUILTIN, 4)[-1]["accuracy"] > 0.93


def test_mnist_t10k() -> None:
    assert _trained("mnist", _real("mnist"), 3)[-1]["accuracy"] > 0.95


def test_sentence_polarity(tmp_path: Path) -> None:
    source = _real("imdb_ccby/sentence_polarity.zip")
    pool = _pool("imdb", source, tmp_path, length="48")
    assert _trained("imdb", pool, 2)[-1]["accuracy"] > 0.73


def test_era5_six_hours_ahead(tmp_path: Path) -> None:
    pool = _pool("era5", _real("era5/era5_berlin_2017.csv.gz"), tmp_path)
    before, *after = _trained("era5", pool, 9)
    # The model begins as persistence, whose error is known.
    assert before["loss"] == pytest.approx(0.057, abs=0.003)
    # Single epochs scatter by some tenths, so the middle of the last three stands for the model.
    last = sorted(figures["loss"] for figures in after[-3:])[1]
    assert last < 0.045
    kelvin2 = sorted(figures["squared_error_kelvin2"] for figures in after[-3:])[1]
    assert kelvin2 == pytest.approx(last * 62, rel=0.05)


def test_the_store_of_before_2024_and_its_csv_tell_the_same_weather(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4", reason="NetCDF needs the extra edged[data]")
    place = {"latitude": "52.6", "longitude": "13.35"}
    (tmp_path / "csv").mkdir()
    csv = _pool("era5", _real("era5/era5_berlin_2017.csv.gz"), tmp_path / "csv")
    netcdf = _pool("era5", _real("era5/ERA5_example_data.nc"), tmp_path, **place)
    one, other = (tasks.find("era5").load(pool, tasks.find("era5").Options()) for pool in (csv, netcdf))
    assert other.facts["place"] == "latitude 52.6, longitude 13.35"
    assert other.facts["series"] == pytest.approx(one.facts["series"], abs=0.001)


def test_the_zip_that_calls_itself_nc(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4", reason="NetCDF needs the extra edged[data]")
    source = _real("era5/era5_cds2026_zip_named.nc")
    pool = _pool("era5", source, tmp_path, variables="t2m,zust,sshf")
    info = tasks.find("era5").inspect(pool)
    assert (info.samples, info.test_samples, info.format) == (92, 24, "NetCDF4")


@pytest.mark.parametrize(
    ("source", "samples", "held_out"),
    [
        ("imdb_ccby/movie_reviews.zip", 1600, 400),
        ("imdb_ccby/sentence_polarity.zip", 8530, 2132),
        ("imdb_ccby/imdb_labelled.txt", 800, 200),
    ],
)
def test_real_review_sets_are_read_whole(source: str, samples: int, held_out: int, tmp_path: Path) -> None:
    info = tasks.find("imdb").inspect(_pool("imdb", _real(source), tmp_path))
    assert (info.samples, info.test_samples) == (samples, held_out)
