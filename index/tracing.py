"""Record the spans of a request for tracing, as long as somebody collects them.

Law: a span carries a fixed name, numbers and a few fixed words, never text of a note or of a request; work that no
collected request caused is not traced."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Final, Protocol, TypeAlias

Value: TypeAlias = str | int | float | bool


class Span(Protocol):
    """Time a piece of work."""

    def note(self, **attributes: Value) -> None:
        """Add fields to the span."""
        ...


Opener: TypeAlias = Callable[[str, dict[str, Value]], AbstractContextManager[Span]]

OPENER: ContextVar[Opener | None] = ContextVar("trace", default=None)  # set for as long as a request is collected


class _NoSpan:
    """The span of a request that nobody collects."""

    def __enter__(self) -> Span:
        return self

    def __exit__(self, *_: object) -> None:
        """Let an error pass."""

    def note(self, **attributes: Value) -> None:
        """Do nothing: nobody collects the span."""


_NOTHING: Final = _NoSpan()


def span(name: str, **attributes: Value) -> AbstractContextManager[Span]:
    """Time the block as a part of the present request."""
    opener = OPENER.get()
    return _NOTHING if opener is None else opener(name, attributes)
