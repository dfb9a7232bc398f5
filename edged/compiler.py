"""Keeps torch's compiler out of a process until something compiles.

The first optimizer of a process imports `torch._dynamo`, to mark where a compiled program would break off: as
many seconds as importing torch takes and a third of its memory, for marks that nobody reads.
"""

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

NAME = "torch._dynamo"

F = TypeVar("F", bound=Callable[..., Any])


class Deferred(ModuleType):
    """Stands in for the compiler: takes its two marks, and is replaced by it once anything else is wanted."""

    def graph_break(self, msg: str = "") -> None:
        """Where a compiled program would be interrupted. Nothing is compiled."""

    def disable(self, fn: F, recursive: bool = True, **_options: Any) -> F:
        """What is not to be compiled, as it is."""
        return fn

    def __getattr__(self, name: str) -> Any:
        # Who looks through all modules (inspect does) asks for __file__ and wants nothing of it; __path__ is
        # asked for where a part of it is imported.
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        if sys.modules.get(NAME) is self:
            del sys.modules[NAME]
        return getattr(importlib.import_module(NAME), name)


def defer() -> None:
    """Before the first optimizer is made; does nothing where the compiler is there already."""
    sys.modules.setdefault(NAME, Deferred(NAME))
