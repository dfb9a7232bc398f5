"""The shape of the tree: import directions, purity of the core, size of files, and what an import costs.

Reads sources with `ast`; each rule is also tried on a planted violation.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("probes", "edged", "coordinator")
"""In the order of their imports: each may import those before it."""

PURE = (
    "coordinator/pacing.py",
    "edged/messages.py",
    "edged/codec.py",
    "edged/fields.py",
    "edged/parts.py",
    "edged/topics.py",
    "edged/events.py",
    "edged/orders.py",
    "edged/board.py",
    "edged/cues.py",
    "edged/state.py",
    "edged/ledger.py",
    "edged/schedule.py",
    "edged/dealing.py",
    "edged/groups.py",
    "edged/stepwise.py",
    "edged/balance/plan.py",
    "edged/ceilings.py",
    "edged/splitting.py",
    "coordinator/rounds.py",
    "coordinator/asynchronous.py",
    "coordinator/dealing.py",
    "coordinator/periods.py",
    "coordinator/pushes.py",
    "coordinator/alerts.py",
    "coordinator/telemetry/schema.py",
    "coordinator/telemetry/points.py",
    "coordinator/telemetry/chronicle.py",
    "coordinator/telemetry/generations.py",
    "coordinator/controller",
)
READS_THE_FOLDER = (
    "coordinator/controller/policies/__init__.py",
    "coordinator/controller/staleness/__init__.py",
)
"""Pure, except that they find what stands beside them: they list their own folder (or load a user's file)."""

IMPURE = frozenset(
    "asyncio concurrent ctypes datetime fcntl ftplib glob http io logging mmap multiprocessing os paho "
    "pathlib queue random rich secrets select selectors shutil signal socket socketserver sqlite3 ssl "
    "subprocess tempfile threading time torch typer urllib uuid warnings".split()
)
PICKLES = frozenset("cloudpickle dill joblib marshal pickle shelve".split())
BASE = frozenset("msgspec numpy paho safetensors tomli tomllib typer".split())
"""What may be imported at the top of a file beside the standard library: the base dependencies."""

LINES = 300
FOLDERS = 3


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(node: ast.AST, inside: str = "") -> Iterator[str]:
    """Modules that a tree imports, dotted; `from a import b` gives a and a.b, since b may be a module."""
    for child in ast.walk(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{inside}:{child.lineno}: relative import"
            yield str(child.module)
            yield from (f"{child.module}.{alias.name}" for alias in child.names)


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def running(node: ast.AST, functions: bool) -> Iterator[ast.AST]:
    """The nodes that run: not those for the type checker, and on request not those in functions."""
    yield node
    for child in ast.iter_child_nodes(node):
        left_out = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not functions
        if not left_out and not is_for_types(child):
            yield from running(child, functions)


def run_imports(tree: ast.AST, functions: bool) -> set[str]:
    nodes = running(tree, functions)
    return {
        found for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for found in imports(node)
    }


def against_direction(path: str, tree: ast.Module) -> Iterator[str]:
    own = path.split("/", maxsplit=1)[0]
    banned = {"tests", "benchmarks", "dashboards", *PACKAGES[PACKAGES.index(own) + 1 :]}
    yield from (found for found in imports(tree, path) if found.split(".")[0] in banned)


def impurities(path: str, tree: ast.Module) -> Iterator[str]:
    allowed = {"importlib", "pkgutil"} if path in READS_THE_FOLDER else set()
    forbidden = (IMPURE | PICKLES | {"importlib", "pkgutil"}) - allowed
    yield from (found for found in run_imports(tree, functions=True) if found.split(".")[0] in forbidden)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("open", "print", "input", "breakpoint"):
            yield f"line {node.lineno}: {ast.unparse(node.func)}(...)"
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("np.random", "numpy.random"):
            yield f"line {node.lineno}: numpy.random"


def dangers(path: str, tree: ast.Module) -> Iterator[str]:
    yield from (found for found in imports(tree, path) if found.split(".")[0] in PICKLES)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in ("eval", "exec", "torch.load", "os.system", "os.popen"):
            yield f"line {node.lineno}: {called}(...)"
        for keyword in node.keywords:
            value = ast.unparse(keyword.value)
            if keyword.arg in ("shell", "allow_pickle") and value != "False":
                yield f"line {node.lineno}: {keyword.arg}={value}"


def optional_at_the_top(path: str, tree: ast.Module) -> Iterator[str]:
    known = {*sys.stdlib_module_names, *PACKAGES, *BASE}
    yield from (found for found in run_imports(tree, functions=False) if found.split(".")[0] not in known)


def shapeless(path: str, source: str) -> Iterator[str]:
    lines = len(source.splitlines())
    if lines > LINES:
        yield f"{lines} lines: a file above {LINES} is two ideas"
    # Tests mirror the packages one folder further down.
    if path.count("/") > FOLDERS + path.startswith("tests/"):
        yield f"deeper than {FOLDERS} folders"
    docstring = ast.get_docstring(ast.parse(source))
    if docstring is None:
        yield "no module docstring: what the file is for, and what it does not do"
    elif len(docstring.splitlines()) > 5:
        yield f"module docstring of {len(docstring.splitlines())} lines: 1 to 5"


Rule = Callable[[str, ast.Module], Iterator[str]]


def broken(rule: Rule, paths: list[Path]) -> str:
    found = {path: sorted(set(rule(name(path), ast.parse(path.read_text())))) for path in paths}
    return "\n".join(f"{name(path)}: {', '.join(faults)}" for path, faults in found.items() if faults)


def closure(paths: list[Path]) -> list[Path]:
    """These files and all of ours that they import: what a pure file uses has to be pure as well."""
    seen: set[Path] = set()
    todo = list(paths)
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for found in run_imports(ast.parse(path.read_text()), functions=True):
            stem = ROOT.joinpath(*found.split("."))
            todo += [file for file in (stem.with_suffix(".py"), stem / "__init__.py") if file.is_file()]
    return sorted(seen)


def test_imports_point_one_way() -> None:
    assert not (faults := broken(against_direction, sources(*PACKAGES))), faults


@pytest.mark.parametrize("path", PURE)
def test_a_pure_file_and_all_it_imports_know_no_outside(path: str) -> None:
    assert (ROOT / path).exists()
    files = sources(path) if (ROOT / path).is_dir() else [ROOT / path]
    assert not (faults := broken(impurities, closure(files))), faults


def test_foreign_bytes_are_never_run() -> None:
    assert not (faults := broken(dangers, sources(*PACKAGES, "benchmarks"))), faults


def test_optional_libraries_are_imported_in_functions() -> None:
    assert not (faults := broken(optional_at_the_top, sources(*PACKAGES))), faults


def test_a_file_is_one_idea_and_says_which() -> None:
    paths = sources(*PACKAGES, "tests", "benchmarks")
    found = {name(path): ", ".join(shapeless(name(path), path.read_text())) for path in paths}
    faults = "\n".join(f"{path}: {fault}" for path, fault in found.items() if fault)
    assert not faults, faults


@pytest.mark.parametrize(
    ("rule", "path", "source"),
    [
        (against_direction, "probes/x.py", "import edged.messages"),
        (against_direction, "edged/x.py", "def f():\n    from coordinator import rounds"),
        (impurities, "edged/state.py", "from time import monotonic"),
        (impurities, "edged/state.py", "def f():\n    import os.path"),
        (impurities, "edged/state.py", "def f(p):\n    return open(p)"),
        (impurities, "edged/state.py", "import numpy as np\nx = np.random.default_rng()"),
        (dangers, "edged/x.py", "import pickle"),
        (dangers, "edged/x.py", "def f(p):\n    return torch.load(p)"),
        (dangers, "edged/x.py", "subprocess.run(x, shell=True)"),
        (dangers, "edged/x.py", "eval(x)"),
        (optional_at_the_top, "coordinator/x.py", "import rich.table"),
        (optional_at_the_top, "edged/x.py", "try:\n    import torch\nexcept ImportError:\n    torch = None"),
    ],
)
def test_a_planted_violation_is_seen(rule: Rule, path: str, source: str) -> None:
    assert list(rule(path, ast.parse(source)))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("edged/x.py", "x = 1"),
        ("edged/x.py", '"""One.\n\nThree.\n\nFive.\nSix."""'),
        ("edged/x.py", '"""Long."""' + "\n" * 301),
        ("edged/a/b/c/x.py", '"""Deep."""'),
    ],
)
def test_a_shapeless_file_is_seen(path: str, source: str) -> None:
    assert list(shapeless(path, source))


def test_what_is_for_types_only_is_no_import() -> None:
    tree = ast.parse("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n")
    assert not list(optional_at_the_top("edged/x.py", tree))


def loaded_after(modules: list[str], blocked: tuple[str, ...] = ()) -> set[str]:
    """Top-level modules of a fresh interpreter that imported these while the blocked could not be found."""
    script = (
        "import importlib, json, sys\n"
        "modules, blocked = json.loads(sys.stdin.read())\n"
        "sys.modules.update(dict.fromkeys(blocked))\n"  # None there makes an import fail
        "for module in modules: importlib.import_module(module)\n"
        "print(json.dumps([n for n in sys.modules if '.' not in n and sys.modules[n] is not None]))\n"
    )
    command = [sys.executable, "-W", "error", "-c", script]
    asked = json.dumps([modules, blocked])
    done = subprocess.run(command, input=asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_every_module_imports_with_the_base_dependencies_alone() -> None:
    paths = [path.relative_to(ROOT).with_suffix("") for path in sources(*PACKAGES)]
    modules = [".".join(path.parts).removesuffix(".__init__") for path in paths if path.name != "__main__"]
    optional = (
        "torch rich matplotlib amqtt scipy psutil pydantic influxdb_client starlette uvicorn plotly "
        "prometheus_client urllib3 cryptography pyRAPL jtop pynvml smbus2 sklearn pandas"
    )
    assert set(PACKAGES) <= loaded_after(modules, tuple(optional.split()))


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        (["edged.messages", "edged.topics"], {"torch", "paho", "numpy", "typer"}),
        (["edged.agent"], {"torch", "numpy", "typer", "rich"}),
    ],
)
def test_an_import_stays_light(modules: list[str], absent: set[str]) -> None:
    assert not absent & loaded_after(modules)
