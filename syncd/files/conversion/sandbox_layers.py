"""Define the layers of the converter's sandbox, and explain when PDF and Office files are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from syncd.documents.file_types import DOCX, PDF, PPTX, XLSX

NEED_SANDBOX: Final = frozenset({PDF, DOCX, PPTX, XLSX})  # their parsers are large, or written in C and C++
LANDLOCK, SECCOMP = "Landlock (which files may be opened)", "seccomp (which system calls may be made)"
WAY_OUT: Final = "to read them without it, set kb.confined to preferred"


@dataclass(frozen=True, slots=True)
class SandboxLayers:
    """Describes what restricts the converter's child in addition to the limits on time and memory."""

    landlock: int = 0  # the version of the kernel's interface; 0: not in force
    seccomp: bool = False
    network_namespace: bool = False  # optional, because seccomp already keeps the child off the network

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the required layers that are not in force."""
        return ((LANDLOCK,) if not self.landlock else ()) + ((SECCOMP,) if not self.seccomp else ())


def refusal(layers: SandboxLayers, system: str) -> str:
    """Return why PDF and Office files are refused, and what the owner can do; "" if they are not refused."""
    if not layers.missing:
        return ""
    if system == "darwin":
        return f"Memex refuses PDF and Office files: macOS has neither Landlock nor seccomp to confine their readers; {WAY_OUT}"
    lacks = " and ".join(layers.missing)
    return f"Memex refuses PDF and Office files: their readers can't be confined here without {lacks}; {WAY_OUT}"
