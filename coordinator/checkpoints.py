"""Where the files of a run lie: model versions and spooled updates, and which of them may go.

It names and removes; what stands in the files is `aggregate`'s and `collection`'s.
"""

import contextlib
import os
from collections.abc import Collection
from pathlib import Path
from typing import Final

KEEP: Final = 3
"""Newest versions of a run that are kept: boards may still want the one before, evaluation lags."""


class Checkpoints:
    """Files below `folder/runs/<run>/`; names come from checked ids (`messages.Version`, `OrderId`)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run_folder(self, run: str) -> Path:
        """The folder of a run, made if it is not there."""
        path = self.folder / "runs" / run
        path.mkdir(parents=True, exist_ok=True)
        return path

    def model(self, version: str) -> Path:
        """The file of a model version `run.merges`; it may not exist."""
        run, _, merges = version.rpartition(".")
        return self.folder / "runs" / run / f"model-{int(merges):06d}.safetensors"

    def velocity(self, version: str) -> Path:
        """Where the coordinator's momentum of asynchronous gradients lies; it may not exist."""
        return self.model(version).with_name(f"velocity-{int(version.rpartition('.')[2]):06d}.safetensors")

    def update(self, order: str) -> Path:
        """The file of a complete update of an order `run.round.board.attempt`; it may not exist."""
        return self.folder / "runs" / order.split(".", 1)[0] / "updates" / f"{order}.safetensors"

    def versions(self, run: str) -> list[str]:
        """Versions of the run whose files are there, oldest first."""
        files = (self.folder / "runs" / run).glob("model-*.safetensors")
        return [f"{run}.{number}" for number in sorted(int(path.stem.partition("-")[2]) for path in files)]

    def prune(self, run: str, keep: int = KEEP, needed: Collection[str] = ()) -> list[str]:
        """Remove all but the newest `keep` (0: remove none) and the needed versions; returns those gone."""
        gone = [version for version in self.versions(run)[:-keep] if version not in needed] if keep else []
        for version in gone:
            self.model(version).unlink(missing_ok=True)
            self.velocity(version).unlink(missing_ok=True)
        return gone

    def keep_only(self, run: str, needed: Collection[str], newest: int) -> None:
        """Remove all versions but these, and all momentum before that of the newest one."""
        for version in self.versions(run):
            if version not in needed:
                self.model(version).unlink(missing_ok=True)
            if int(version.rpartition(".")[2]) < newest:
                self.velocity(version).unlink(missing_ok=True)

    def drop_updates(self, run: str, keep_orders: Collection[str] = ()) -> None:
        """Remove spooled updates, complete or not, of all orders but these."""
        for path in (self.folder / "runs" / run / "updates").glob("*"):
            if path.name.partition(".safetensors")[0] not in keep_orders:
                path.unlink(missing_ok=True)


def sync_file(path: Path) -> None:
    """Wait until the disk has the file. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make a rename inside the folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Some file systems know no fsync of a folder; the file itself has been synced by then.
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
