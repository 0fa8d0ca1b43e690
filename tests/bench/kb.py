"""The rows on the knowledge base: notes and files by way of the queue, searches meanwhile, and what a large upload holds."""

from __future__ import annotations

import base64
import io
import json
import random
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from tests.bench import vaults, yardsticks
from tests.bench.measure import ROOT, Daemon, beside_jobs, daemon, p50, p95, timed
from tests.bench.record import Row
from tests.bench.speed import fresh
from tests.bench.yardsticks import Beside, beside

FILES = ROOT / "tests/files"  # made by the usual programs
CHUNK = 1 << 20
CLIENTS = 4


def kb(work: Path) -> Iterator[Row]:
    """Notes to the queue, and what is asked of a knowledge base of 1,000 notes."""
    vault, state = fresh(work, "kb")
    vaults.make(vault, 1_000, words=150, captures=True)
    with daemon(vault, state, "--made-up") as one:
        one.settled()
        one.quiet()
        yield from beside_jobs(one, _notes(one))


def _notes(one: Daemon) -> Iterator[Row]:
    asked = vaults.questions(150)
    timed([lambda text=text: one.tool("kb_search", query=text) for text in asked[:20]])
    calls = [lambda text=text: one.tool("kb_search", query=text) for text in asked]
    yield _row("kb_search over MCP, 1,000 notes", beside(calls, yardsticks.query), 15, 40)
    ids = [hit["document_id"] for text in asked[:15] for hit in one.tool("kb_search", query=text)["results"]]
    calls = [lambda doc=doc: one.tool("kb_get", id=doc) for doc in ids[:150]]
    yield _row("kb_get over MCP", beside(calls, yardsticks.query))
    texts = [f"Captured at once, number {n}: the chimney was swept." for n in range(60)]
    calls = [lambda text=text: one.tool("capture_thought", content=text) for text in texts]
    yield _row("capture_thought, to compare", beside(calls, yardsticks.query))
    texts = [f"A note of its own, number {n}: the pump on the roof was replaced." for n in range(60)]
    calls = [lambda text=text: _note(one, text) for text in texts]
    yield _row("kb_addnote -> done, one after the other", beside(calls, yardsticks.query))
    with ThreadPoolExecutor(8) as pool:
        texts = [f"Sent with seven others, number {n}: the boiler hums again." for n in range(120)]
        spent = list(pool.map(lambda text: _note(one, text, 0.05), texts))
    yield _row("kb_addnote -> done, 8 clients at once", Beside(spent, [yardsticks.unit()], 0.0))


def files(work: Path, count: int = 1_000) -> Iterator[Row]:
    """Files of all types, while others search."""
    vault, state = fresh(work, "kb-files")
    vaults.make(vault, 1_000, words=150, captures=True)
    made = list(mixed(count))
    with daemon(vault, state) as one:
        one.settled()
        one.quiet()
        asked, jobs = vaults.questions(100), one.jobs()
        before = timed([lambda text=text: one.tool("kb_search", query=text) for text in asked])
        with watched(one) as peak, searching(one, asked) as meanwhile:
            begun = time.perf_counter()
            with ThreadPoolExecutor(CLIENTS) as pool:
                list(pool.map(lambda file: _sent(one, *file), made))
            accepted = time.perf_counter() - begun
            ended = _ended(one, len(made))
            seconds = time.perf_counter() - begun
        ran = one.jobs_since(jobs)
        note = f"{ended['done']} done, {ended['failed']} failed; accepted in {accepted:.0f} s"
        yield Row(
            f"{count:,} mixed files -> all done",
            "",
            f"{seconds:.0f} s, {len(made) / seconds:.1f} a second",
            None,
            note,
            {"wall of one": seconds * 1000 / len(made) / yardsticks.unit()},
            "one query encoding",
            ran,
        )
        figure = f"{peak.own:.0f} MB, converters {peak.children:.0f} MB"
        yield Row(
            "peak memory meanwhile", "<= 600 MB", figure, peak.own <= 600, f"{peak.start:.0f} MB before", jobs=ran
        )
        yield Row(
            "search meanwhile",
            "p95 <= 60 ms",
            f"{p50(meanwhile):.0f} / {p95(meanwhile):.0f} ms",
            p95(meanwhile) <= 60,
            f"{p50(before):.0f} / {p95(before):.0f} before",
            {"p50": p50(meanwhile) / p50(before), "p95": p95(meanwhile) / p95(before)},
            "the same search of an idle daemon",
            ran,
        )


def large(work: Path, size: int = 500_000_000) -> Iterator[Row]:
    """A large file in one piece, and chunk by chunk."""
    vault, state = fresh(work, "kb-large")
    with daemon(vault, state) as one:
        one.settled()
        one.tool("kb_search", query="warm")
        one.quiet()
        for way, send in (("in one piece", _whole), ("in chunks", _chunked)):
            jobs = one.jobs()
            with watched(one) as peak:
                begun = time.perf_counter()
                job = send(one, size)
                seconds = time.perf_counter() - begun
            grown = peak.own - peak.start
            figure = f"{grown:.0f} MB more, {size / 1e6 / seconds:.0f} MB/s"
            with watched(one) as peak:
                status = _done(one, job)
            note = f"then {status['status']}, at most {peak.own - peak.start:.0f} MB more, converter {peak.children:.0f} MB"
            ratio = seconds / size * 1e9 / yardsticks.unit(lambda: yardsticks.fsync(state.parent))
            yield Row(
                f"{size // 1_000_000} MB {way}",
                "<= 50 MB",
                figure,
                grown <= 50,
                note,
                {"wall of one MB": ratio},
                "one fsync",
                one.jobs_since(jobs),
            )


DENSE_SIZE = 4_000_000  # bytes: as much text as is kept of one file
DENSE: dict[str, Callable[[int], bytes]] = {  # 4 MB that are many tokens, paragraphs, links, tags or vectors
    "brackets.json": lambda size: b"[" * size,
    "words.txt": lambda size: " ".join(f"{n * 2_654_435_761 % 2**24:x}" for n in range(size // 7)).encode(),
    "paragraphs.md": lambda size: b"a\n\n" * (size // 3),
    "links.md": lambda size: b"[[a]] " * (size // 6),
    "headings.md": lambda size: "".join(f"# a{n}\n" for n in range(15_000)).encode() + b"a\n" * (size // 3),
    "table.csv": lambda size: (
        b",".join(b"c%d" % n for n in range(200)) + b"\n" + (b"7," * 199 + b"7\n") * (size // 400)
    ),
    "cjk.txt": lambda size: "".join(chr(0x4E00 + n * 7_919 % 20_000) for n in range(size // 3)).encode(),
}


DENSEST = ("cjk.txt", "words.txt", "table.csv")  # those that are taken in at once


def dense(work: Path) -> Iterator[Row]:
    """What the daemon holds while it takes in 4 MB of dense text: each kind alone, then three files at once."""
    vault, state = fresh(work, "kb-dense")
    target = "<= 64 MB, and given back"
    with daemon(vault, state, "--made-up") as one:
        one.settled()
        one.tool("kb_search", query="warm")
        _done(one, _sent(one, "warm.txt", b"A small file first."))
        one.quiet()
        start = one.rss
        _done(one, _sent(one, "chinese.txt", "我们今天讨论备份的计划。".encode()))
        one.quiet()
        yield Row("the first Chinese file: the dictionary of its words", "", f"{one.rss - start:.0f} MB, once", None)
        start = one.rss
        for name, make in DENSE.items():
            data, jobs = make(DENSE_SIZE), one.jobs()
            with watched(one) as peak:
                begun = time.perf_counter()
                status = _done(one, _sent(one, name, data), 0.1)["status"]
                seconds = time.perf_counter() - begun
            grown, kept = peak.own - peak.start, _left(one, peak.start)
            yield Row(
                f"4 MB of {name}",
                target,
                f"{grown:.0f} MB",
                grown <= 64,
                f"{kept:.0f} MB kept; {status}, {seconds:.0f} s",
                jobs=one.jobs_since(jobs),
            )
        for count in (2, 3):
            jobs = one.jobs()
            with watched(one) as peak:
                files = [(f"{count} {name}", DENSE[name](DENSE_SIZE) + b" " * count) for name in DENSEST[:count]]
                jobs = [_sent(one, *file) for file in files]
                ended = [_done(one, job, 0.1)["status"] for job in jobs]
            grown, kept = peak.own - peak.start, _left(one, start)
            note = f"{kept:.0f} MB kept of all so far; {', '.join(ended)}"
            ran = one.jobs_since(jobs)
            yield Row(f"{count} of them at once", target, f"{grown:.0f} MB", grown <= 64, note, jobs=ran)


def _nested(number: int) -> str:
    """About as many nested lists and quotes as are read of one body, in 100 KB."""
    return f"Nested lists of note {number}\n\n" + ("- > " * 14 + "a\n") * 1_700


def nested(work: Path) -> Iterator[Row]:
    """What the daemon holds while it takes in small captures that are many elements of Markdown: one, then several at once."""
    vault, state = fresh(work, "kb-nested")
    with daemon(vault, state, "--made-up") as one:
        one.settled()
        one.tool("kb_search", query="warm")
        _captured(one, (LINE * 1_300).decode())  # as large, without lists
        one.quiet()
        for count in (1, 2, 3, 8):
            jobs = one.jobs()
            with watched(one) as peak, ThreadPoolExecutor(count) as pool:
                begun = time.perf_counter()
                list(pool.map(partial(_captured, one), [_nested(10 * count + number) for number in range(count)]))
                seconds = time.perf_counter() - begun
                one.quiet()
            grown, kept = peak.own - peak.start, _left(one, peak.start)
            yield Row(
                f"{count} of 100 KB of nested lists at once" if count > 1 else "100 KB of nested lists",
                "<= 64 MB, and given back" if count <= 3 else "",
                f"{grown:.0f} MB",
                grown <= 64 if count <= 3 else None,
                f"{kept:.0f} MB kept; {seconds:.0f} s",
                jobs=one.jobs_since(jobs),
            )


def _captured(one: Daemon, text: str) -> None:
    one.rest("POST", "/capture", json={"content": text})


def _left(one: Daemon, before: float, within: float = 40.0) -> float:
    """MB more than `before`, once maintenance has given back what it can."""
    one.quiet()
    end = time.monotonic() + within
    while one.rss - before > 16 and time.monotonic() < end:
        time.sleep(1)
    return one.rss - before


def _row(name: str, spent: Beside, most50: float = 0, most95: float = 0) -> Row:
    half, most = p50(spent.calls), p95(spent.calls)
    return Row(
        name,
        f"p50 <= {most50}, p95 <= {most95} ms" if most50 else "",
        f"p50 {half:.0f}, p95 {most:.0f} ms",
        half <= most50 and most <= most95 if most50 else None,
        f"one encoding {spent.unit:.2f} ms",
        spent.ratios,
        "one query encoding",
    )


def _note(one: Daemon, text: str, pause: float = 0.005) -> float:
    """Milliseconds from the call until its job is done."""
    begun = time.perf_counter()
    _done(one, one.tool("kb_addnote", text=text)["job_id"], pause)
    return (time.perf_counter() - begun) * 1000


def _done(one: Daemon, job: str, pause: float = 0.005) -> dict[str, Any]:
    """A job that has ended."""
    while True:
        (told,) = one.tool("kb_jobs", job_id=job)["jobs"]
        if told["status"] in ("done", "failed"):
            return dict(told)
        time.sleep(pause)


def _ended(one: Daemon, jobs: int) -> dict[str, int]:
    """What became of all jobs, once none is left."""
    while True:
        told = one.rest("GET", "/api/v1/status")["queue"]
        if told["done"] + told["failed"] >= jobs:
            return dict(told)
        time.sleep(0.25)


def _sent(one: Daemon, name: str, data: bytes) -> str:
    return str(one.rest("POST", "/api/v1/jobs", files={"file": (name, data)})["job_id"])


class Endless(io.RawIOBase):
    """So many bytes of text, made as they are read."""

    def __init__(self, size: int) -> None:
        self.left = size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        size = min(self.left, CHUNK if size < 0 else size)
        self.left -= size
        return (LINE * (size // len(LINE) + 1))[:size]


LINE = b"The water level of the reservoir was read at noon and written into the book.\n"


def _whole(one: Daemon, size: int) -> str:
    return str(one.rest("POST", "/api/v1/jobs", files={"file": ("level.txt", Endless(size))})["job_id"])


def _chunked(one: Daemon, size: int) -> str:
    upload = one.tool("kb_upload_start", filename="level 2.txt", total_size=size)["upload_id"]
    source = Endless(size)
    index = 0
    while data := source.read(CHUNK):
        one.tool("kb_upload_chunk", upload_id=upload, chunk_index=index, data=base64.b64encode(data).decode())
        index += 1
    return str(one.tool("kb_upload_finish", upload_id=upload)["job_id"])


@dataclass
class Peak:
    """The most memory that was resident at once, in MB."""

    start: float
    own: float = 0.0
    children: float = 0.0


@contextmanager
def watched(one: Daemon) -> Iterator[Peak]:
    """Look at the memory of the daemon and of its children, 50 times a second."""
    peak, over = Peak(one.rss, one.rss), threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            peak.own = max(peak.own, one.rss)
            children = 0.0
            for child in one.process.children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    children += child.memory_info().rss / 1e6
            peak.children = max(peak.children, children)

    with _beside(look, over):
        yield peak


@contextmanager
def searching(one: Daemon, asked: list[str]) -> Iterator[list[float]]:
    """Search five times a second; the milliseconds of each."""
    spent: list[float] = []
    over = threading.Event()

    def search() -> None:
        number = 0
        while not over.wait(0.2):
            text = asked[number % len(asked)]
            spent.extend(timed([lambda text=text: one.tool("kb_search", query=text)]))
            number += 1

    with _beside(search, over):
        yield spent


@contextmanager
def _beside(work: Callable[[], None], over: threading.Event) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass
class Made:
    """Files made from those of the usual programs, no two alike."""

    rng: random.Random = field(default_factory=lambda: random.Random(3))
    words: tuple[list[str], list[int]] = field(default_factory=vaults.vocabulary)

    def text(self, length: int) -> str:
        return vaults.text(self.rng, *self.words, length)

    def file(self, kind: str, number: int) -> bytes:
        match kind:
            case "md" | "txt":
                return self.text(300).encode()
            case "html":
                body = "".join(f"<p>{line}</p>" for line in self.text(300).split("\n") if line)
                return f"<html><head><title>Page {number}</title></head><body>{body}</body></html>".encode()
            case "csv":
                rows = [f"{n},{self.rng.choice(self.words[0])},{self.rng.randint(1, 999)}" for n in range(60)]
                return ("number,word,value\n" + "\n".join(rows) + "\n").encode()
            case "json":
                return json.dumps({word: self.text(12) for word in self.rng.sample(self.words[0], 20)}).encode()
            case "pdf":
                return (FILES / "report.pdf").read_bytes() + f"\n% {number}\n".encode()
        return _repacked(FILES / OFFICE[kind], number)


OFFICE = {"docx": "report.docx", "xlsx": "sheet.xlsx", "pptx": "talk.pptx"}
KINDS = ("md", "txt", "html", "csv", "json", "pdf", *OFFICE)


def _repacked(path: Path, number: int) -> bytes:
    """An office file that differs from all others by a comment."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for info in source.infolist():
            target.writestr(info, source.read(info))
        target.comment = f"number {number}".encode()
    return out.getvalue()


def mixed(count: int) -> Iterator[tuple[str, bytes]]:
    """So many files of all kinds in turn: name and bytes."""
    made = Made()
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        yield f"File {number}.{kind}", made.file(kind, number)
