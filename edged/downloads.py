"""Official files from where their owners or mirrors serve them: checked, resumed, and never on a board's own
initiative. Where there is no internet it says which file to put where.
"""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import edged

TIMEOUT_SECONDS = 30.0
_CHUNK_BYTES = 1 << 18
_PARTIAL = ".part"

Progress = Callable[[str, int, int], None]
"""File name, bytes there, bytes in all."""


class DownloadError(ValueError):
    """A file that could not be fetched; the text says why and how to get it by hand."""


class File(NamedTuple):
    """A file as its owner published it; mirrors are tried in order."""

    name: str
    bytes: int
    md5: str
    urls: tuple[str, ...]


def _mnist(name: str, size: int, md5: str) -> File:
    # The original address answers 403 since 2020.
    hosts = (
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    )
    return File(name, size, md5, tuple(f"{host}/{name}" for host in hosts))


FILES: Mapping[str, tuple[File, ...]] = {
    "mnist": (
        _mnist("train-images-idx3-ubyte.gz", 9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        _mnist("train-labels-idx1-ubyte.gz", 28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
        _mnist("t10k-images-idx3-ubyte.gz", 1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
        _mnist("t10k-labels-idx1-ubyte.gz", 4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
    ),
    "imdb": (
        File(
            "aclImdb_v1.tar.gz",
            84_125_825,
            "7c2ac02c03563afcf9b574c7e56c153a",
            ("https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",),
        ),
    ),
    "cifar10": (
        File(
            "cifar-10-binary.tar.gz",
            170_052_171,
            "c32a1d4ab5d03f1284b67883e8d87530",
            ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
        ),
    ),
}
BY_HAND: Mapping[str, str] = {
    "era5": (
        "ERA5 needs an account: at https://cds.climate.copernicus.eu take 'ERA5 hourly time-series data on"
        " single levels' (CSV) or 'ERA5 hourly data on single levels' (NetCDF) with 2m temperature, 10m wind"
        " u and v and surface pressure, then `edged data prepare era5 FILE -o DIR`"
    ),
    "digits": 'the digits ship with edged: path = "builtin"',
    "synthetic": 'made-up data has no files: path = "builtin/synthetic"',
}


def fetch(file: File, folder: Path, progress: Progress) -> Path:
    """The file in the folder, whole and with the right checksum; a partial one is continued.

    Raises DownloadError after the last mirror, telling what to put where by hand.
    """
    target = folder / file.name
    if target.is_file():
        if _md5(target) != file.md5:
            raise DownloadError(
                f"{target}: exists, but is not {file.name} as published (MD5); remove it first"
            )
        progress(file.name, file.bytes, file.bytes)
        return target
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / (file.name + _PARTIAL)
    faults = []
    for url in file.urls:
        try:
            _continue(url, partial, file, progress)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            faults.append(f"{url}: {reason or type(error).__name__}")
            continue
        if _md5(partial) == file.md5:
            partial.replace(target)
            return target
        partial.unlink()
        faults.append(f"{url}: gave another file than published (MD5)")
    raise DownloadError(
        f"{file.name} could not be fetched ({'; '.join(faults)}); get it elsewhere (MD5 {file.md5})"
        f" and put it at {target}"
    )


def _continue(url: str, partial: Path, file: File, progress: Progress) -> None:
    there = partial.stat().st_size if partial.is_file() else 0
    if there >= file.bytes:
        partial.unlink()
        there = 0
    headers = {"User-Agent": f"edged/{edged.__version__}"}
    if there:
        headers["Range"] = f"bytes={there}-"
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        # A server that knows no ranges answers 200 and begins anew.
        resumed = answer.status == http.client.PARTIAL_CONTENT
        there = there if resumed else 0
        with partial.open("ab" if resumed else "wb") as out:
            while chunk := answer.read(_CHUNK_BYTES):
                there += len(chunk)
                if there > file.bytes:
                    raise ValueError(f"sends more than the {file.bytes} bytes of {file.name}")
                out.write(chunk)
                progress(file.name, there, file.bytes)
    if there < file.bytes:
        raise ValueError(f"ended after {there} of {file.bytes} bytes; run the command again to continue")


def _md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
