"""Find the files of the bundled model, all-MiniLM-L6-v2, that are installed with Memex, check their digests, and compute its 8-bit matrices.

The graphs are part of the source. A build writes the weights into a separate file, in fp16 alone (distribution/model_weights.py). Laws,
tested: the matrices of `int8.onnx` have the bytes that ONNX Runtime's own quantizer produces; a matrix in blocks is the same on every machine."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np

from index.errors import Unavailable

GraphName: TypeAlias = Literal["fp32", "int8", "blocks"]
FOLDER: Final = Path(__file__).with_name("minilm")
WEIGHTS: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # sha256 of the original weights
DIGESTS: Final = {
    "fp32.onnx": "b2a369ed6346af0b7ca8b3e7d01efef0f819c4c5033dfcea52ec059e2f55aba4",
    "int8.onnx": "1ecc4cf928b01706159380df78cf601cc6d2b5f7295f78c66ca35ec8183b9148",
    "blocks.onnx": "4f22360b5bee092c223872e2e43dc448625a28958aedf4d6214fd9e9df55ba53",
    "weights_fp16.bin": "7fc4906fe28b20b9df23213c0b2a63668170aea5e9aba9582f3cc62c6516729c",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
WEIGHTS_FILE: Final = "weights_fp16.bin"
NUMBER_BYTES: Final = 2  # of a number in it
BLOCK: Final = 128  # weights of a column that share a scale in `blocks.onnx`
LAYERS: Final = 6
WIDTH: Final = 384
EMBEDDINGS: Final = (
    30_522 + 512 + 2 + 2
)  # rows before the layers: words, positions, token types, and their norm's weight and bias
LAYER: Final = np.dtype(  # the tensors of a layer in the file of weights, in the order in which distribution/model_weights.py writes them
    [
        ("qkv.weight", "<f2", (WIDTH, 3 * WIDTH)),
        ("qkv.bias", "<f2", 3 * WIDTH),
        ("attention.output.dense.weight", "<f2", (WIDTH, WIDTH)),
        ("attention.output.LayerNorm and bias", "<f2", 3 * WIDTH),
        ("intermediate.dense.weight", "<f2", (WIDTH, 4 * WIDTH)),
        ("intermediate.dense.bias", "<f2", 4 * WIDTH),
        ("output.dense.weight", "<f2", (4 * WIDTH, WIDTH)),
        ("output.LayerNorm and bias", "<f2", 3 * WIDTH),
    ]
)
MATRICES: Final = ("qkv.weight", "attention.output.dense.weight", "intermediate.dense.weight", "output.dense.weight")


def find_graph(name: GraphName, *, folder: Path = FOLDER) -> Path:
    """Return one of the graphs after checking the digests of the graph and the weights. Raises Unavailable if one differs."""
    graph = folder / f"{name}.onnx"
    verify_file(graph)
    verify_file(folder / WEIGHTS_FILE)
    return graph


def compute_tensors(name: GraphName, *, folder: Path = FOLDER) -> dict[str, np.ndarray]:
    """Return the tensors of a graph that are in no file, by their names and in their order in it. The file of weights is not verified again."""
    if name == "fp32":
        return {}
    layers = np.memmap(folder / WEIGHTS_FILE, LAYER, "r", offset=EMBEDDINGS * WIDTH * NUMBER_BYTES, shape=LAYERS)
    tensors: dict[str, np.ndarray] = {}
    for number, layer in enumerate(layers):
        for matrix in MATRICES:
            label, weights = f"encoder.layer.{number}.{matrix}", layer[matrix].astype(np.float32)
            if name == "int8":
                tensors[f"{label}_quantized"] = quantize(weights)
            else:
                tensors[f"{label}_blocks"], tensors[f"{label}_scales"] = quantize_blocks(weights)
    return tensors


def quantize(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix in int8: each column has its own scale, and its largest absolute value becomes 127. No column may be zero."""
    scales = np.abs(matrix).max(axis=0) / 127
    scaled: np.ndarray = np.rint(matrix / scales)
    return scaled.astype(np.int8)


def quantize_blocks(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix [rows, columns] as ONNX Runtime's MatMulNBits takes it: uint8 [columns, blocks, BLOCK], and a scale for each block.

    128 stands for 0, and the largest absolute value of a block becomes 1 or 255. The rows must be a multiple of BLOCK, and no block zero."""
    rows = matrix.reshape(-1, BLOCK, matrix.shape[1])
    scales = np.maximum(rows.max(axis=1), -rows.min(axis=1)) / np.float32(127)
    blocks = np.empty((matrix.shape[1], len(rows), BLOCK), np.uint8)
    scaled, rounded = np.empty(rows.shape[1:], np.float32), np.empty(rows.shape[1:], np.uint8)  # a new array takes time
    for number, (block, scale) in enumerate(zip(rows, scales, strict=True)):
        np.rint(np.divide(block, scale, out=scaled), out=scaled)
        np.add(scaled, 128, out=rounded, casting="unsafe")
        blocks[:, number] = rounded.T
    return blocks, np.ascontiguousarray(scales.T).reshape(-1)


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
