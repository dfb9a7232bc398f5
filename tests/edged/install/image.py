"""A small image of a board, and programs that leave there what the real ones would; no root, no pip."""

import json
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from edged.install.machine import Done, Machine

UNITS = Path(__file__).resolve().parents[3] / "systemd"


def wheel(version: str = "1.0", content: str = "") -> tuple[str, bytes]:
    """A file that is called a wheel of edged; nothing looks inside but the pretended pip."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        # By name alone it would hold the time, and the same content at another one be another file.
        archive.writestr(zipfile.ZipInfo("content"), content)
    return f"edged-{version}-py3-none-any.whl", out.getvalue()


class Image:
    """`programs` are the commands that were started; `fails` makes those that contain its text fail.

    `answers` are what programs print, by a part of their command.
    """

    def __init__(self, folder: Path, python: tuple[int, int] = (3, 11), **has: object) -> None:
        self.root = folder
        self.python: dict[str, object] = {"version": python, "arch": "x86_64", "venv": True} | {
            "numpy": False,
            "torch": False,
            **has,
        }
        self.programs: list[str] = []
        self.fails = ""
        self.changes: list[str] = []
        self.answers: dict[str, str] = {}
        for place in ("usr/lib/systemd", "etc", "usr/sbin"):
            (folder / place).mkdir(parents=True)
        (folder / "usr/lib/systemd/systemd").touch()
        (folder / "etc/group").write_text("root:x:0:\nvideo:x:44:\n")

    def machine(self, *, dry: bool = False) -> Machine:
        return Machine(self.root, dry=dry, tell=self.changes.append, runner=self._chrooted)

    def running(self) -> Machine:
        """The same as a machine that is up: its programs are started as they are."""
        (self.root / "run/systemd/system").mkdir(parents=True, exist_ok=True)
        return Machine(self.root, live=True, tell=self.changes.append, runner=self.run)

    def _chrooted(self, command: Sequence[str]) -> Done:
        assert command[:2] == ("chroot", str(self.root)), "a program of the host for an image"
        return self.run(command[2:])

    def run(self, command: Sequence[str]) -> Done:
        words = list(command)
        text = " ".join(words)
        self.programs.append(text)
        if self.fails and self.fails in text:
            return Done(1, "", "it failed, as this test wants")
        for part, answer in self.answers.items():
            if part in text:
                return Done(0, answer)
        if words[:3] == ["/usr/bin/python3", "-I", "-c"]:
            return Done(0, json.dumps(self.python))
        if "--target" in words:
            self._torch(words)
        elif "pip" in words:
            self._release(words)
        return Done(0)

    def _release(self, words: list[str]) -> None:
        place = self.root / Path(words[0]).parents[1].relative_to("/") / "share/edged/systemd"
        place.mkdir(parents=True)
        for path in UNITS.rglob("*"):
            if path.is_file():
                copy = place / path.relative_to(UNITS)
                copy.parent.mkdir(exist_ok=True)
                copy.write_bytes(path.read_bytes())

    def _torch(self, words: list[str]) -> None:
        place = self.root / words[words.index("--target") + 1].lstrip("/")
        (place / "torch-2.10.0.dist-info").mkdir(parents=True)

    def files(self) -> dict[str, str]:
        """Everything below the root, with links' targets."""
        return {
            str(path.relative_to(self.root)): str(path.readlink())
            if path.is_symlink()
            else path.read_text(errors="replace")
            for path in sorted(self.root.rglob("*"))
            if path.is_symlink() or path.is_file()
        }
