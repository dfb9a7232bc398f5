"""Policies by name: one file each in this folder, a file of the user's, or entry points `edged.policies`.

A file that starts with `_` is a helper. See docs/add-a-policy.md for the contract with an example.
"""

import functools
import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from coordinator.controller import NAMED_WEIGHTS, Policy
from coordinator.wording import dotted

GROUP = "edged.policies"
CONTRACT = ("NAME", "REGIMES", "NEEDS", "Options", "allocate")


class UnknownPolicyError(ValueError):
    """No policy of that name, or options that it does not have; the text names what there is."""


def names() -> tuple[str, ...]:
    """All names that `find` knows without extra files: policies first, then the named weights of adaptive."""
    own = sorted(stem.replace("_", "-") for stem in _stems() if not stem.startswith("_"))
    installed = sorted(entry.name for entry in importlib.metadata.entry_points(group=GROUP))
    return (*own, *installed, *NAMED_WEIGHTS)


def find(name: str, files: Sequence[str] = ()) -> Policy:
    """The policy of that name; a name that ends in .py, or one defined in `files`, is a user's own."""
    if name.endswith(".py"):
        return load(name)
    for path in files:
        policy = load(path)
        if name == policy.NAME:
            return policy
    if name in NAMED_WEIGHTS:
        name = "adaptive"
    stem = name.replace("-", "_")
    if not stem.startswith("_") and stem in _stems():
        return _checked(importlib.import_module(f"{__name__}.{stem}"), name)
    for entry in importlib.metadata.entry_points(group=GROUP):
        if entry.name == name:
            return _checked(entry.load(), name)
    raise UnknownPolicyError(
        f"no policy {name!r}; there are {', '.join(names())}, or give a path to a .py file"
    )


@functools.cache
def _stems() -> frozenset[str]:
    """Files of this folder, listed once: every decision looks its policy up."""
    return frozenset(info.name for info in pkgutil.iter_modules(__path__))


def options(name: str, given: Mapping[str, Any], files: Sequence[str] = ()) -> Any:
    """The policy's Options from plain values; a named weighting brings weights unless `given` has some."""
    policy = find(name, files)
    merged = dict(given)
    if name in NAMED_WEIGHTS and not {"w_e", "w_t"} & merged.keys():
        merged |= msgspec.to_builtins(NAMED_WEIGHTS[name])
    known = {field.name for field in msgspec.structs.fields(policy.Options)}
    unknown = sorted(merged.keys() - known)
    if unknown:
        raise UnknownPolicyError(
            f"policy {policy.NAME} has no option {', '.join(unknown)}; "
            + (f"it has {', '.join(sorted(known))}" if known else "it has none")
        )
    try:
        return msgspec.convert(merged, policy.Options)
    except msgspec.ValidationError as error:
        raise UnknownPolicyError(f"policy {policy.NAME}: {dotted(str(error))}") from error


def load(path: str) -> Policy:
    """A user's policy from a Python file, which runs with the coordinator's rights."""
    name = f"edged_policy:{path}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UnknownPolicyError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations kept as text are looked up there
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError as error:
        raise UnknownPolicyError(f"{path}: no such file") from error
    except Exception as error:
        raise UnknownPolicyError(f"{path}: {type(error).__name__}: {error}") from error
    return _checked(module, path)


def _checked(module: Any, where: str) -> Policy:
    missing = [part for part in CONTRACT if not hasattr(module, part)]
    if missing:
        raise UnknownPolicyError(
            f"{where}: a policy needs {', '.join(CONTRACT)}; missing: {', '.join(missing)}"
        )
    return cast(Policy, module)
