"""Import LanceDB silently and quickly: without its client for remote catalogs, and without checks of its own classes.

LanceDB imports `lance_namespace_urllib3_client`, 160 modules of pydantic models for REST catalogs. It uses their classes
in annotations, and for the results of listings of tables or namespaces. The import takes half of the time of `import
lancedb` and 20 MB of memory, at every start of the daemon and of every command that opens the index.

This module gives LanceDB a stand-in for each of these classes. The first use of a stand-in, for example when an S3
store lists its tables, imports the client and uses the real class.

Before Python 3.12, LanceDB marks methods with the library `overrides`, which reads the bytecode of each class for a check:
80 ms at every start. LanceDB gets the mark without the check instead, as it does by itself from Python 3.12 on.

This works with lancedb 0.40; if a later version imports in another way, only the saved time is lost."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, TypeVar

from index.deferred_models import defer_models

CLIENT: Final = "lance_namespace_urllib3_client"
OVERRIDES: Final = "overrides"

T = TypeVar("T")


class _StandIn(type):
    """Stands in for a class of the client; its first use imports the client and uses the real class."""

    def resolve(cls) -> Any:
        return getattr(importlib.import_module(cls.__module__), cls.__name__)

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        return cls.resolve()(*arguments, **named)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.resolve())

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):  # `typing` looks for special attributes to recognize annotations
            raise AttributeError(name)
        return getattr(cls.resolve(), name)


class _BaseWithoutChecks:
    """Stands in for the base class `EnforceOverrides`."""


class _StandInModules(MetaPathFinder, Loader):
    """Finds modules of the client that provide a stand-in for every imported class, and a module of marks without checks."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        return ModuleSpec(fullname, self, is_package=True) if _is_replaced(fullname) else None

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == OVERRIDES:
            module.__dict__.update(override=_mark, EnforceOverrides=_BaseWithoutChecks)
            return

        def make_stand_in(name: str) -> _StandIn:
            if name.startswith("__"):
                raise AttributeError(name)
            return _StandIn(name, (), {"__module__": module.__name__})

        module.__dict__["__getattr__"] = make_stand_in


def _is_replaced(name: str) -> bool:
    """Return whether a module gets a stand-in."""
    return name.partition(".")[0] in (CLIENT, OVERRIDES)


def _mark(method: T) -> T:
    """Stand in for the decorator `override`."""
    return method


def _forget_stand_ins() -> None:
    """Remove the stand-ins, so that a later import gets the real modules."""
    sys.meta_path.remove(_FINDER)
    # A copy, because other threads import meanwhile.
    for name, module in list(sys.modules.items()):
        if _is_replaced(name) and getattr(module.__spec__, "loader", None) is _FINDER:
            del sys.modules[name]


os.environ.setdefault("LANCEDB_LOG", "error")  # read at the import; otherwise every query prints a warning to stderr
_FINDER: Final = _StandInModules()
if "lancedb" not in sys.modules:  # otherwise the client is already imported
    sys.meta_path.insert(0, _FINDER)
try:
    with defer_models():
        import lancedb
        from lancedb.index import FTS, Bitmap, BTree, IvfRq, IvfSq, LabelList
        from lancedb.query import MatchQuery
        from lancedb.table import AsyncTable
        from lancedb.util import value_to_sql
finally:
    if _FINDER in sys.meta_path:
        _forget_stand_ins()

__all__ = [
    "FTS",
    "AsyncTable",
    "BTree",
    "Bitmap",
    "IvfRq",
    "IvfSq",
    "LabelList",
    "MatchQuery",
    "lancedb",
    "value_to_sql",
]
