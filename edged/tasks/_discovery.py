"""Finding tasks: shipped ones by listing this folder, entry points, and a user's own files by path."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import msgspec

from edged.tasks._contract import Defaults, Task, TaskError

ENTRY_POINTS = "edged.tasks"
FOLDER = Path("/etc/edged/tasks")
"""Where the owner of a board puts task files of their own; code never comes over the network."""

_HERE = Path(__file__).resolve().parent

_MEMBERS = {
    "NAME": str,
    "SUMMARY": str,
    "Options": type,
    "DEFAULTS": Defaults,
    "model": None,
    "inspect": None,
    "load": None,
    "batch": None,
    "loss_sum": None,
    "evaluate": None,
}


def names(folders: Sequence[Path] = (FOLDER,)) -> dict[str, str]:
    """Every task that can be named: name -> where from ("shipped", an entry point, or a file's path).

    Only lists; nothing is imported. A shipped task wins over an entry point, that over a file.
    """
    found: dict[str, str] = {}
    for folder in reversed(folders):
        if folder.is_dir():
            for path in sorted(folder.glob("*.py")):
                if not path.name.startswith("_"):
                    found[path.stem] = str(path)
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        found[entry.name] = f"entry point {entry.value}"
    for module in pkgutil.iter_modules([str(_HERE)]):
        if not module.name.startswith("_"):
            found[module.name] = "shipped"
    return dict(sorted(found.items()))


def find(name_or_path: str | Path, folders: Sequence[Path] = (FOLDER,)) -> Task:
    """The task of that name, or of that `.py` file. Raises TaskError saying what there is."""
    path = _as_path(name_or_path, folders)
    if path is not None and path.parent != _HERE:
        return _checked(_load_file(path), path.stem, str(path))
    name = path.stem if path is not None else str(name_or_path)
    if name in _shipped():
        return _checked(_imported(f"edged.tasks.{name}", name), name, "shipped")
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS, name=name):
        return _checked(_imported(entry.value, name), name, f"entry point {entry.value}")
    raise _unknown(name, folders)


def task_hash(name_or_path: str | Path, folders: Sequence[Path] = (FOLDER,)) -> str:
    """SHA-256 over the task's source and the helpers in its `HELPERS = ("file.py", ...)`, without running it.

    Board and coordinator must agree on it, so that nobody trains another version of a task.
    """
    source = source_of(name_or_path, folders)
    digest = hashlib.sha256()
    for path in [source, *(source.parent / helper for helper in _helpers(source))]:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise TaskError(f"task {source.stem}: cannot read {path}: {error.strerror}") from None
        digest.update(f"{path.name}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def source_of(name_or_path: str | Path, folders: Sequence[Path] = (FOLDER,)) -> Path:
    """The source file of a task, found without importing it (an entry point's parent package excepted)."""
    path = _as_path(name_or_path, folders)
    if path is not None:
        return path
    name = str(name_or_path)
    if name in _shipped():
        return _HERE / f"{name}.py"
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS, name=name):
        try:
            spec = importlib.util.find_spec(entry.value)
        except (ImportError, ValueError) as error:
            raise TaskError(f"task {name}: entry point {entry.value}: {error}") from None
        if spec is None or spec.origin is None:
            raise TaskError(f"task {name}: entry point {entry.value} names no module with a source file")
        return Path(spec.origin)
    raise _unknown(name, folders)


def options_of(
    task: Task, values: Mapping[str, Any], strict: bool = True, kind: type[msgspec.Struct] | None = None
) -> Any:
    """The task's options (or its `kind`, such as `Prepare`) from names and values.

    `strict=False` reads numbers out of command-line text. Raises TaskError naming an unknown option, a wrong
    type or a value out of range.
    """
    kind = task.Options if kind is None else kind
    known = [field.name for field in msgspec.structs.fields(kind)]
    unknown = [name for name in values if name not in known]
    if unknown:
        has = ", ".join(known) or "none"
        raise TaskError(f"task {task.NAME} has no option {', '.join(unknown)}; its options: {has}")
    try:
        return msgspec.convert(dict(values), kind, strict=strict)
    except msgspec.ValidationError as error:
        raise TaskError(f"task {task.NAME}: {error}") from None


def _shipped() -> set[str]:
    return {module.name for module in pkgutil.iter_modules([str(_HERE)]) if not module.name.startswith("_")}


def _as_path(name_or_path: str | Path, folders: Sequence[Path]) -> Path | None:
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(".py") or "/" in text:
        path = Path(name_or_path)
        if path.suffix != ".py" or not path.is_file():
            raise TaskError(f"task {text}: {'no such file' if path.suffix == '.py' else 'not a .py file'}")
        return path.resolve()
    origin = names(folders).get(text, "")
    return Path(origin).resolve() if origin.endswith(".py") else None


def _load_file(path: Path) -> ModuleType:
    # A name of its own, so that a user's mnist.py never replaces a module that is already imported.
    name = f"edged_user_task_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TaskError(f"task {path}: cannot be loaded as a Python module")
    module = importlib.util.module_from_spec(spec)
    # Registered before it runs: msgspec and dataclasses look annotations up in sys.modules.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise TaskError(f"task {path}: {type(error).__name__}: {error}") from error
    return module


def _imported(module: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise TaskError(f"task {name}: {module}: {type(error).__name__}: {error}") from error


def _checked(module: ModuleType, name: str, origin: str) -> Task:
    for member, kind in _MEMBERS.items():
        value = getattr(module, member, None)
        if value is None:
            raise TaskError(f"task {name} ({origin}): has no {member}; see docs/add-a-task.md")
        if not (callable(value) if kind is None else isinstance(value, kind)):
            raise TaskError(
                f"task {name} ({origin}): {member} is {type(value).__name__}, not what a task has"
            )
    if name != module.NAME:
        raise TaskError(
            f"task {name} ({origin}): NAME is {module.NAME!r}, it must be the file's name, {name!r}"
        )
    if not issubclass(module.Options, msgspec.Struct):
        raise TaskError(f"task {name} ({origin}): Options is not a msgspec.Struct")
    return cast(Task, module)


def _helpers(source: Path) -> tuple[str, ...]:
    try:
        tree = ast.parse(source.read_bytes(), str(source))
    except (OSError, SyntaxError, ValueError) as error:
        raise TaskError(f"task {source.stem}: {source}: {error}") from None
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["HELPERS"]:
            try:
                return tuple(str(name) for name in ast.literal_eval(node.value))
            except (ValueError, TypeError):
                raise TaskError(
                    f"task {source.stem}: HELPERS in {source} is not a tuple of file names"
                ) from None
    return ()


def _unknown(name: str, folders: Sequence[Path]) -> TaskError:
    return TaskError(
        f"no task {name!r}; there are {', '.join(names(folders))}, or give the path of a .py file"
    )
