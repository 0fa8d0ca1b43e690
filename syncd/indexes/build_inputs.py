"""Read and write the inputs of a build: which encoder and sizes it was made with, and which build is in use.

Law, tested: after a change of encoders searches and captures continue as before until the new index takes over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any

from index.encoders.embedder import Embedder
from index.encoders.settings import EncoderSettings
from index.scope.prepared_document import fingerprint
from index.text.chunking import Sizes
from syncd.settings.settings import ENCODERS
from syncd.settings.values import Setting, convert
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


def build_in_use(root: Path) -> tuple[Path | None, BuildInputs | None]:
    """Return the folder of the build in `current`, None without one, and its inputs, None if they can't be read."""
    try:
        name = read_regular_file(root / "current").decode("ascii").strip()
    except (OSError, ValueError):  # missing, or damaged
        return None, None
    folder = next((folder for folder in root.iterdir() if folder.name == name and folder.is_dir()), None)
    return folder, read_made(folder) if folder else None


def write_made(folder: Path, inputs: BuildInputs) -> None:
    """Write the inputs of the build in `folder`."""
    record = {"identity": inputs.identity, "dimensions": inputs.dimensions, "sizes": astuple(inputs.sizes)}
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


def to_table(settings: EncoderSettings) -> dict[str, Any]:
    """Return an encoder's settings as they are remembered beside the index."""
    kind = next(kind for kind, name in ENCODERS.kinds.items() if name == type(settings).__name__)
    return {"kind": kind, **{name: value for name, value in asdict(settings).items() if value is not None}}


def from_table(remembered: Any) -> EncoderSettings | None:
    """Read the settings that `to_table` wrote; None when there are none, or none that this version knows."""
    if not isinstance(remembered, Mapping):
        return None
    try:
        (value,) = convert(Setting("encoder", ENCODERS, (), ""), [remembered], text=False)
    except ValueError:
        return None
    settings: EncoderSettings = value
    return settings


def encoder_to_recall(embedder: Embedder, made_with: EncoderSettings | None, identity: str) -> EncoderSettings | None:
    """Return the encoder to load beside `embedder` for an index of `identity`; None when that would not help."""
    if made_with is None or not identity:
        return None
    if embedder.state == "ready" and embedder.identity == identity:
        return None
    configured = embedder.configured
    if configured and made_with == configured[0]:
        return None  # the same settings, whose model has changed or is unavailable
    if made_with in configured and not embedder.identity:
        return None  # it replaces the first one automatically
    return made_with
