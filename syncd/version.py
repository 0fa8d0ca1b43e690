"""Read the version of the installed Memex."""

from __future__ import annotations


def installed() -> str:
    """Return the installed version."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - importing it takes as long as the rest of the start

    try:
        return version("memex-vault")
    except PackageNotFoundError:
        return "0 (not installed)"
