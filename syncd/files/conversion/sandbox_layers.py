"""Define the layers of the converter's sandbox, and say which are in force and what follows for PDF and Office files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from syncd.documents.file_types import DOCX, PDF, PPTX, XLSX

NEED_SANDBOX: Final = frozenset({PDF, DOCX, PPTX, XLSX})  # their parsers are large, or written in C and C++
LANDLOCK, SECCOMP = "Landlock (which files may be opened)", "seccomp (which system calls may be made)"
WAY_OUT: Final = "to read them without it, set kb.confined to preferred"


@dataclass(frozen=True, slots=True)
class SandboxLayers:
    """What restricts the converter's child besides its limits of time and memory."""

    landlock: int = 0  # the version of the kernel's interface; 0: not in force
    seccomp: bool = False
    network_namespace: bool = False  # in addition: seccomp alone keeps the child off the network

    @property
    def missing(self) -> tuple[str, ...]:
        """The required layers that are not in force."""
        return ((LANDLOCK,) if not self.landlock else ()) + ((SECCOMP,) if not self.seccomp else ())

    def as_dict(self) -> dict[str, Any]:
        """Return what the child answers and what a script reads."""
        return {"landlock": self.landlock, "seccomp": self.seccomp, "network_namespace": self.network_namespace}


def refusal(layers: SandboxLayers, system: str) -> str:
    """Why PDF and Office files are refused, and what their owner can do; "" if they are not."""
    if not layers.missing:
        return ""
    if system == "darwin":
        return f"PDF and Office files are refused: macOS has neither Landlock nor seccomp to confine their readers; {WAY_OUT}"
    lacks = " and ".join(layers.missing)
    return (
        f"PDF and Office files are refused: their readers can't be confined here, as {lacks} is not in force; {WAY_OUT}"
    )
