"""Fetch the documentation pages of npm packages: real notes, most of them in two versions, and many made from one form."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path, PurePosixPath
from typing import Final

# By collection. The first two were read while the rules for duplicates were chosen, except mercurius; the third was not.
PACKAGES: Final = {
    "pages_1": ("fastify@4.10.0", "fastify@5.2.0", "undici@5.20.0", "undici@7.2.0", "pino@7.11.0", "pino@9.5.0", "npm@9.5.0", "npm@10.9.0"),
    "pages_2": ("mercurius@11.0.0", "mercurius@16.0.0", "node-gyp@9.4.0", "serverless@2.72.0"),
    "pages_3": (
        "eslint-plugin-import@2.22.0", "eslint-plugin-import@2.30.0", "eslint-plugin-jest@25.0.0", "eslint-plugin-jest@28.8.0",
        "eslint-plugin-jsx-a11y@6.4.1", "eslint-plugin-jsx-a11y@6.10.0",
    ),
}  # fmt: skip


def fetch_pages(folder: Path, collection: str) -> Path:
    """Unpack the pages of a collection below `folder` with `npm pack`, unless they are there, and return their folder."""
    target = folder / collection
    for package in PACKAGES[collection]:
        pages = target / package.replace("@", "-")
        if pages.is_dir():
            continue
        target.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run(
            ["npm", "pack", "--silent", package], cwd=target, check=True, capture_output=True, text=True
        )
        with tarfile.open(target / packed.stdout.split()[-1]) as archive:
            for member in archive.getmembers():
                path = PurePosixPath(member.name)
                raw = archive.extractfile(member) if path.suffix == ".md" and path.parts[1:2] == ("docs",) else None
                if raw is not None and ".." not in path.parts:
                    page = pages.joinpath(*path.parts[1:])
                    page.parent.mkdir(parents=True, exist_ok=True)
                    page.write_bytes(raw.read())
    return target
