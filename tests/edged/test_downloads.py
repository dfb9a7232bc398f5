"""Downloads against a server on loopback: checksums, continuing, mirrors, and what to do without internet."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from edged import downloads, tasks
from edged.downloads import DownloadError, File

CONTENT = bytes(range(256)) * 4096
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves CONTENT: /ranges knows ranges, /plain does not, /breaks hangs up half-way, /other lies."""

    asked: list[tuple[str, str | None]]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        wanted = self.headers["Range"]
        server.asked.append((self.path, wanted))
        if self.path == "/gone":
            self.send_error(404)
            return
        content = {"/other": CONTENT[::-1], "/longer": CONTENT + b"more"}.get(self.path, CONTENT)
        start = 0
        if wanted and self.path != "/plain":
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        half = len(content) // 2
        self.wfile.write(content[start:half] if self.path == "/breaks" and not start else content[start:])

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as found:
        found.asked = []
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def _file(server: Server, *paths: str) -> File:
    return File(
        "x.bin", len(CONTENT), MD5, tuple(f"http://127.0.0.1:{server.server_port}{path}" for path in paths)
    )


def _silent(name: str, done: int, total: int) -> None: ...


def test_a_file_is_fetched_once_and_told_about(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    path = downloads.fetch(_file(server, "/ranges"), tmp_path / "new", lambda *what: seen.append(what))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == ("x.bin", len(CONTENT), len(CONTENT))
    assert downloads.fetch(_file(server, "/ranges"), tmp_path / "new", _silent) == path
    assert server.asked == [("/ranges", None)]


def test_a_broken_transfer_goes_on_where_it_ended(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"ended after 524288 of 1048576 bytes|IncompleteRead"):
        downloads.fetch(_file(server, "/breaks"), tmp_path, _silent)
    there = (tmp_path / "x.bin.part").stat().st_size
    assert 0 < there < len(CONTENT)
    assert downloads.fetch(_file(server, "/ranges"), tmp_path, _silent).read_bytes() == CONTENT
    assert server.asked[-1] == ("/ranges", f"bytes={there}-")
    assert not (tmp_path / "x.bin.part").exists()


def test_a_server_without_ranges_begins_anew(server: Server, tmp_path: Path) -> None:
    (tmp_path / "x.bin.part").write_bytes(b"half of something")
    assert downloads.fetch(_file(server, "/plain"), tmp_path, _silent).read_bytes() == CONTENT


def test_the_next_mirror_is_tried_after_a_wrong_or_missing_file(server: Server, tmp_path: Path) -> None:
    path = downloads.fetch(_file(server, "/gone", "/other", "/longer", "/ranges"), tmp_path, _silent)
    assert path.read_bytes() == CONTENT
    assert [name for name, _ in server.asked] == ["/gone", "/other", "/longer", "/ranges"]


def test_without_internet_it_says_which_file_to_put_where(tmp_path: Path) -> None:
    with Server(("127.0.0.1", 0), Handler) as closed:
        file = _file(closed, "/ranges")
    with pytest.raises(
        DownloadError, match=f"Connection refused.*get it elsewhere .MD5 {MD5}. and put it at .*x.bin"
    ):
        downloads.fetch(file, tmp_path, _silent)


def test_a_wrong_file_of_that_name_is_not_overwritten(server: Server, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"mine")
    with pytest.raises(DownloadError, match=r"exists, but is not x\.bin as published"):
        downloads.fetch(_file(server, "/ranges"), tmp_path, _silent)
    assert (tmp_path / "x.bin").read_bytes() == b"mine"


def test_every_shipped_task_has_files_or_a_word_of_how_to_get_them() -> None:
    shipped = {name for name, origin in tasks.names(()).items() if origin == "shipped"}
    assert set(downloads.FILES) | set(downloads.BY_HAND) == shipped
    for files in downloads.FILES.values():
        assert all(
            url.startswith("https://") and url.endswith(file.name) for file in files for url in file.urls
        )
