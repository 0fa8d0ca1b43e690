"""Import LanceDB silently, and without building the argument checks of its REST client.

LanceDB brings a client for remote catalogs (`lance_namespace_urllib3_client`) that Memex never calls. Each of its methods
is decorated with pydantic's `validate_call`, which builds a validator at the import: 0.4 s of the 1.1 s that
`import lancedb` takes, at every start of the daemon and of every command that opens the index. Seen in lancedb 0.40;
if it is done otherwise one day, nothing but those 0.4 s is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import pydantic

UNUSED: Final = "lance_namespace_urllib3_client."
_validate_call: Any = pydantic.validate_call


def _validate_unless_unused(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    if function is not None and function.__module__.startswith(UNUSED):
        return function
    return _validate_call(function, **options)


os.environ.setdefault("LANCEDB_LOG", "error")  # read at the import: else there is a warning on stderr at every query
pydantic.validate_call = _validate_unless_unused
try:
    import lancedb
    from lancedb.index import FTS, Bitmap, BTree, IvfRq, IvfSq, LabelList
    from lancedb.table import AsyncTable
    from lancedb.util import value_to_sql
finally:
    pydantic.validate_call = _validate_call

__all__ = ["FTS", "AsyncTable", "BTree", "Bitmap", "IvfRq", "IvfSq", "LabelList", "lancedb", "value_to_sql"]
