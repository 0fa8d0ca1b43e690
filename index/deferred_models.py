"""Import libraries without building the validators of all their pydantic models.

The MCP library has 300 models, of which a daemon uses a few dozen. Pydantic builds a validator for each when the class
is made; with `defer_build` it builds them when they are first used. Source:
https://docs.pydantic.dev/latest/api/config/#pydantic.config.ConfigDict.defer_build."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

DEFER: Final = "defer_build"

_counting = threading.Lock()
_open_blocks: list[object] = []  # the blocks that threads are in


@contextmanager
def defer_models() -> Iterator[None]:
    """Defer the validators of the models that are imported during this block, whichever thread imports them."""
    from pydantic import BaseModel  # noqa: PLC0415 - a command that asks the daemon does not need it

    block = object()
    with _counting:
        _open_blocks.append(block)
        BaseModel.model_config[DEFER] = True
    try:
        yield
    finally:
        with _counting:
            _open_blocks.remove(block)
            if not _open_blocks:
                del BaseModel.model_config[DEFER]
