"""Define the settings of the knowledge base: its collections, the limits of a key, and how far a file is read."""

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
    """The knowledge base: its collections, what it takes from one key, and how far a file is read."""

    collections: tuple[str, ...] = setting((), "Collections besides `documents`, `memory` and `workspace`.")
    max_file: int = setting(1_073_741_824, "The largest file that is taken, in bytes.", least=1)
    staged: int = setting(
        2_147_483_648,
        "Bytes that one key may have uploaded and not turned into documents yet; as many of files that failed are kept.",
        least=1,
    )
    uploads: int = setting(64, "Uploads that one key may have under way.", least=1)
    queued: int = setting(10_000, "Jobs of one key that may wait.", least=1)
    free: int = setting(536_870_912, "Bytes of disk that uploads leave free.", least=0)
    convert_s: float = setting(120.0, "Seconds that reading one file may take.", least=1)
    convert_mb: int = setting(1_024, "Memory that reading one file may take, in MiB.", least=128)
    confined: Literal["required", "preferred"] = setting(
        "required",
        "Where a layer of the converter's sandbox is missing (Landlock, seccomp; macOS has neither): refuse PDF and Office files, or read them with less.",
    )
    pages: int = setting(2_000, "Pages, slides or sheets of one file that are read.", least=1)
    inflated_mb: int = setting(1_024, "What a compressed file may unpack to, in MiB.", least=1)
    text_kb: int = setting(
        4_000, "Text of one file that is kept, in kB; what is longer is cut and marked.", least=1, most=4_500
    )
    keep_days: float = setting(30.0, "Days after which a job that ended is forgotten.", least=0)

    def __post_init__(self) -> None:
        """Refuse names that a tag can't have, or that would not compare."""
        for name in self.collections:
            if not _COLLECTION.fullmatch(name) or fold(name) != name:
                raise InvalidArgument(
                    f"kb.collections: {name[:64]!r} must be lower-case letters, digits, `-` and `_`, beginning with a letter"
                )

    @property
    def all_collections(self) -> tuple[str, ...]:
        """All collections there are, the default one first."""
        return tuple(dict.fromkeys((*COLLECTIONS, *self.collections)))
