"""index/encoders/bundled_model.py: what it promises, held on the real thing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.encoders import bundled_model
from index.encoders.bundled_files import GraphName
from index.encoders.bundled_model import BundledEncoder
from index.encoders.bundled_tokenizer import load_tokenizer
from index.encoders.onnx_session import RUN_TEXTS, RUN_TOKENS, Graph, multiplies_blocks_fast, split_into_runs
from index.encoders.settings import SAMPLE, BundledSettings
from index.errors import Unavailable
from index.foreground import SHORT_S, Foreground, count_cores, foreground
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        "onnx_session",
        "bundled_model",
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


def test_a_bulk_gives_way_between_two_runs_and_other_work_does_not(bundled, monkeypatch):
    waits = []
    monkeypatch.setattr(Foreground, "give_way", lambda _, seconds: waits.append(seconds))
    texts = [f"note {number} about the weir" for number in range(3 * RUN_TEXTS)]
    plain = encode(bundled, texts)
    assert waits == []
    with foreground.bulk(True):
        assert np.array_equal(encode(bundled, texts), plain)
        assert waits == [SHORT_S] * 3
        encode(bundled, texts, urgent=True)
    encode(bundled, texts)
    assert waits == [SHORT_S] * 3


def test_both_lanes_give_the_same_unit_vectors(bundled):
    backlog, urgent = encode(bundled, TEXTS), encode(bundled, TEXTS, urgent=True)
    assert backlog.shape == (len(TEXTS), bundled.dimensions) == (len(TEXTS), 384)
    assert backlog.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(backlog, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(backlog, urgent, atol=1e-5)
    assert encode(bundled, []).shape == (0, 384)


@pytest.mark.skipif(count_cores() == 1, reason="there is no second core")
def test_a_call_that_runs_alone_encodes_in_two_threads():
    others, done = threading.Event(), []

    def work(run):
        if run == 1:
            assert others.wait(10)
        done.append((run, threading.get_ident()))
        if run == 3:
            others.set()

    with foreground.call():
        BundledEncoder._share(work, [1, 2, 3])
    assert [run for run, _ in done] == [2, 3, 1]
    assert len({thread for _, thread in done}) == 2
    BundledEncoder._share(work, [])
    BundledEncoder._share(work, [2])
    assert done[-1] == (2, threading.get_ident())


@pytest.mark.parametrize(("name", "least"), [("fp32", 0.99999), ("blocks", 0.999)])
def test_a_text_has_the_same_vector_alone_and_beside_others(name, least):
    graph = bundled_model.load_graph(name)
    alone = np.concatenate([graph.compute_vectors([text]) for text in TEXTS])
    assert (graph.compute_vectors(TEXTS) * alone).sum(axis=1).min() > least


def test_tokens_are_counted_without_specials_and_never_cut(bundled):
    assert bundled.count_tokens([]) == []
    assert bundled.count_tokens(["", "the cat", "word " * 1000]) == [0, 2, 1000]


def test_a_text_is_read_to_its_last_allowed_token_and_no_further(bundled):
    full = "word " * (bundled.max_tokens - 1)
    end, beyond = encode(bundled, [full + "cat", full + "cat dog"])
    np.testing.assert_allclose(end, beyond, atol=1e-6)
    assert encode(bundled, [full + "dog"])[0] @ end < 0.9999


@pytest.mark.slow
def test_threads_share_the_model_without_disturbing_each_other(bundled):
    texts = [f"{'word ' * (n % 40)}{n}" for n in range(40)]
    expected = encode(bundled, texts)
    wrong: list[float] = []

    def ask(urgent: bool) -> None:
        found = np.abs(encode(bundled, texts, urgent=urgent) - expected).max()
        counted = bundled.count_tokens(texts) == [n % 40 + 1 for n in range(40)]
        if found > 1e-5 or not counted:
            wrong.append(float(found))

    threads = [threading.Thread(target=ask, args=(n % 2 == 0,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_int8_is_near_but_of_another_identity(bundled):
    small = BundledEncoder(BundledSettings("int8"), threads=1)
    cosines = (encode(small, TEXTS) * encode(bundled, TEXTS)).sum(axis=1)
    assert cosines.min() > 0.9
    assert small.identity != bundled.identity
    assert "int8" in small.name
    small.close()


def test_a_closed_encoder_says_so():
    made = BundledEncoder(BundledSettings(), threads=1)
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


@given(st.lists(st.integers(1, 256), max_size=60), st.integers(1, 2))
def test_runs_hold_every_text_once_and_stay_small(lengths, threads):
    cut = split_into_runs(lengths, threads)
    assert sorted(row for run in cut for row in run) == list(range(len(lengths)))
    for run in cut:
        longest = max(lengths[row] for row in run)
        assert len(run) == 1 or (len(run) <= RUN_TEXTS and len(run) * longest <= RUN_TOKENS)
    assert len(cut) >= min(threads, len(lengths))


# The files


REFERENCE = {  # what sentence-transformers makes of these texts in fp32, as signed bytes
    SAMPLE: bundled_model.REFERENCE,
    "The daemon keeps the index true to the vault, whatever Git, an editor or a phone does to its files.": (
        ">k8ryH_rb1Q}GjRG19fX(;XS`{tF-X^z6ai@&EY}?lJXJ`^Ulu4+Qc73hd9^)(Pq$|5xKl@g@5sC}hd_G#xAvLxmdd(*yb(%@gL`"
        "8tPZ?=q@20EjBaY|JL{g^&$B2-0s{7DC{Kh>kI_%873$^_(a+pIvyL>u?qzNI{XFj>g4eH`X&Dt^7;7k^Exle0zc>4Lg(b@0{+<c"
        "9_t1i-}dD9C+G0+{{$802R9Qd>IB>uBgG#bBkKhY`}hP088^}874rJm#v8uN@5KNqB`75d1l%<U^XlvX|AFZP;PBMs;S=a5|NQy|"
        "@W|>h&c`!H{P+F@BeWUX#K-&M2=vt#2pGx>@CE`d^5#PSNB9pU@*VaAR`sz8;pG`6y97qMH0tf+7rFc6`z_<>0P^=A@Dl0w>ir7<"
        "133LJ8PhLA^x-|(!}u!@9R}_I@*NT5@ghnx;Y2~t5(Csg{LLZ|2ID0Yw&EP{C+hIP?I~aDJoz~i`sFVF"
    ),
    "Größe, naïve café, 日本語, Ελληνικά: 42 % of 1,000 notes (see https://example.org)?!": (
        "|MU6qw*4p_9PT~w;Q$NOUG3@L?C)6{Wgi&F1lizHT;e7n6`MFlt`z_x07cO~=Pbbm_WTps1|jYF72o?UxB%k^rX~#qG8O8~+OXor"
        "4G#YX?&m4+H{KNN-~!W63IX{p=0I*d*WuD3^ttoO4(=YgciU22H8t-G(pd)p3me1j^R?w2+}iF8DK!BbC}%1BIT$_c0xU7>4f_NB"
        "4V=&p@bek^t{N{5-9hgRNYuH++-D0BC{Y62$X^262?odk6A{_rF$Ty448s!?$GjHp@)<|Z3=g~uHLjxo>hiio$$!R4@<rtWA?>Wf"
        "H$e3S-T=}(DGAv5m+RE83I7gC3pc++2lnki662^D$Hgb_1kDB{`1;QjASVPwJJ#DR6AdI5?*!H%0PX+?9{c(2H{Rz25*E)h;SVwZ"
        "^6dZy7>W<;;1vWHgcR-oA|>}6TQnA?;_@h6_l4Q*)AAT6t{Big)t~F>?&Qw$F6zD^4f^jV3+~VoOeFOO"
    ),
}


@pytest.mark.parametrize("name", get_args(GraphName))
def test_a_graph_gives_the_vectors_of_the_original(name):
    graph = bundled_model.load_graph(name)
    assert bundled_model.measure_agreement(graph, REFERENCE) > bundled_model.CLOSE[name]


def test_a_runtime_that_gives_other_vectors_is_refused(monkeypatch):
    texts = list(REFERENCE)
    monkeypatch.setattr(bundled_model, "REFERENCE", REFERENCE[texts[1]])
    with pytest.raises(Unavailable, match="the fp32 graph does not give the model's vectors on this machine"):
        BundledEncoder(BundledSettings(), threads=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fast", "precision", "name"),
    [(True, "fp32", "blocks"), (False, "fp32", "fp32"), (True, "int8", "int8"), (False, "int8", "int8")],
)
def test_the_processor_chooses_the_graph_and_the_identity_stays(monkeypatch, bundled, fast, precision, name):
    monkeypatch.setattr(bundled_model, "multiplies_blocks_fast", lambda: fast)
    encoder = BundledEncoder(BundledSettings(precision), threads=1)
    assert np.array_equal(encode(encoder, TEXTS), bundled_model.load_graph(name).compute_vectors(TEXTS))
    assert (encoder.identity == bundled.identity) == (precision == "fp32")
    encoder.close()


def test_fp32_replaces_blocks_that_give_other_vectors(monkeypatch, caplog):
    monkeypatch.setattr(bundled_model, "multiplies_blocks_fast", lambda: True)
    monkeypatch.setitem(bundled_model.CLOSE, "blocks", 1.1)
    encoder = BundledEncoder(BundledSettings(), threads=1)
    assert np.array_equal(encode(encoder, TEXTS), bundled_model.load_graph("fp32").compute_vectors(TEXTS))
    assert "the blocks graph does not give the model's vectors" in caplog.text
    encoder.close()


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no file that lists the processor's features")
@pytest.mark.parametrize(
    ("line", "fast"),
    [
        ("flags\t\t: fpu avx2 avx_vnni fma", True),
        ("flags\t\t: fpu avx2 avx512f avx512_vnni", True),
        ("Features\t: fp asimd asimddp", True),
        ("flags\t\t: fpu avx2 avx512f fma", False),
        ("Features\t: fp asimd", False),
        ("model name\t: avx_vnni", False),
        ("", False),
    ],
)
def test_blocks_are_fast_where_the_processor_has_dot_products_of_8_bit_numbers(tmp_path, line, fast):
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{line}\nbogomips\t: 1\n")
    assert multiplies_blocks_fast(tmp_path / "cpuinfo") == fast
    assert not multiplies_blocks_fast(tmp_path / "missing")


def test_a_graph_that_can_not_be_loaded_is_unavailable(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(Unavailable, match="reinstall Memex"):
        Graph(tmp_path / "model.onnx", load_tokenizer(), max_tokens=254)
