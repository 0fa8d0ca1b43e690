"""Compile the patterns of a module when they are first used, and write groups that every version of Python reads alike.

A command that runs without the daemon imports modules with 500 patterns and uses a few of them; compiling all of them
takes 100 ms."""

from __future__ import annotations

import re
from typing import Any, Final, cast

# Python 3.11.0 to 3.11.4 misread possessive groups, such as `(?:…)*+` (python/cpython#106052).
_MISREAD: Final = re.match(r"(?:[^b]|b(?!b))++bb", "abb") is None


class _DeferredPattern:
    """Stands in for a pattern; each of its methods becomes that of the compiled pattern at its first use."""

    def __init__(self, expression: str, flags: int) -> None:
        self._expression, self._flags = expression, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copying and pickling look for special methods that a pattern does not have
            raise AttributeError(name)
        if name == "_compiled":
            value: Any = re.compile(self._expression, self._flags)
        else:
            value = getattr(self._compiled, name)
        setattr(self, name, value)  # later uses do not come here
        return value


def possessive(body: str, repeat: str, *, misread: bool = _MISREAD) -> str:
    """Return an expression that repeats `body` and gives nothing back, for every version of Python.

    A version that misreads possessive groups gets an atomic group, which means the same and needs more memory."""
    return f"(?>(?:{body}){repeat})" if misread else f"(?:{body}){repeat}+"


def compile_later(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled at the first use of one of its attributes.

    It can't be passed to the functions of `re`. Its first use raises `re.error` if the expression is wrong."""
    return cast("re.Pattern[str]", _DeferredPattern(expression, flags))
