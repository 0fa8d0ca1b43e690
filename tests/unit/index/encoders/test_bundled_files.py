"""index/encoders/bundled_files.py: damaged files are named, and the int8 matrices always have the same bytes."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.encoders import bundled_files
from index.errors import Unavailable

DIGEST = "fd1db284c1b77edcc4b7570106b6fa7c6e6c56e6b2efde29fc46503fc5241802"  # sha256 of those that the quantizer makes
NUMBERS = st.floats(-4, 4, width=32).filter(lambda number: abs(number) > 1e-3)


@pytest.fixture
def copied(tmp_path):
    """The files of the model, in a folder that may be spoiled."""
    for file in bundled_files.FOLDER.iterdir():
        (tmp_path / file.name).symlink_to(file)
    return tmp_path


@pytest.mark.parametrize("name", ["fp32.onnx", "weights.bin"])
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


def test_the_int8_matrices_have_the_bytes_of_those_that_computed_the_vectors_of_existing_indexes():
    parts = b"".join(map(bytes, bundled_files.compute_matrices().values()))
    assert hashlib.sha256(parts).hexdigest() == DIGEST


@given(st.data(), st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_the_largest_number_of_each_column_becomes_127_and_the_rest_keep_their_share(data, shape):
    rows, columns = shape
    numbers = data.draw(st.lists(NUMBERS, min_size=rows * columns, max_size=rows * columns))
    matrix = np.array(numbers, np.float32).reshape(shape)
    small = bundled_files.quantize(matrix)
    scale = np.abs(matrix).max(axis=0) / 127
    assert small.dtype == np.int8
    assert (np.abs(small).max(axis=0) == 127).all()
    assert (np.abs(small * scale - matrix) <= scale * 0.51).all()
