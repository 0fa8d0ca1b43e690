"""index/encoders/bundled_files.py: damaged files are named, and the 8-bit matrices always have the same bytes."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.encoders import bundled_files
from index.encoders.bundled_files import BLOCK
from index.errors import Unavailable

COMPUTED = {  # sha256 of the tensors that are in no file, as those who made the graphs computed them
    "int8": "a5b96ca1f538853bf60e3bda6603c86a3fd6aa7cb401a37bbe37cdc8363bb1cc",
    "blocks": "d405d09307248dae67330f695e5cb253bfc9a8e324b1686fd7d23cf55151b7d9",
}
NUMBERS = st.floats(-4, 4, width=32).filter(lambda number: abs(number) > 1e-3)


@pytest.fixture
def copied(tmp_path):
    """The files of the model, in a folder that may be spoiled."""
    for file in bundled_files.FOLDER.iterdir():
        (tmp_path / file.name).symlink_to(file)
    return tmp_path


@pytest.mark.parametrize("name", ["fp32.onnx", bundled_files.WEIGHTS_FILE])
def test_a_damaged_or_missing_file_is_named_with_the_way_out(copied, name):
    assert bundled_files.find_graph("fp32", folder=copied) == copied / "fp32.onnx"
    (copied / name).unlink()
    with pytest.raises(Unavailable, match=rf"{name} can't be read .*; reinstall Memex"):
        bundled_files.find_graph("fp32", folder=copied)
    (copied / name).write_bytes(b"other bytes")
    with pytest.raises(Unavailable, match=rf"{name} is damaged; reinstall Memex"):
        bundled_files.find_graph("fp32", folder=copied)


def test_a_damaged_tokenizer_is_named(copied):
    assert bundled_files.read_tokenizer(folder=copied).startswith("{")
    (copied / "tokenizer.json").unlink()
    (copied / "tokenizer.json").write_text("{}")
    with pytest.raises(Unavailable, match=r"tokenizer.json is damaged; reinstall Memex"):
        bundled_files.read_tokenizer(folder=copied)


@pytest.mark.parametrize("name", sorted(COMPUTED))
def test_the_matrices_have_the_bytes_of_those_that_computed_the_vectors_of_existing_indexes(name):
    parts = b"".join(map(bytes, bundled_files.compute_tensors(name).values()))
    assert hashlib.sha256(parts).hexdigest() == COMPUTED[name]


def draw_matrix(data, rows: int, columns: int) -> np.ndarray:
    numbers = data.draw(st.lists(NUMBERS, min_size=rows * columns, max_size=rows * columns))
    return np.array(numbers, np.float32).reshape(rows, columns)


@given(st.data(), st.integers(1, 5), st.integers(1, 5))
def test_the_largest_number_of_each_column_becomes_127_and_the_rest_keep_their_share(data, rows, columns):
    matrix = draw_matrix(data, rows, columns)
    small = bundled_files.quantize(matrix)
    scale = np.abs(matrix).max(axis=0) / 127
    assert small.dtype == np.int8
    assert (np.abs(small).max(axis=0) == 127).all()
    assert (np.abs(small * scale - matrix) <= scale * 0.51).all()


@given(st.data(), st.integers(1, 3), st.integers(1, 5))
def test_the_largest_number_of_each_block_lies_127_from_the_middle_and_the_rest_keep_their_share(data, count, columns):
    matrix = np.resize(draw_matrix(data, 7, columns), (count * BLOCK, columns))
    blocks, scales = bundled_files.quantize_blocks(matrix)
    assert (blocks.dtype, blocks.shape, scales.shape) == (np.uint8, (columns, count, BLOCK), (columns * count,))
    offsets, scale = blocks.astype(np.float32) - 128, scales.reshape(columns, count, 1)
    assert (np.abs(offsets).max(axis=2) == 127).all()
    assert (np.abs(offsets * scale - matrix.T.reshape(columns, count, BLOCK)) <= scale * 0.51).all()
