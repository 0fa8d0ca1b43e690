"""Sample vaults: `demo`, a believable one to try Memex on, and `gnarly`, every shape that a file can have."""

from __future__ import annotations

from pathlib import Path


def demo_path() -> Path:
    """The demo vault as it is installed; copy it before use."""
    return Path(__file__).parent / "demo"
