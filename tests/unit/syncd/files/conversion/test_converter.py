"""The child that reads a file is bounded and leaves nothing behind, whatever the file does."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import psutil
import pytest

from index.errors import MemexError, Unavailable
from syncd.documents.file_types import DOCX, PDF, PPTX, TEXT, XLSX, media_type_of
from syncd.files.conversion import converter
from syncd.files.conversion.converter import Limits, convert, probe_layers
from syncd.files.conversion.sandbox_layers import NEED_SANDBOX
from tests.support.paths import FILES, ROOT
from tests.support.sample_files import bomb, docx, paragraph, pdf

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at the child in /proc")

LONG = "The harbour master writes each reading into a ledger which is kept in the tower."


@pytest.fixture(scope="module")
def big(tmp_path_factory) -> Path:
    """A PDF of 2,000 pages that takes seconds to read."""
    file = tmp_path_factory.mktemp("big") / "big.pdf"
    drawn = "".join(f"BT /F1 9 Tf 40 {800 - 12 * i} Td ({LONG} {i}) Tj ET\n" for i in range(60))
    file.write_bytes(pdf([zlib.compress(drawn.encode())] * 2_001))
    return file


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    """After each test there is no process of ours and no file that was not there."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    before = set(psutil.Process().children(recursive=True))
    yield
    assert set(psutil.Process().children(recursive=True)) <= before
    assert list(place.iterdir()) == []


def read(path: Path, limits: Limits | None = None, stopping: threading.Event | None = None):
    with path.open("rb") as file:
        kind = media_type_of(path.name, file.read(65_536))
    return convert(limits or Limits(), path, kind, stopping or threading.Event())


def refused(path: Path, limits: Limits | None = None) -> MemexError:
    with pytest.raises(MemexError) as error:
        read(path, limits)
    return error.value


class Background(threading.Thread):
    """A conversion that is under way; `child` is its process."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        super().__init__()
        self.path, self.limits, self.stopping = path, limits, threading.Event()
        self.error: MemexError | None = None
        self.found = None
        before = set(psutil.Process().children())
        self.start()
        self.child = next(iter(_until(lambda: set(psutil.Process().children()) - before)))

    def run(self) -> None:
        try:
            self.found = read(self.path, self.limits, self.stopping)
        except MemexError as error:
            self.error = error


def _until(true, within: float = 60.0):
    end = time.monotonic() + within
    while not (value := true()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return value


def _busy(child: psutil.Process) -> bool:
    """Whether the child is past its own preparations: it has used the second of CPU that those take."""
    return sum(child.cpu_times()[:2]) > 0.6


# Limits


def test_a_long_file_ends_at_the_time_limit_and_a_plain_one_is_read(tmp_path, big):
    begun = time.monotonic()
    error = refused(big, Limits(seconds=1))
    assert time.monotonic() - begun < 10
    assert (error.code, error.details, error.retryable) == ("RESOURCE_EXHAUSTED", {"limit": "seconds"}, False)
    assert error.message == "reading the file takes longer than 1 s"


@pytest.mark.slow
def test_a_stream_that_grows_ends_at_the_memory_limit(tmp_path):
    (tmp_path / "bomb.pdf").write_bytes(pdf([bomb(300 << 20)]))
    error = refused(tmp_path / "bomb.pdf", Limits(memory=100 << 20))
    assert (error.code, error.details) == ("RESOURCE_EXHAUSTED", {"limit": "memory"})


def test_pages_beyond_the_limit_are_left_out_and_told(tmp_path):
    (tmp_path / "three.pdf").write_bytes(pdf(["One.", "Two.", "Three."]))
    found = read(tmp_path / "three.pdf", Limits(pages=2))
    assert (found.text, found.pages, found.cut) == ("One.\n\nTwo.\n", 3, True)
    assert found.warnings == ("the first 2 of 3 pages were read",)


def test_text_beyond_the_limit_is_cut_between_paragraphs(tmp_path):
    (tmp_path / "long.docx").write_bytes(docx("".join(paragraph(f"Absatz {i} für Wörter") for i in range(500))))
    found = read(tmp_path / "long.docx", Limits(text=1_000))
    assert found.cut
    assert 900 < len(found.text.encode()) <= 1_001
    assert found.text.endswith(" für Wörter\n")


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("frames.html", b"<html><frameset cols='*'><frame src='a.html'></frameset></html>"),
        ("blank.docx", docx("<w:p/>")),
        ("blank.csv", b"\n \n"),
        ("blank.txt", b" \n"),
    ],
)
def test_a_file_without_text_says_so(tmp_path, name, raw):
    (tmp_path / name).write_bytes(raw)
    found = read(tmp_path / name)
    assert (found.text.strip(), found.warnings) == ("", ("the file contains no text",))


HOSTILE = {
    "page.html": (
        '<p><a href="&#1;javascript:alert(1)">one</a> <a href="shell:x">two</a> <a href="https://e.example/">three</a></p>'
        "<pre><code class='language-dataviewjs'>dv.list()</code></pre><p><code>$= dv.x</code> &lt;% y %&gt;</p>"
    ),
    "notes.txt": "[one](&#1;javascript:x) [two](shell:x) [three](https://e.example/)\n\n```dataviewjs\ndv.list()\n```\n\n`$= dv.x` <% y %>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_read_leads_nowhere_but_to_the_web_and_runs_nothing(tmp_path, name):
    (tmp_path / name).write_text(HOSTILE[name])
    text = read(tmp_path / name).text
    assert "[three](https://e.example/)" in text
    assert all(word in text for word in ("one", "two", "dv.list()", "y %"))
    assert not any(word in text.lower() for word in ("javascript:", "shell:", "dataviewjs", "`$=", "<%"))
    (tmp_path / "own.md").write_text(HOSTILE["notes.txt"])
    assert read(tmp_path / "own.md").text == HOSTILE["notes.txt"]  # it becomes a note, byte for byte


@pytest.mark.slow
def test_a_document_that_is_nested_without_end_is_refused(tmp_path):
    deep = 20_000
    (tmp_path / "deep.docx").write_bytes(docx("<w:sdt><w:sdtContent>" * deep + "</w:sdtContent></w:sdt>" * deep))
    assert refused(tmp_path / "deep.docx").code in ("RESOURCE_EXHAUSTED", "INVALID_ARGUMENT")
    (tmp_path / "deep.html").write_text("<div>" * 40_000 + "bottom")
    (tmp_path / "deep.json").write_text("[" * 200_000)
    for name in ("deep.html", "deep.json"):
        try:
            assert len(read(tmp_path / name).text) < 1_000_000
        except MemexError as error:
            assert error.code in ("RESOURCE_EXHAUSTED", "INVALID_ARGUMENT")


# The child's place


def test_the_child_is_confined(big, monkeypatch):
    monkeypatch.setenv("MEMEX_TEST_SECRET", "do not tell")
    kept = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(kept, True)
    try:
        under_way = Background(big)
        child = under_way.child
        _until(lambda: _busy(child))
        place = Path(f"/proc/{child.pid}")
        environment = (place / "environ").read_text()
        links = {int(fd.name): str(fd.readlink()) for fd in (place / "fd").iterdir()}
        limits = (place / "limits").read_text()
        status = (place / "status").read_text()
        cwd = str((place / "cwd").readlink())
        nets = [Path(f"/proc/{who}/ns/net").readlink() for who in (child.pid, "self")]
        session, nice = os.getsid(child.pid), child.nice()
    finally:
        under_way.stopping.set()
        under_way.join()
        os.close(kept)
    assert "MEMEX_TEST_SECRET" not in environment
    assert str(Path.home()) not in environment.split("PYTHONPATH")[0]
    assert re.fullmatch(r"/.*/memex-\w+/copy \(deleted\)", links.pop(0))
    assert all(link.startswith("pipe:") for link in links.values()), links
    assert cwd.endswith("(deleted)")
    assert session == child.pid
    assert nice >= 10
    told = {line[:25].strip(): line[26:].split()[:2] for line in limits.splitlines()[1:]}
    assert told["Max file size"] == ["0", "0"]
    assert told["Max core file size"] == ["0", "0"]
    assert told["Max open files"][1] == "64"
    assert told["Max cpu time"] == ["120", "121"]
    assert int(told["Max address space"][1]) == 2 << 30
    assert "NoNewPrivs:\t1" in status
    assert "CapEff:\t0000000000000000" in status
    assert "Seccomp:\t2" in status
    if subprocess.run(["unshare", "-Un", "true"], check=False, capture_output=True).returncode == 0:
        assert nets[0] != nets[1]


def test_the_child_gets_a_copy_that_nobody_can_change_and_that_has_no_path(tmp_path):
    data = os.urandom(3_000_000)
    (tmp_path / "a file").write_bytes(data)
    place = Path(tempfile.mkdtemp())
    with (tmp_path / "a file").open("rb") as file:
        copy = converter._copy_nameless(file.fileno(), str(place), threading.Event())
    try:
        with pytest.raises(OSError):
            os.write(copy, b"x")
        with pytest.raises(OSError):
            os.ftruncate(copy, 0)
        assert os.pread(copy, len(data) + 1, 0) == data
        assert os.lseek(copy, 0, os.SEEK_CUR) == 0
        name = str(Path(f"/proc/self/fd/{copy}").readlink())
        assert str(tmp_path / "a file") not in name
        assert name.endswith("(deleted)")
    finally:
        os.close(copy)
        place.rmdir()


@pytest.mark.slow
def test_an_answer_waits_on_the_disk_until_there_is_room_for_it(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("long " * 400_000)
    met: list[tuple[int, int]] = []

    def wait_for_room(size):
        met.append((size, tracemalloc.get_traced_memory()[0]))

    def refuse(_size):
        raise Unavailable("the daemon is stopping")

    tracemalloc.start()
    try:
        assert convert(Limits(), file, TEXT, threading.Event(), wait_for_room).text == file.read_text()
    finally:
        tracemalloc.stop()
    ((size, memory),) = met
    assert 2_000_000 < size < 2_001_000
    assert memory < 1_000_000
    with pytest.raises(Unavailable, match="is stopping"):
        convert(Limits(), file, TEXT, threading.Event(), refuse)


@pytest.mark.parametrize(
    ("code", "why"), [(errno.ENOSPC, "the disk for temporary files is full"), (errno.EMFILE, "could not be started")]
)
def test_a_full_disk_for_temporary_files_is_named(tmp_path, monkeypatch, code, why):
    def fail(*_):
        raise OSError(code, "words")

    monkeypatch.setattr(converter, "_copy_nameless", fail)
    (tmp_path / "a.txt").write_text("words")
    with pytest.raises(Unavailable, match=why):
        convert(Limits(), tmp_path / "a.txt", TEXT, threading.Event())


def test_a_stop_ends_the_copying_of_a_file(tmp_path):
    (tmp_path / "a.pdf").write_bytes(pdf(["One."]))
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(Unavailable, match="stopping"):
        read(tmp_path / "a.pdf", stopping=stopping)


WITHOUT = """
import json, sys, threading
from dataclasses import asdict
from pathlib import Path
from index.errors import MemexError
from syncd.documents.file_types import HEAD, media_type_of
from syncd.files.conversion.converter import Limits, convert, probe_layers
from tests.support.sandbox_attempts import _refuse_calls
_refuse_calls([sys.argv[1]])
told = {"layers": asdict(probe_layers())}
for name in sys.argv[3:]:
    path = Path(name)
    try:
        kind = media_type_of(path.name, path.read_bytes()[:HEAD])
        told[path.suffix] = convert(Limits(unconfined=sys.argv[2] == "preferred"), path, kind, threading.Event()).text
    except MemexError as error:
        told[path.suffix] = error.as_dict()
print(json.dumps(told))
"""
NEEDY = ("report.pdf", "report.docx", "talk.pptx", "sheet.xlsx")
PLAIN = ("src/report.md", "src/letter.txt", "semicolons.csv", "src/tides.json", "report.html")


def read_without(call: str, confined: str, names: tuple[str, ...] = (*NEEDY, *PLAIN)) -> dict[str, Any]:
    """What comes of files of these types where the system refuses `call`, as one without that layer does."""
    files = [str(FILES / name) for name in names]
    environ = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": tempfile.gettempdir()}
    command = [sys.executable, "-c", WITHOUT, call, confined, *files]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize(
    ("call", "layer"),
    [
        pytest.param("landlock_create_ruleset", "Landlock", id="Landlock"),
        pytest.param("prctl=22", "seccomp", id="seccomp", marks=pytest.mark.slow),
    ],
)
def test_without_a_layer_pdf_and_office_files_are_refused_and_others_read(call, layer):
    told = read_without(call, "required", (*NEEDY, "src/letter.txt"))
    assert told["layers"]["landlock" if layer == "Landlock" else "seccomp"] in (0, False)
    for ending in (".pdf", ".docx", ".pptx", ".xlsx"):
        assert told[ending]["code"] == "UNAVAILABLE"
        assert layer in told[ending]["message"]
        assert "set kb.confined to preferred" in told[ending]["message"]
        assert not told[ending].get("retryable")
    assert told[".txt"]
    assert isinstance(told[".txt"], str)
    assert {PDF, DOCX, PPTX, XLSX} == NEED_SANDBOX


@pytest.mark.parametrize("call", [pytest.param("landlock_create_ruleset", marks=pytest.mark.slow), "prctl=22"])
def test_without_a_layer_all_files_are_read_where_the_sandbox_is_preferred(call):
    told = read_without(call, "preferred", NEEDY)
    assert all(isinstance(text, str) and text for name, text in told.items() if name != "layers")


@pytest.mark.slow
def test_without_namespaces_all_files_are_read_and_the_namespace_is_not_reported():
    told = read_without("unshare", "required")
    assert told.pop("layers") == {"landlock": probe_layers().landlock, "seccomp": True, "network_namespace": False}
    assert all(isinstance(text, str) and text for text in told.values())


def test_no_reader_has_a_second_thread_that_the_sandbox_would_not_hold():
    code = (
        "import os; from syncd.files.conversion import converter_child as child\n"
        "for kind in child.READERS: child._load_reader(kind)\n"
        "print(len(os.listdir('/proc/self/task')))"
    )
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_a_stop_ends_the_child_at_once(big):
    under_way = Background(big)
    _until(lambda: _busy(under_way.child))
    begun = time.monotonic()
    under_way.stopping.set()
    under_way.join(60)
    assert time.monotonic() - begun < 2
    assert (under_way.error.code, under_way.error.retryable) == ("UNAVAILABLE", True)
    assert not under_way.child.is_running()


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_reader_that_crashes_says_that_the_file_is_damaged(big, number):
    under_way = Background(big)
    under_way.child.send_signal(number)
    under_way.join(60)
    assert (under_way.error.code, under_way.error.retryable) == ("INVALID_ARGUMENT", False)
    assert under_way.error.message == "the file is damaged: it is not a readable PDF file"


def test_a_child_outlives_its_parent_by_a_moment(big, tmp_path):
    told = f"""
import sys, threading
from pathlib import Path
from syncd.files.conversion.converter import Limits, convert
print("begun", flush=True)
convert(Limits(), Path({str(big)!r}), "application/pdf", threading.Event())
"""
    environ = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": tempfile.gettempdir()}
    parent = subprocess.Popen([sys.executable, "-c", told], env=environ, stdout=subprocess.PIPE)
    try:
        assert parent.stdout.readline() == b"begun\n"
        child = _until(lambda: next(filter(_busy, psutil.Process(parent.pid).children()), None))
    finally:
        parent.kill()
        parent.communicate()
    _until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_a_child_that_can_not_be_started_can_be_asked_again(tmp_path, monkeypatch):
    (tmp_path / "a.pdf").write_bytes(pdf(["one"]))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no python"))
    with pytest.raises(Unavailable) as error:
        read(tmp_path / "a.pdf")
    assert error.value.retryable


def test_what_is_no_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.pdf")
    (tmp_path / "real.pdf").write_bytes(pdf(["one"]))
    (tmp_path / "link.pdf").symlink_to(tmp_path / "real.pdf")
    for name in ("pipe.pdf", "link.pdf", "gone.pdf", "."):
        with pytest.raises(MemexError) as error:
            convert(Limits(), tmp_path / name, "application/pdf", threading.Event())
        assert str(tmp_path) not in json.dumps(error.value.as_dict())


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (-signal.SIGXCPU, b"", ("RESOURCE_EXHAUSTED", False)),
        (-signal.SIGABRT, b"memory allocation of 4096 bytes failed\n", ("RESOURCE_EXHAUSTED", False)),
        (1, b"Traceback (most recent call last):\nMemoryError\n", ("RESOURCE_EXHAUSTED", False)),
        (1, b"ModuleNotFoundError: No module named 'mammoth'\n", ("UNAVAILABLE", False)),
        (1, b"ValueError: what the file says\n", ("INVALID_ARGUMENT", False)),
        (-signal.SIGSEGV, b"", ("INVALID_ARGUMENT", False)),
        (0, b"", ("INVALID_ARGUMENT", False)),
    ],
)
def test_how_the_child_ended_tells_what_was_wrong(code, said, expected):
    error = converter._explain_failure(code, said, "PDF", Limits())
    assert (error.code, error.retryable) == expected
    assert "what the file says" not in error.message


def test_of_what_the_child_complains_only_its_kind_is_told():
    assert (
        converter._exception_name(b"Traceback\n  ...\nlxml.etree.XMLSyntaxError: secret words\n")
        == "lxml.etree.XMLSyntaxError"
    )
    assert converter._exception_name(b"thread 'main' panicked at secret words\n") == ""
