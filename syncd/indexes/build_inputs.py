"""Read and write the inputs of a build: which encoder and sizes it was made with, and which build is in use."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from index.encoders.settings import EncoderSettings
from index.scope.prepared_document import fingerprint
from index.text.chunking import Sizes
from syncd.indexes.previous_encoder import from_table, to_table
from syncd.state.folder import read_regular_file, write_private


@dataclass(frozen=True, slots=True)
class BuildInputs:
    """Describes the inputs of a build."""

    identity: str  # of the encoder; "" = none
    dimensions: int
    sizes: Sizes
    # Its settings: different settings may mean the same encoder.
    encoder: EncoderSettings | None = field(default=None, compare=False)

    @property
    def made_by(self) -> str:
        """Return the fingerprint of all inputs."""
        return fingerprint(self.identity, self.sizes)


def build_in_use(root: Path) -> tuple[Path | None, bool]:
    """Return the folder of the build in `current`, and whether its inputs are readable; (None, False) without one."""
    folder = current_folder(root) if root.is_dir() else None
    return folder, folder is not None and read_made(folder) is not None


def write_made(folder: Path, inputs: BuildInputs) -> None:
    """Write the inputs of the build in `folder`."""
    record = {"identity": inputs.identity, "dimensions": inputs.dimensions, "sizes": _size_list(inputs.sizes)}
    write_private(
        folder / "made.json",
        json.dumps(record | ({"encoder": to_table(inputs.encoder)} if inputs.encoder else {})),
    )


def read_made(folder: Path) -> BuildInputs | None:
    """Return the inputs of the build in `folder`; None if its record is missing, damaged or of another version."""
    try:
        inputs = json.loads(read_regular_file(folder / "made.json"))
        return BuildInputs(
            inputs["identity"], inputs["dimensions"], Sizes(*inputs["sizes"]), from_table(inputs.get("encoder"))
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def current_folder(root: Path) -> Path | None:
    """Return the folder of the build that `current` names; None if there is none."""
    try:
        name = read_regular_file(root / "current").decode("ascii").strip()
    except (OSError, ValueError):  # missing, or damaged
        return None
    return next((folder for folder in root.iterdir() if folder.name == name and folder.is_dir()), None)


def _size_list(cut: Sizes) -> list[int]:
    return [cut.tokens, cut.overlap, cut.context]
