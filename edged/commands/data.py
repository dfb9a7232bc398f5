"""`edged data`: fetches official files, makes compact pools of them, and tells what a pool is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Optional

import typer

if TYPE_CHECKING:
    from edged.formats.prepared import Manifest
    from edged.pools import Pool

app = typer.Typer(
    help="Prepare, check and describe the data that boards train on.",
    epilog="Example: edged data fetch mnist -o /data/mnist",
    no_args_is_help=True,
)

EXIT_DATA, EXIT_USAGE = 1, 2
OptionalTexts = Optional[list[str]]  # noqa: UP045 - typer reads it at run time, on Python 3.10 too
Json = Annotated[bool, typer.Option("--json", help="As a JSON object.")]
TaskName = Annotated[str, typer.Argument(help="A task's name, or the path of its .py file.", metavar="TASK")]


@app.command("prepare")
def prepare(
    task: TaskName,
    source: Annotated[Path, typer.Argument(help="Official files: a folder, an archive or a file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The pool's folder, new.", metavar="DIR")],
    settings: Annotated[
        OptionalTexts,
        typer.Option("--set", help="An option of the task's prepare (tasks show).", metavar="NAME=VALUE"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a compact pool of official files, on any PC. Boards read it without further libraries.

    Example: edged data prepare imdb aclImdb_v1.tar.gz -o /data/imdb --set length=200
    """
    from edged import tasks
    from edged.formats import prepared

    try:
        found: Any = tasks.find(task)
        if not hasattr(found, "prepare"):
            raise tasks.TaskError(f"task {found.NAME} prepares nothing: it reads its data as it is")
        options = tasks.options_of(found, _pairs(settings or []), strict=False, kind=found.Prepare)
        prepared.expect_free(out)
        with _progress() as tell:
            manifest = prepared.write(out, found.NAME, found.prepare(source, options, tell))
    except tasks.TaskError as error:
        _fail("prepare", error, EXIT_USAGE)
    except tasks.PoolError as error:
        _fail("prepare", error, EXIT_DATA)
    if as_json:
        _json({"path": str(out), **_described(manifest)})
        return
    typer.echo(_text(out, manifest))
    typer.echo(f'A board offers it with, in edged.toml: [data.{found.NAME}] path = "{out.resolve()}"')


@app.command("check")
def check(
    folder: Annotated[
        Path, typer.Argument(help="A pool's folder, prepared or official files.", metavar="DIR")
    ],
    as_json: Json = False,
) -> None:
    """Read every byte of a pool and compare it with its checksums; official files are known by theirs.

    Example: edged data check /data/imdb
    """
    from edged.formats import prepared
    from edged.tasks import PoolError

    try:
        with _progress() as tell:
            tell("checking", 0, 0)
            if prepared.is_pool(folder):
                prepared.verify(folder)
            pool = _pool(folder)
    except PoolError as error:
        _fail("check", error, EXIT_DATA)
    assert pool.info is not None
    if as_json:
        _json({"path": str(folder), "good": True, "tasks": pool.tasks, "fingerprint": pool.info.fingerprint})
    else:
        typer.echo(
            f"{folder}: good; {', '.join(pool.tasks)}; {pool.info.origin}; {pool.info.fingerprint[:16]}"
        )


@app.command("info")
def info(
    folder: Annotated[Path, typer.Argument(help="A pool's folder, or builtin.", metavar="DIR")],
    as_json: Json = False,
) -> None:
    """Tell what a pool holds, where it came from, how it is split, and which tasks can read it.

    Example: edged data info /data/imdb --json
    """
    import msgspec

    from edged.formats import prepared
    from edged.tasks import PoolError

    try:
        pool = _pool(folder)
        manifest = prepared.read(folder) if prepared.is_pool(folder) else None
    except PoolError as error:
        _fail("info", error, EXIT_DATA)
    if as_json:
        more = _described(manifest) if manifest else {}
        _json({"path": str(folder), "tasks": pool.tasks, **msgspec.to_builtins(pool.info), **more})
    elif manifest:
        typer.echo(_text(folder, manifest))
    elif pool.info:
        typer.echo(f"{folder}: {', '.join(pool.tasks)}, {pool.info.origin}")
        typer.echo(f"  split        {pool.info.split}\n  format       {pool.info.format}")
        typer.echo(f"  fingerprint  {pool.info.fingerprint}")


@app.command("fetch")
def fetch(
    task: Annotated[str, typer.Argument(help="mnist, imdb or cifar10.", metavar="TASK")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to put the files.", metavar="DIR")] = Path(),
    as_json: Json = False,
) -> None:
    """Download a task's official files, with checksum, continuing where an earlier try ended.

    Example: edged data fetch mnist -o /data/mnist
    """
    from edged import downloads

    if task in downloads.BY_HAND:
        _fail("fetch", ValueError(downloads.BY_HAND[task]), EXIT_USAGE)
    if task not in downloads.FILES:
        known = ", ".join(downloads.FILES)
        _fail("fetch", ValueError(f"no files known for {task!r}; there are some for {known}"), EXIT_USAGE)
    paths = []
    try:
        with _progress("bytes") as tell:
            paths += [downloads.fetch(file, out, tell) for file in downloads.FILES[task]]
    except (downloads.DownloadError, OSError) as error:
        _fail("fetch", error, EXIT_DATA)
    if as_json:
        _json({"task": task, "files": [str(path) for path in paths]})
    else:
        typer.echo("\n".join(f"{path}: good" for path in paths))


def _pool(folder: Path) -> Pool:
    from edged import pools, tasks
    from edged.tasks import PoolError, TaskError

    found = {}
    for name in tasks.names():
        try:
            found[name] = tasks.find(name)
        except TaskError as error:
            typer.echo(f"(left out: {error})", err=True)
    pool = pools.inspect(folder, found)
    if pool.info is None:
        raise PoolError(pool.error)
    return pool


def _pairs(settings: list[str]) -> dict[str, str]:
    from edged.tasks import TaskError

    pairs = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise TaskError(f"--set {setting}: expected NAME=VALUE")
        pairs[name] = value
    return pairs


def _described(manifest: Manifest) -> dict[str, Any]:
    import msgspec

    described: dict[str, Any] = msgspec.to_builtins(manifest)
    words = described["facts"].pop("vocabulary", None)
    if words is not None:
        described["facts"]["vocabulary"] = f"{len(words)} words, {' '.join(words[:8])} ..."
    return described


def _text(folder: Path, manifest: Manifest) -> str:
    size = sum(array.bytes for array in manifest.arrays.values())
    lines = {
        "task": manifest.task,
        "samples": f"{manifest.samples} to train, {manifest.test_samples} held out",
        "split": manifest.split,
        "origin": f"{manifest.origin} ({manifest.format})",
        "fingerprint": manifest.fingerprint,
    }
    for name, array in manifest.arrays.items():
        lines[name] = f"{array.dtype} {' x '.join(map(str, array.shape))}"
    for name, value in _described(manifest)["facts"].items():
        lines[name] = str(value)
    width = max(len(name) for name in lines)
    body = "\n".join(f"  {name:<{width}}  {value}" for name, value in lines.items())
    return f"{folder}: {size / 1e6:.1f} MB\n{body}"


@contextmanager
def _progress(unit: str = "") -> Iterator[Callable[[str, int, int], None]]:
    """A bar on the error stream of a terminal; silence elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn

    count = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), count)
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        bars: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in bars:
                bars[what] = bar.add_task(what, total=total or None)
            bar.update(bars[what], completed=done, total=total or None)

        yield tell


def _json(value: dict[str, Any]) -> None:
    import json

    typer.echo(json.dumps(value, indent=1))


def _fail(command: str, error: Exception, code: int) -> NoReturn:
    typer.echo(f"edged data {command}: {error}", err=True)
    raise typer.Exit(code) from None
