"""Folders and archives read alike, and archives that no honest person makes."""

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from edged.formats import archives
from edged.tasks import PoolError

FILES = {"set/a.txt": b"one", "set/b/c.txt": b"two", "set/skip.bin": b"three"}


def _folder(path: Path) -> None:
    for name, content in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)


def _tar(mode: Literal["w", "w:gz", "w:xz"]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with tarfile.open(name=path, mode=mode) as archive:
            for name, content in FILES.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))

    return make


@pytest.mark.parametrize("make", [_folder, _zip, _tar("w:gz"), _tar("w"), _tar("w:xz")])
def test_every_kind_of_source_gives_the_same_members(make: Callable[[Path], None], tmp_path: Path) -> None:
    source = tmp_path / "source.nc"  # told by content: this suffix lies
    make(source)
    found = {m.name: (m.read(), m.size) for m in archives.members(source, lambda name: name.endswith(".txt"))}
    assert found == {"set/a.txt": (b"one", 3), "set/b/c.txt": (b"two", 3)}


def test_a_plain_file_is_its_own_member(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"a,b\n")
    assert [(m.name, m.read()) for m in archives.members(tmp_path / "x.csv")] == [("x.csv", b"a,b\n")]
    with pytest.raises(PoolError, match="no such file or folder"):
        list(archives.members(tmp_path / "none"))


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/passwd", "a/../../x.txt", "..\\x.txt"])
def test_a_member_that_leads_out_of_its_folder_is_refused(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        archive.writestr(name, b"x")
    with tarfile.open(tmp_path / "t", "w:gz") as packed:
        packed.addfile(tarfile.TarInfo(name))
    for source in ("z", "t"):
        with pytest.raises(PoolError, match=f"{source}: member .* leads out of its folder, refused"):
            list(archives.members(tmp_path / source))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t", "z"]


def test_a_link_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "t", "w") as archive:
        info = tarfile.TarInfo("innocent.txt")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(PoolError, match=r"innocent.txt is a link, refused"):
        list(archives.members(tmp_path / "t"))


def test_a_zip_bomb_is_refused_before_it_grows(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "z", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.txt", bytes(20 << 20))
    with pytest.raises(PoolError, match=r"bomb.txt grows from \d+ to 20971520 bytes, refused as a zip bomb"):
        list(archives.members(tmp_path / "z"))


def test_a_tar_bomb_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "t", "w:gz") as archive:
        for name in ("a.txt", "b.txt"):
            info = tarfile.TarInfo(name)
            info.size = 20 << 20
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    with pytest.raises(PoolError, match="grows more than 200 times, refused as a bomb"):
        list(archives.members(tmp_path / "t"))


def test_a_zip_whose_directory_lies_about_a_size_gives_no_more_than_it_says(tmp_path: Path) -> None:
    path = tmp_path / "z"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", b"0123456789" * 50)
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = (5).to_bytes(4, "little")
    path.write_bytes(content)
    found = archives.members(path)
    member = next(found)
    with pytest.raises(PoolError, match="cannot be read to its end: Bad CRC-32"):
        member.read()


@pytest.mark.parametrize("make", [_zip, _tar("w:gz"), _tar("w:xz"), _tar("w")])
def test_a_truncated_archive_is_refused_or_no_archive(make: Callable[[Path], None], tmp_path: Path) -> None:
    source = tmp_path / "cut"
    make(source)
    whole = source.read_bytes()
    for share in (0.15, 0.25, 0.5, 0.8):
        source.write_bytes(whole[: int(len(whole) * share)])
        try:
            read = [member.read() for member in archives.members(source)]
        except PoolError:
            continue
        # All of it (a tar cut in its padding), or so little that it is no archive but one strange file.
        assert read in ([whole[: int(len(whole) * share)]], list(FILES.values()))
