"""Report which layers of the converter's sandbox are in force, for status and the doctor.

Law, tested: where a required layer is missing, the report says which files are refused and how their owner changes that."""

from __future__ import annotations

import sys
from typing import Any

from index.errors import MemexError
from syncd.files.conversion.converter import probe_layers
from syncd.files.conversion.sandbox_layers import SandboxLayers, refusal


class SandboxReport:
    """What is known of the sandbox in this process; a child is started to find out when it is first asked."""

    def __init__(self, *, required: bool) -> None:
        self._required = required

    def facts(self) -> dict[str, Any]:
        """The layers, by name, and what follows from a missing one."""
        try:
            layers = SandboxLayers() if sys.platform == "darwin" else probe_layers()
        except MemexError as error:
            return {"required": self._required, "problem": error.message}
        shown = layers.as_dict() | {"required": self._required, "missing": list(layers.missing)}
        return shown | {"system": sys.platform, "problem": refusal(layers, sys.platform) if self._required else ""}

    @property
    def degraded(self) -> str:
        """A sentence if files are refused; "" else."""
        problem = self.facts()["problem"]
        return f"sandbox: {problem}" if problem else ""
