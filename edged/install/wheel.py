"""The running edged as a wheel, whichever way it came here: what is installed is what was called.

An installed one is packed again from its own record of files; one that runs out of a checkout is built.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import sys
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any

from edged.install.machine import InstallError, started

NAME = "edged"
_LEFT_OUT = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json")
_DATE = (1980, 1, 1, 0, 0, 0)
_SCRIPTS = ("edged", "edged-coordinator")


def running(given: Path | None = None) -> tuple[str, bytes]:
    """File name and bytes of a wheel of this edged, or of the one given. Raises InstallError."""
    if given is not None:
        try:
            return given.name, given.read_bytes()
        except OSError as error:
            raise InstallError(f"--wheel {given}: {error.strerror}") from None
    try:
        found = metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        raise InstallError(
            "this edged runs out of a folder, not installed: pipx install FOLDER first, or give --wheel FILE"
        ) from None
    checkout = _checkout(found)
    return _built(checkout) if checkout else packed(found)


def packed(found: metadata.Distribution) -> tuple[str, bytes]:
    """The wheel of an installed distribution; the same bytes for the same files."""
    contents: dict[str, bytes] = {}
    info = ""
    for file in found.files or ():
        path = PurePosixPath(file)
        if path.parent.suffix == ".dist-info":
            info = path.parent.name
        if path.suffix == ".pyc" or path.name in _LEFT_OUT or "__pycache__" in path.parts:
            continue
        inside = _inside(path, f"{NAME}-{found.version}.data")
        if inside is not None:
            try:
                contents[inside] = Path(str(found.locate_file(file))).read_bytes()
            except OSError as error:
                raise InstallError(
                    f"{error.filename}: {error.strerror}; install edged anew, then again"
                ) from None
    if not any(name.endswith("systemd/edged.service") for name in contents):
        raise InstallError("this edged came without its units; install it anew (pipx install), then again")
    return f"{NAME}-{found.version}-py3-none-any.whl", _zipped(contents, f"{info}/RECORD")


def _inside(path: PurePosixPath, data: str) -> str | None:
    """Where in a wheel a file belongs; None for what pip makes anew."""
    if path.parts[0] != "..":
        return str(path)
    outside = [part for part in path.parts if part != ".."]
    # <prefix>/share/... is the wheel's data; <prefix>/bin/... are the console scripts.
    if outside[0] == "share":
        return f"{data}/data/{'/'.join(outside)}"
    if outside[-1] in _SCRIPTS:
        return None
    raise InstallError(f"a file of edged lies where none is expected: {path}")


def _zipped(contents: dict[str, bytes], record: str) -> bytes:
    rows = io.StringIO()
    lines = csv.writer(rows, lineterminator="\n")
    for name, data in sorted(contents.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.writerow((name, f"sha256={digest}", len(data)))
    lines.writerow((record, "", ""))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (*sorted(contents.items()), (record, rows.getvalue().encode())):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _checkout(found: metadata.Distribution) -> Path | None:
    """The folder of an editable installation."""
    text = found.read_text("direct_url.json")
    told: dict[str, Any] = json.loads(text) if text else {}
    if not told.get("dir_info", {}).get("editable"):
        return None
    return Path(str(told["url"]).removeprefix("file://"))


def _built(checkout: Path) -> tuple[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="edged-wheel-") as folder:
        done = started(
            (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, os.fspath(checkout))
        )
        wheels = list(Path(folder).glob("*.whl"))
        if done.code or not wheels:
            raise InstallError(f"no wheel could be built of {checkout}: {done.err.strip()[-300:]}")
        return wheels[0].name, wheels[0].read_bytes()
