"""Define the settings of the knowledge base: its collections, limits per key, and limits for reading files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from index.errors import InvalidArgument
from index.model import COLLECTIONS
from index.names import fold
from syncd.settings.values import setting

_COLLECTION: Final = re.compile(r"[^\W\d_][\w-]{0,63}")


@dataclass(frozen=True, slots=True)
class KbSettings:
    """Holds the section `kb`: the collections of the knowledge base, limits per key, and limits for reading files."""

    collections: tuple[str, ...] = setting(
        (), "Further collections, in addition to `documents`, `memory` and `workspace`."
    )
    max_file: int = setting(1_073_741_824, "The largest file that Memex accepts, in bytes.", least=1)
    staged: int = setting(
        2_147_483_648,
        "Bytes of uploaded files per key that wait to be read. Memex keeps failed files up to the same size.",
        least=1,
    )
    uploads: int = setting(64, "The most uploads in progress per key.", least=1)
    queued: int = setting(10_000, "The most waiting jobs per key.", least=1)
    free: int = setting(536_870_912, "Bytes of disk space that uploads must leave free.", least=0)
    convert_s: float = setting(120.0, "The most seconds to read one file.", least=1)
    convert_mb: int = setting(1_024, "The most memory to read one file, in MiB.", least=128, most=1_000_000)
    confined: Literal["required", "preferred"] = setting(
        "required",
        "What to do if a layer of the converter's sandbox is missing (Landlock, seccomp; macOS has neither): `required` refuses PDF and Office files, `preferred` reads them without it.",
    )
    pages: int = setting(2_000, "The most pages, slides or sheets to read from one file.", least=1)
    inflated_mb: int = setting(
        1_024, "The largest unpacked size of a compressed file, in MiB.", least=1, most=1_000_000
    )
    text_kb: int = setting(
        4_000, "The most text to keep from one file, in kB; longer text is cut and marked.", least=1, most=4_500
    )
    keep_days: float = setting(30.0, "Days after which finished jobs are removed from the queue.", least=0)

    def __post_init__(self) -> None:
        """Raise InvalidArgument for collection names that are not valid tags or not case-folded."""
        for name in self.collections:
            if not _COLLECTION.fullmatch(name) or fold(name) != name:
                raise InvalidArgument(
                    f"kb.collections: {name[:64]!r} must be lower-case letters, digits, `-` and `_`, beginning with a letter"
                )

    @property
    def all_collections(self) -> tuple[str, ...]:
        """Return all collections, the default one first."""
        return tuple(dict.fromkeys((*COLLECTIONS, *self.collections)))
