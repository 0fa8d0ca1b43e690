"""index/encoders/bundled_model.py: what it promises, held on the real thing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.encoders import onnx_export, onnx_graph
from index.encoders.bundled_model import BundledEncoder
from index.encoders.onnx_session import RUN_TEXTS, RUN_TOKENS, Graph, split_into_runs
from index.encoders.settings import BundledSettings
from index.errors import Unavailable
from tests.support.daemon_process import whole_graph
from tests.support.paths import ROOT

TEXTS = [
    "Markdown files are the truth; the index is a pure function of them.",
    "",
    "?",
    "日本語のノートを検索する",
    "Größe, naïve café, 🦉 and `code()`",
    "- [ ] water the plants\n- [x] back up the vault\n",
    "a long note " * 400,
]


# Ends the process at the first library that would be loaded: 0 if it would find its reports switched off.
LOADING = """
import importlib, os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("onnx", "onnxruntime", "tokenizers", "torch", "transformers", "sentence_transformers", "huggingface_hub"):
            off = (os.environ.get(name) for name in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"))
            os._exit(0 if set(off) == {"1"} else 1)
sys.meta_path.insert(0, Watch())
importlib.import_module(sys.argv[1])
os._exit(2)
"""


@pytest.mark.parametrize(
    "module",
    [
        "onnx_session",
        "onnx_export",
        "bundled_model",
        "onnx_graph",
        "sentence_transformer",
        "cross_encoder",
    ],
)
def test_no_library_is_loaded_before_its_reports_are_switched_off(module):
    environ = {name: value for name, value in os.environ.items() if "TELEMETRY" not in name and name != "DO_NOT_TRACK"}
    command = [sys.executable, "-c", LOADING, f"index.encoders.{module}"]
    assert subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode == 0


def encode(encoder: BundledEncoder, texts: list[str], *, urgent: bool = False) -> np.ndarray:
    return encoder.encode(texts, kind="document", urgent=urgent)


def test_both_lanes_give_the_same_unit_vectors(bundled):
    backlog, urgent = encode(bundled, TEXTS), encode(bundled, TEXTS, urgent=True)
    alone = np.concatenate([encode(bundled, [text], urgent=True) for text in TEXTS])
    assert backlog.shape == (len(TEXTS), bundled.dimensions) == (len(TEXTS), 384)
    assert backlog.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(backlog, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(backlog, urgent, atol=1e-5)
    np.testing.assert_allclose(backlog, alone, atol=1e-5)
    assert encode(bundled, []).shape == (0, 384)


def test_tokens_are_counted_without_specials_and_never_cut(bundled):
    assert bundled.count_tokens([]) == []
    assert bundled.count_tokens(["", "the cat", "word " * 1000]) == [0, 2, 1000]


def test_a_text_is_read_to_its_last_allowed_token_and_no_further(bundled):
    full = "word " * (bundled.max_tokens - 1)
    end, beyond = encode(bundled, [full + "cat", full + "cat dog"])
    np.testing.assert_allclose(end, beyond, atol=1e-6)
    assert encode(bundled, [full + "dog"])[0] @ end < 0.9999


def test_threads_share_the_model_without_disturbing_each_other(bundled):
    texts = [f"{'word ' * (n % 40)}{n}" for n in range(60)]
    expected = encode(bundled, texts)
    wrong: list[float] = []

    def ask(urgent: bool) -> None:
        found = np.abs(encode(bundled, texts, urgent=urgent) - expected).max()
        counted = bundled.count_tokens(texts) == [n % 40 + 1 for n in range(60)]
        if found > 1e-5 or not counted:
            wrong.append(float(found))

    threads = [threading.Thread(target=ask, args=(n % 2 == 0,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_int8_is_near_but_of_another_identity(bundled, graphs):
    small = BundledEncoder(BundledSettings("int8"), cache=graphs, threads=1)
    cosines = (encode(small, TEXTS) * encode(bundled, TEXTS)).sum(axis=1)
    assert cosines.min() > 0.9
    assert small.identity != bundled.identity
    assert "int8" in small.name
    small.close()


def test_a_closed_encoder_says_so(models):
    made = BundledEncoder(BundledSettings(), cache=models, threads=1)
    made.close()
    with pytest.raises(Unavailable, match="closed"):
        encode(made, ["x"])


def test_the_default_path_imports_no_torch(models):
    code = """
import sys
from pathlib import Path
from index.encoders.embedder import Embedder, EmbedSettings
made = Embedder(EmbedSettings(), cache=Path(sys.argv[1]))
made.start()
assert made.wait(30), made.problem
assert made.embed_query("hello").shape == (384,)
assert made.embed_documents(["hello"] * 40).shape == (40, 384)
heavy = {"torch", "transformers", "sentence_transformers", "onnx", "sklearn"} & set(sys.modules)
assert not heavy, heavy
made.close()
"""
    subprocess.run([sys.executable, "-c", code, str(models)], check=True, cwd=ROOT, timeout=60)


@given(st.lists(st.integers(1, 256), max_size=60))
def test_runs_hold_every_text_once_and_stay_small(lengths):
    cut = split_into_runs(lengths)
    assert sorted(row for run in cut for row in run) == list(range(len(lengths)))
    for run in cut:
        longest = max(lengths[row] for row in run)
        assert len(run) == 1 or (len(run) <= RUN_TEXTS and len(run) * longest <= RUN_TOKENS)


# the built graph


@pytest.fixture(scope="session")
def built(graphs: Path) -> Path:
    """The folder of the built fp32 graph."""
    return onnx_export.export(graphs).parent


def test_the_built_graph_gives_the_vectors_of_the_original(built):
    assert onnx_export.measure_agreement(built / "model.onnx") > 0.9999


def test_two_processes_that_build_at_once_leave_one_whole_graph(tmp_path):
    command = [sys.executable, "-m", "index.encoders.onnx_export", str(tmp_path)]
    builders = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [builder.communicate(timeout=60)[0] for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0]
    assert all("building" in lines or "is there" in lines for lines in said)
    assert [path.name for path in tmp_path.iterdir()] == [onnx_export.graph_folder_name("fp32")]
    assert onnx_export.is_intact(tmp_path / onnx_export.graph_folder_name("fp32"))
    assert (tmp_path / onnx_export.graph_folder_name("fp32") / "weights.bin").stat().st_mode & 0o777 == 0o644


def test_the_graph_that_set_up_built_is_used_without_writing(built, tmp_path):
    cache = tmp_path / "cache"
    assert onnx_export.find_graph("fp32", cache, installed=built.parent) == built / "model.onnx"
    assert not cache.exists()


def test_tests_copy_a_whole_graph_where_nothing_was_built_and_others_build(tmp_path):
    cache = tmp_path / "not/there"
    whole_graph(cache, tmp_path / "first")
    (cache / ".building-other").mkdir()
    for folder in (tmp_path / "first", whole_graph(cache, tmp_path / "second")):
        assert [path.name for path in folder.iterdir()] == [onnx_export.graph_folder_name("fp32")]
        assert onnx_export.is_intact(folder / onnx_export.graph_folder_name("fp32"))


def test_a_damaged_graph_is_built_again_in_another_process(built, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_export, "_build", lambda *_: pytest.fail("the memory of a build stays with this process"))
    copy = tmp_path / built.name
    shutil.copytree(built, copy)
    with (copy / "weights.bin").open("rb+") as stream:
        stream.seek(50_000_000)
        stream.write(b"\0\0\0\0\1\2\3")
    os.utime(tmp_path / built.name)
    (tmp_path / ".building-old").mkdir()
    os.utime(tmp_path / ".building-old", (0, 0))
    assert not onnx_export.is_intact(copy)
    assert onnx_export.find_graph("fp32", tmp_path, installed=tmp_path) == copy / "model.onnx"
    assert onnx_export.is_intact(copy)
    assert [path.name for path in tmp_path.iterdir()] == [built.name]


def test_a_graph_that_disagrees_with_the_original_is_refused(tmp_path, monkeypatch):
    tensors = onnx_graph.map_tensors

    def spoiled(file: Path) -> dict[str, np.ndarray]:
        found = tensors(file)
        found["encoder.layer.3.output.dense.weight"] = found["encoder.layer.3.output.dense.weight"] * 0.5
        return found

    monkeypatch.setattr(onnx_graph, "map_tensors", spoiled)
    with pytest.raises(Unavailable, match="does not give the model's vectors"):
        onnx_export.export(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_the_original_are_refused(tmp_path):
    source = onnx_export.model_folder()
    for file in onnx_export.SOURCE:
        (tmp_path / file).symlink_to(source / file)
    onnx_export.verify_files(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(Unavailable, match=r"config.json can't be read; reinstall"):
        onnx_export.verify_files(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(Unavailable, match=r"config.json is not the original; reinstall"):
        onnx_export.verify_files(tmp_path)


def test_a_cache_that_can_not_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable, match="state folder"):
        onnx_export.find_graph("fp32", tmp_path / "file", installed=tmp_path)


@pytest.mark.parametrize(
    ("code", "message", "retryable"),
    [
        (69, "no room", False),
        (75, "no room", True),
        (1, "the model's graph can't be built (no room)", True),
        (137, "the model's graph can't be built (its process ended with 137)", True),
    ],
)
def test_a_build_that_fails_is_unavailable_for_its_reason(tmp_path, monkeypatch, code, message, retryable):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{'echo begun; echo no room >&2; ' * (code != 137)}exit {code}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(Unavailable) as caught:
        onnx_export.find_graph("fp32", tmp_path / "cache", installed=tmp_path)
    assert (caught.value.message, caught.value.retryable) == (message, retryable)


@pytest.mark.parametrize(
    "config",
    [
        '{"architectures": ["XLMRobertaModel"], "hidden_act": "gelu"}',
        '{"architectures": ["BertModel"], "hidden_act": "relu"}',
        '{"architectures": ["BertModel"], "hidden_act": "gelu", "position_embedding_type": "relative_key"}',
    ],
)
def test_only_graphs_that_are_understood_are_built(tmp_path, config):
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(Unavailable, match="use a sentence-transformers encoder"):
        onnx_graph.read_shape(tmp_path / "config.json")


def test_a_graph_that_can_not_be_loaded_is_unavailable(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(Unavailable, match="remove its cache folder"):
        Graph(tmp_path / "model.onnx", onnx_export.read_tokenizer(), max_tokens=254)


@pytest.mark.slow
def test_int8_is_built_from_scratch(tmp_path):
    assert onnx_export.measure_agreement(onnx_export.export(tmp_path, "int8")) > onnx_export.CLOSE["int8"]
    assert {path.name for path in (tmp_path / onnx_export.graph_folder_name("int8")).iterdir()} == {
        "digest",
        "model.onnx",
        "weights.bin",
    }
