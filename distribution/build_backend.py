"""Build Memex with setuptools and with the files of the bundled model: the hooks of the build backend (PEP 517 and 660).

The first build of a source tree makes the model's files, which stay in the tree. A source distribution contains the code that makes them, not the model."""

from __future__ import annotations

from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

from distribution import model_weights

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_wheel(folder: str, config: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    """Build the wheel into `folder`, and return its name."""
    model_weights.provide()
    return str(build_meta.build_wheel(folder, config, metadata))


def build_editable(folder: str, config: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    """Build the wheel of an editable installation, which uses the source tree itself, and return its name."""
    model_weights.provide()
    return str(build_meta.build_editable(folder, config, metadata))
