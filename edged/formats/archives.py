"""Folders, zip and tar files read alike: members by name, bounded, and never written to a disk.

Nothing is extracted, so a member named `../x` or a link can overwrite nothing; such archives are refused
all the same, because honest ones have none.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

from edged.tasks._contract import PoolError

MAX_MEMBERS = 500_000
MAX_BYTES = 4 << 30
"""Of all members together, decompressed."""
MAX_RATIO = 200
"""Text compresses up to some 20 times; a thousand is a bomb."""
SMALL_BYTES = 1 << 20
"""Below this a high ratio does no harm (a file of zeros in a test)."""

_ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
_TAR_FAULTS = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


class Member(NamedTuple):
    """A file in a source; `shown` names it for people, `read` gives its content."""

    name: str
    shown: str
    size: int
    read: Callable[[], bytes]


def members(source: Path, wanted: Callable[[str], bool] = lambda name: True) -> Iterator[Member]:
    """The files of a folder, zip or tar (by content, not suffix) in the order of names (tar: as they lie).

    A plain file is its own only member. Read a member before asking for the next. Raises PoolError.
    """
    if source.is_dir():
        yield from _bounded(source, _folder(source, wanted))
    elif not source.is_file():
        raise PoolError(f"{source}: no such file or folder")
    elif zipfile.is_zipfile(source):
        yield from _bounded(source, _zip(source, wanted))
    elif _is_tar(source):
        yield from _bounded(source, _tar(source, wanted))
    else:
        yield Member(source.name, str(source), source.stat().st_size, _sound(source, source.read_bytes))


def magic(source: Path, count: int = 8) -> bytes:
    """The first bytes of a file, which tell its kind where its suffix lies."""
    try:
        with source.open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise PoolError(f"{source}: {error.strerror}") from None


def _bounded(source: Path, found: Iterator[Member]) -> Iterator[Member]:
    total = 0
    for count, member in enumerate(found):
        total += member.size
        if count >= MAX_MEMBERS or total > MAX_BYTES:
            raise PoolError(f"{source}: more than {MAX_MEMBERS} files or {MAX_BYTES >> 30} GiB, refused")
        yield member


def _folder(source: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        if wanted(name) and path.is_file():
            yield Member(name, str(path), path.stat().st_size, _sound(path, path.read_bytes))


def _zip(source: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    try:
        with zipfile.ZipFile(source) as archive:
            for info in sorted(archive.infolist(), key=lambda info: info.filename):
                _expect_inside(source, info.filename)
                if info.is_dir() or not wanted(info.filename):
                    continue
                if info.file_size > max(SMALL_BYTES, MAX_RATIO * info.compress_size):
                    grows = f"{info.compress_size} to {info.file_size} bytes"
                    raise PoolError(f"{source}: {info.filename} grows from {grows}, refused as a zip bomb")
                shown = f"{source}: {info.filename}"
                read = _sound(source, functools.partial(archive.read, info))
                yield Member(info.filename, shown, info.file_size, read)
    except _ZIP_FAULTS as error:
        raise PoolError(f"{source}: not a sound zip file: {error}") from None


class _Tail:
    """A stream that remembers its last bytes: a whole tar ends in zeros, a truncated one does not."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.bytes = 0
        self.last = b""

    def read(self, size: int) -> bytes:
        chunk = self.stream.read(size)
        self.bytes += len(chunk)
        self.last = chunk[-512:] or self.last
        return chunk


def _tar(source: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    # A stream: tar.gz has no index, and jumping about in it decompresses it over and over.
    limit = max(SMALL_BYTES, MAX_RATIO * source.stat().st_size)
    try:
        with _unpacked(source) as stream:
            tail = _Tail(stream)
            with tarfile.open(fileobj=cast("IO[bytes]", tail), mode="r|") as archive:
                for info in archive:
                    _expect_inside(source, info.name)
                    if info.issym() or info.islnk():
                        raise PoolError(f"{source}: {info.name} is a link, refused")
                    if tail.bytes + info.size > limit:
                        raise PoolError(f"{source}: grows more than {MAX_RATIO} times, refused as a bomb")
                    file = archive.extractfile(info) if info.isfile() and wanted(info.name) else None
                    if file is not None:
                        read = _sound(source, file.read)
                        yield Member(info.name, f"{source}: {info.name}", info.size, read)
            # To the very end, where gzip keeps its checksum.
            while tail.bytes <= limit and tail.read(1 << 16):
                pass
            if tail.last.strip(b"\0"):
                raise PoolError(f"{source}: truncated, a tar file ends in zeros")
    except (*_TAR_FAULTS, OSError) as error:
        raise PoolError(f"{source}: not a sound tar file: {str(error) or 'it ends too early'}") from None


def _unpacked(source: Path) -> IO[bytes]:
    start = magic(source, 6)
    for signature, opener in ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open)):
        if start.startswith(signature):
            return cast("IO[bytes]", opener(source))
    return source.open("rb")


def _sound(source: Path, read: Callable[[], bytes]) -> Callable[[], bytes]:
    def sound() -> bytes:
        try:
            return read()
        except (*_ZIP_FAULTS, *_TAR_FAULTS, OSError) as error:
            raise PoolError(f"{source}: cannot be read to its end: {error}") from None

    return sound


def _is_tar(source: Path) -> bool:
    try:
        with _unpacked(source) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            return archive.next() is not None
    except (*_TAR_FAULTS, OSError):
        return False


def _expect_inside(source: Path, name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise PoolError(f"{source}: member {name!r} leads out of its folder, refused")
