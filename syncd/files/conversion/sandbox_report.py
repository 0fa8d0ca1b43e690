"""Report which layers of the converter's sandbox are in force, for status and the doctor.

Law, tested: if a required layer is missing, the report says which files are refused and how to allow them."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from index.errors import MemexError
from syncd.files.conversion.converter import probe_layers
from syncd.files.conversion.sandbox_layers import SandboxLayers, refusal


class SandboxReport:
    """Reports the state of the sandbox; the first report in this process starts a child to determine it."""

    def __init__(self, *, required: bool) -> None:
        self._required = required

    def facts(self) -> dict[str, Any]:
        """Return the layers by name, the missing ones, and the problem that they cause."""
        try:
            layers = SandboxLayers() if sys.platform == "darwin" else probe_layers()
        except MemexError as error:
            return {"required": self._required, "problem": error.message}
        shown = asdict(layers) | {"required": self._required, "missing": list(layers.missing)}
        return shown | {"system": sys.platform, "problem": refusal(layers, sys.platform) if self._required else ""}

    @property
    def degraded(self) -> str:
        """Return a sentence if files are refused; "" otherwise."""
        problem = self.facts()["problem"]
        return f"sandbox: {problem}" if problem else ""
