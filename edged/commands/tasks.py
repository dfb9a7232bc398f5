"""`edged tasks`: what can be trained here, and the options of each task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="List the tasks that this machine can train, and their options.",
    epilog="Example: edged tasks show mnist",
    no_args_is_help=True,
)

EXIT_USAGE = 2
Json = Annotated[bool, typer.Option("--json", help="As a JSON object.")]
Folder = Annotated[Path, typer.Option("--folder", help="Folder with task files of your own.", metavar="DIR")]
DEFAULT_FOLDER = Path("/etc/edged/tasks")


@app.command("list")
def list_tasks(folder: Folder = DEFAULT_FOLDER, as_json: Json = False) -> None:
    """List every task: shipped, from other packages, and your own files; a faulty one says why.

    Example: edged tasks list --folder ./tasks
    """
    import json

    from edged import tasks

    rows: dict[str, dict[str, str]] = {}
    for name, origin in tasks.names([folder]).items():
        try:
            task = tasks.find(name, [folder])
            rows[name] = {"origin": origin, "summary": task.SUMMARY, "hash": tasks.task_hash(name, [folder])}
        except tasks.TaskError as error:
            rows[name] = {"origin": origin, "error": str(error)}
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    for name, row in rows.items():
        own = "" if row["origin"] == "shipped" else f" ({row['origin']})"
        text = f"cannot be used: {row['error']}" if "error" in row else row["summary"]
        typer.echo(f"{name:<12} {text}{own}")


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A task's name, or the path of its .py file.", metavar="TASK")],
    folder: Folder = DEFAULT_FOLDER,
    as_json: Json = False,
) -> None:
    """Show a task: its learning set-up, its options with type and default, and those of `data prepare`.

    Example: edged tasks show mnist
    """
    import json

    import msgspec

    from edged import tasks

    try:
        task: Any = tasks.find(name, [folder])
        shown = {
            "task": task.NAME,
            "summary": task.SUMMARY,
            "hash": tasks.task_hash(name, [folder]),
            "source": str(tasks.source_of(name, [folder])),
            "defaults": msgspec.to_builtins(task.DEFAULTS),
            "options": _fields(task.Options),
            "prepare": _fields(task.Prepare) if hasattr(task, "prepare") else None,
        }
    except tasks.TaskError as error:
        typer.echo(f"edged tasks show: {error}", err=True)
        raise typer.Exit(EXIT_USAGE) from None
    if as_json:
        typer.echo(json.dumps(shown, indent=1))
        return
    typer.echo(f"{shown['task']}: {shown['summary']}\nhash {shown['hash']}\nsource {shown['source']}")
    typer.echo("learning set-up: " + ", ".join(f"{key} {value}" for key, value in shown["defaults"].items()))
    for title, about, fields in (
        ("options", task.Options.__doc__, shown["options"]),
        ("options of `edged data prepare --set`", getattr(task, "Prepare", task).__doc__, shown["prepare"]),
    ):
        if fields is None:
            continue
        typer.echo(f"{title}: {' '.join((about or '').split()) if fields else 'none'}")
        for field in fields:
            typer.echo(f"  {field['name']:<18} {field['type']}, default {field['default']!r}")


def _fields(kind: Any) -> list[dict[str, Any]]:
    import msgspec

    return [
        {"name": field.name, "type": _type(field.type), "default": field.default}
        for field in msgspec.structs.fields(kind)
    ]


def _type(kind: Any) -> str:
    from typing import Literal, get_args, get_origin

    if get_origin(kind) is Literal:
        return " | ".join(str(value) for value in get_args(kind))
    return kind.__name__ if isinstance(kind, type) else str(kind)
