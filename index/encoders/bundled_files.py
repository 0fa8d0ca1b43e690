"""Find the files of the bundled model, all-MiniLM-L6-v2, that are installed with Memex, and check their digests.

The graphs are part of the source. A build writes the weights into separate files (distribution/model_weights.py)."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from index.encoders.settings import Precision
from index.errors import Unavailable

FOLDER: Final = Path(__file__).with_name("minilm")
WEIGHTS: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # sha256 of the original weights
DIGESTS: Final = {
    "fp32.onnx": "3fd7692038ee68cc6f5abe6d563a68e9554369524032f6fa9305109794154b6a",
    "int8.onnx": "28236cf735ff329ba375207782c4776542f7d476f11add6f19aa1ecbb63923a9",
    "weights.bin": "6feb57baaf4f5b38e3af18dd91177b7135298a86af35b8c973f01f956622b67f",
    "int8.bin": "fd1db284c1b77edcc4b7570106b6fa7c6e6c56e6b2efde29fc46503fc5241802",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
GRAPHS: Final[dict[Precision, tuple[str, ...]]] = {
    "fp32": ("fp32.onnx", "weights.bin"),
    "int8": ("int8.onnx", "int8.bin", "weights.bin"),  # what is not a matrix stays in fp32
}


def find_graph(precision: Precision, *, folder: Path = FOLDER) -> Path:
    """Return the graph of one precision after checking the digests of the graph and its weights."""
    for name in GRAPHS[precision]:
        verify_file(folder / name)
    return folder / GRAPHS[precision][0]


def read_tokenizer(*, folder: Path = FOLDER) -> str:
    """Read the model's tokenizer.json, and check it."""
    verify_file(folder / "tokenizer.json")
    return (folder / "tokenizer.json").read_text("utf-8")


def verify_file(file: Path) -> None:
    """Check the digest of a file of the model. Raises Unavailable if it differs."""
    try:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        message = f"the bundled model's {file.name} can't be read ({error.strerror}); reinstall Memex"
        raise Unavailable(message, retryable=False) from error
    if digest != DIGESTS[file.name]:
        raise Unavailable(f"the bundled model's {file.name} is damaged; reinstall Memex", retryable=False)
