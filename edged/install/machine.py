"""The machine that is set up: this one, or an image below another root; and what was done to it, in words.

In a dry run nothing is changed: it tells what would be. What only looks is done all the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KEPT = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


class InstallError(RuntimeError):
    """It cannot be set up; the text says what, where and the way out. `status` is the command's own."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


class Done(Struct, frozen=True):
    """How a program ended, and its words."""

    code: int
    out: str = ""
    err: str = ""


Runner = Callable[[Sequence[str]], Done]


class Machine:
    """`root` stands for `/`; `runner` starts programs, and `tell` hears each step as it is done.

    `live` says whether services can be started: on this machine, not in an image.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        *,
        live: bool | None = None,
        dry: bool = False,
        tell: Callable[[str], None] = lambda line: None,
        runner: Runner | None = None,
    ) -> None:
        self.root = root
        self.live = root == Path("/") if live is None else live
        self.dry = dry
        self.tell = tell
        self._runner = runner or started

    def path(self, inside: str) -> Path:
        """Where a path of the machine lies here."""
        return self.root / inside.lstrip("/")

    def exists(self, inside: str) -> bool:
        return os.path.lexists(self.path(inside))

    def read(self, inside: str) -> str | None:
        """The file's text, None where there is none. Raises InstallError."""
        try:
            return self.path(inside).read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise InstallError(f"{inside}: cannot be read: {error}") from None

    def write(self, inside: str, content: str | bytes, mode: int = 0o644, *, secret: bool = False) -> bool:
        """Put the file there in one piece, if it is not there already. Whether something changed."""
        path = self.path(inside)
        data = content.encode() if isinstance(content, str) else content
        if path.is_file() and path.read_bytes() == data and path.stat().st_mode & 0o7777 == mode:
            return False
        self.tell(f"write {inside}" + (" (secret)" if secret else ""))
        if not self.dry:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f".{path.name}.part")
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                out.write(data)
                os.fchmod(out.fileno(), mode)
                os.fsync(out.fileno())
            part.replace(path)
        return True

    def link(self, inside: str, target: str) -> bool:
        """A symbolic link, moved in one step. Whether something changed."""
        path = self.path(inside)
        if path.is_symlink() and str(path.readlink()) == target:
            return False
        self.tell(f"link {inside} -> {target}")
        if not self.dry:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f".{path.name}.part")
            part.unlink(missing_ok=True)
            part.symlink_to(target)
            part.replace(path)
        return True

    def linked(self, inside: str) -> str | None:
        """Where a link points, None where there is none."""
        path = self.path(inside)
        return str(path.readlink()) if path.is_symlink() else None

    def folder(self, inside: str, mode: int = 0o755) -> None:
        if not self.path(inside).is_dir():
            self.tell(f"make {inside}")
            if not self.dry:
                self.path(inside).mkdir(parents=True)
                self.path(inside).chmod(mode)

    def remove(self, inside: str) -> bool:
        """A file, a link or a whole folder. Whether there was one."""
        path = self.path(inside)
        if not os.path.lexists(path):
            return False
        self.tell(f"remove {inside}")
        if not self.dry:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        return True

    def names(self, inside: str) -> list[str]:
        """What lies in a folder, sorted; nothing where there is none."""
        path = self.path(inside)
        return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []

    def run(self, *command: str, fault: str = "") -> Done:
        """A program that changes something. With `fault`, one that fails raises InstallError with it."""
        self.tell("run " + " ".join(command))
        if self.dry:
            return Done(0)
        done = self.ask(*command)
        if done.code and fault:
            words = " ".join((done.err or done.out).strip().splitlines()[-3:])
            raise InstallError(f"{fault}: {words or f'exit status {done.code}'}")
        return done

    def ask(self, *command: str) -> Done:
        """A program that only looks; in an image, the image's own."""
        return self._runner(command if self.live else ("chroot", str(self.root), *command))


def started(command: Sequence[str]) -> Done:
    """Run it with nothing of the caller's environment but proxies and pip's own settings."""
    kept = {name: text for name, text in os.environ.items() if name in KEPT or name.startswith("PIP_")}
    environment = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/root", **kept}
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        return Done(127, "", f"{command[0]}: {error.strerror}")
    return Done(done.returncode, done.stdout, done.stderr)
