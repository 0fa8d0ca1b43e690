"""Find the files of the bundled model, all-MiniLM-L6-v2, that are installed with Memex, check their digests, and compute the int8 matrices.

The graphs are part of the source. A build writes the weights into a separate file, in fp32 alone (distribution/model_weights.py). Law,
tested: the int8 matrices have the bytes that ONNX Runtime's own quantizer produces."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import numpy as np

from index.encoders.settings import Precision
from index.errors import Unavailable

FOLDER: Final = Path(__file__).with_name("minilm")
WEIGHTS: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # sha256 of the original weights
DIGESTS: Final = {
    "fp32.onnx": "3fd7692038ee68cc6f5abe6d563a68e9554369524032f6fa9305109794154b6a",
    "int8.onnx": "28236cf735ff329ba375207782c4776542f7d476f11add6f19aa1ecbb63923a9",
    "weights.bin": "6feb57baaf4f5b38e3af18dd91177b7135298a86af35b8c973f01f956622b67f",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
LAYERS: Final = 6
WIDTH: Final = 384
EMBEDDINGS: Final = (
    30_522 + 512 + 2 + 2
)  # rows before the layers: words, positions, token types, and their norm's weight and bias
LAYER: Final = (
    np.dtype(  # the tensors of a layer in weights.bin, in the order in which distribution/model_weights.py writes them
        [
            ("qkv.weight", "<f4", (WIDTH, 3 * WIDTH)),
            ("qkv.bias", "<f4", 3 * WIDTH),
            ("attention.output.dense.weight", "<f4", (WIDTH, WIDTH)),
            ("attention.output.LayerNorm and bias", "<f4", 3 * WIDTH),
            ("intermediate.dense.weight", "<f4", (WIDTH, 4 * WIDTH)),
            ("intermediate.dense.bias", "<f4", 4 * WIDTH),
            ("output.dense.weight", "<f4", (4 * WIDTH, WIDTH)),
            ("output.LayerNorm and bias", "<f4", 3 * WIDTH),
        ]
    )
)
MATRICES: Final = ("qkv.weight", "attention.output.dense.weight", "intermediate.dense.weight", "output.dense.weight")


def find_graph(precision: Precision, *, folder: Path = FOLDER) -> Path:
    """Return the graph of one precision after checking the digests of the graph and the weights. Raises Unavailable if one differs."""
    graph = folder / f"{precision}.onnx"
    verify_file(graph)
    verify_file(folder / "weights.bin")
    return graph


def compute_matrices(*, folder: Path = FOLDER) -> dict[str, np.ndarray]:
    """Return the matrices of all layers in int8, by their names in `int8.onnx` and in its order. `weights.bin` is not verified again."""
    layers = np.memmap(folder / "weights.bin", LAYER, "r", offset=EMBEDDINGS * WIDTH * 4, shape=LAYERS)
    return {
        f"encoder.layer.{number}.{name}_quantized": quantize(layer[name])
        for number, layer in enumerate(layers)
        for name in MATRICES
    }


def quantize(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix in int8: each column has its own scale, and its largest absolute value becomes 127. No column may be zero."""
    scales = np.abs(matrix).max(axis=0) / 127
    scaled: np.ndarray = np.rint(matrix / scales)
    return scaled.astype(np.int8)


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
