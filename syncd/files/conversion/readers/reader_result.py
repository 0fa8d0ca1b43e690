"""Define the result of reading a file, and the errors of a file that cannot be read.

Each reader runs in the child process only (`syncd/files/conversion/converter_child.py`), because it parses bytes that
a stranger may have made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias


class UnreadableFile(Exception):
    """The file can't be read; the message is the reason, for people, without a path or text of the file."""


class TooLarge(Exception):
    """The file exceeds a limit; the message says which."""


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """Holds the limits of a reader."""

    pages: int  # pages, slides or sheets
    inflated: int  # bytes that a compressed file may unpack to
    text: int  # bytes of text, as UTF-8; a reader may stop once it has more


@dataclass(frozen=True, slots=True)
class MarkdownReading:
    """Holds a file as Markdown."""

    text: str
    pages: int | None = None
    cut: bool = False  # the end is missing, because the text or the pages exceeded a limit
    warnings: tuple[str, ...] = ()


Reader: TypeAlias = Callable[[BinaryIO, ReaderLimits], MarkdownReading]
