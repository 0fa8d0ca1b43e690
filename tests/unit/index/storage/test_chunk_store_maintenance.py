"""Maintenance of the chunk store changes no answer and removes what is old, on real LanceDB databases."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import threading
import time

import psutil
import pytest

from index import store_failures
from index.errors import MemexError, Unavailable
from index.model import Filter
from index.storage import chunk_store, lancedb_table
from index.storage.chunk_store import ChunkStore
from tests.support.chunk_rows import ALL, found, near, row, unit
from tests.support.index_dump import dump_store
from tests.support.paths import ROOT
from tests.support.shifted_clock import Clock
from tests.support.until import until


@pytest.mark.slow
def test_maintenance_changes_no_answer_and_removes_what_is_old(store):
    for n in range(60):
        store.replace({f"d{n % 20}": [row(f"d{n % 20}", k, f"word{n % 20} take {n} part {k}") for k in range(2)]})
    before, files = dump_store(store, vectors=True), sum(1 for _ in store._table.folder.rglob("*"))
    words, vector = found(store, "word7"), near(store, "word7 take 47 part 1")
    store.maintain()
    assert dump_store(store, vectors=True) == before
    assert found(store, "word7") == words and near(store, "word7 take 47 part 1")[0] == vector[0] == "d7"
    assert sum(1 for _ in store._table.folder.rglob("*")) < files / 4
    store.replace({"d7": [row("d7", 0, "afterwards")]})
    assert found(store, "afterwards") == ["d7"] and store.count() == 39


def test_maintenance_creates_the_indices_that_a_new_store_does_not_need_yet(store):
    def names():
        table = store._run(store._table._db.open_table("chunks"))
        return {index.name for index in store._run(table.list_indices())}

    assert names() == {"text_idx"}
    store.replace({"a": [row("a", 0, "words")]})
    store.maintain()
    assert names() == {f"{column}_idx" for column in lancedb_table.INDICES}


def test_a_large_store_gets_a_vector_index_that_finds_what_a_scan_finds(store, monkeypatch):
    monkeypatch.setattr("index.storage.maintenance_policy.SCAN", 500)
    store.replace(
        {f"d{n}": [row(f"d{n}", k, f"text {n} {k}", workspace=f"w{n % 4}") for k in range(4)] for n in range(250)}
    )
    questions = [f"question {n}" for n in range(20)]
    exact = [near(store, question, pool=30)[:10] for question in questions]
    store.maintain()
    assert store._table.kind == "sq"
    shared = sum(
        len(set(near(store, question, pool=30)[:10]) & set(ids)) for question, ids in zip(questions, exact, strict=True)
    )
    assert shared >= 0.99 * sum(len(set(ids)) for ids in exact)
    assert set(near(store, "question 1", Filter(workspace="w1"), pool=30)) <= {f"d{n}" for n in range(1, 250, 4)}
    store.replace({"fresh": [row("fresh", 0, "text 7 0 but new")], "d7": []})
    assert near(store, "text 7 0 but new")[0] == "fresh", "what is not indexed yet is found as well"
    assert "d7" not in near(store, "text 7 0", pool=1_000)


def test_maintenance_is_due_after_many_commits(store):
    assert not store.needs_maintenance()
    for n in range(3):
        store.replace({"a": [row("a", 0, f"take {n}")]})
    now = time.monotonic()
    assert not store.needs_maintenance(now + 19) and store.needs_maintenance(now + 700)
    store.maintain()
    assert not store.needs_maintenance(now + 700)


@pytest.mark.slow
def test_a_thousand_commits_leave_memory_and_files_as_they_were(tmp_path):
    process, store = psutil.Process(), ChunkStore(str(tmp_path / "s"), dimensions=384)

    def write(n: int) -> None:
        name = f"d{n % 200}"
        rows = [
            row(name, k, f"word{n % 97} take {n} part {k} " + "some more text " * 40, vector=unit((n, k), 384))
            for k in range(4)
        ]
        store.replace({name: rows})
        store.search(vector=rows[0].vector, words=f"word{n % 97}", filter=ALL, pool=50)

    def measured(n: int) -> tuple[int, int, int]:
        for turn in range(n, n + 250):
            write(turn)
            if store.needs_maintenance(time.monotonic() + 100):
                store.maintain()
        store.maintain()
        return process.memory_info().rss >> 20, process.num_fds(), sum(1 for _ in tmp_path.rglob("*"))

    warm, *later = [measured(n) for n in range(0, 1_250, 250)]
    assert later[-1][0] < warm[0] + 60, (warm, later)
    assert later[-1][1] < warm[1] + 20, (warm, later)
    assert later[-1][2] < warm[2] + 40, (warm, later)
    store.close()


MERGE = """
import re, sys
from index.process_memory import limit_arenas
limit_arenas()  # as the daemon does
from index.storage.chunk_store import ChunkStore
from tests.support.chunk_rows import DIMENSIONS, row

def kilobytes(name):
    with open("/proc/self/status") as status:
        return int(re.search(rf"{name}:\\s+(\\d+)", status.read())[1])

store = ChunkStore(sys.argv[1], dimensions=DIMENSIONS)
store.replace({"b": [row("b")]})
store.maintain()
words = (f"{number * 2_654_435_761 % 2**24:x}" for number in range(142_000))  # no two alike
store.replace({"a": [row("a", ord, " ".join(next(words) for _ in range(71))) for ord in range(2_000)]})
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")  # VmHWM begins anew
before = kilobytes("VmRSS")
store.maintain()
print(kilobytes("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_merging_the_index_of_very_many_words_needs_little_memory(tmp_path):
    command = [sys.executable, "-c", MERGE, str(tmp_path / "s.lance")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=ROOT)
    assert int(done.stdout) < 60_000  # 102,000 when LanceDB filled what it likes, 23,000 now


def test_a_failure_of_maintenance_is_tried_again_and_its_cause_is_logged_once(store, monkeypatch, caplog):
    optimize, failing = store._table.optimize, [RuntimeError("something of the disk"), OSError("something of the disk")]

    async def fails_at_first(**given):
        if failing:
            raise failing.pop()
        return await optimize(**given)

    monkeypatch.setattr(store._table, "optimize", fails_at_first)
    monkeypatch.setattr(store_failures, "_LOGGED", {})
    store.replace({"a": [row("a", 0, "text")]})
    store.maintain()
    store.maintain()
    causes = [record.message for record in caplog.records if "something of the disk" in record.message]
    assert causes == [
        "the store failed: OSError: something of the disk",
        "the store failed: RuntimeError: something of the disk",
    ]
    for _ in range(3):
        store_failures.log_cause(RuntimeError("something of the disk"))
    assert len([record for record in caplog.records if "something of the disk" in record.message]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("step", ["optimize", "reconnect", "count"])
def test_maintenance_that_fails_counts_its_commits_once(store, monkeypatch, step):
    """Counted twice, they would be too many to remove their versions while readers wait, and removal would take minutes."""
    monkeypatch.setattr(chunk_store, "UNPRUNED", 5)
    for n in range(4):
        store.replace({"a": [row("a", 0, f"text {n}")]})

    async def fail(**_):
        raise OSError("something of the disk")

    with monkeypatch.context() as patch:
        patch.setattr(store._table, step, fail)
        for _ in range(3):
            with pytest.raises(Unavailable):
                store.maintain()
    store.maintain()
    assert len([*(store._table.folder / "_versions").glob("*.manifest")]) == 1
    assert found(store, "text") == ["a"]


@pytest.mark.slow
def test_very_many_versions_are_removed_while_others_read_and_write(store, monkeypatch):
    monkeypatch.setattr(chunk_store, "UNPRUNED", 0)
    monkeypatch.setattr(chunk_store, "MARGIN", 1.0)
    stop, failures, held = threading.Event(), [], {}

    def work():
        for n in itertools.count():
            if stop.wait(0.02):
                return
            try:
                store.replace({f"d{n % 30}": [row(f"d{n % 30}", 0, f"text {n}")]})
                held[f"d{n % 30}"] = f"text {n}"
                assert near(store, f"text {n}")[0] == f"d{n % 30}"
            except (MemexError, AssertionError) as error:
                failures.append(error)

    threads = [
        threading.Thread(target=work),
        threading.Thread(target=lambda: [found(store, "text") for _ in iter(lambda: stop.wait(0.01), True)]),
    ]
    for thread in threads:
        thread.start()
    versions = store._table.folder / "_versions"

    def removed():
        store.maintain()
        time.sleep(0.3)
        return len([*versions.glob("*.manifest")]) < store._run(store._table.version()) * 0.8

    try:
        until(removed)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert {doc: store.rows_of(doc)[0].text for doc in held} == held


def test_a_clock_before_1970_is_told_and_asks_nothing_of_lancedb(store, monkeypatch, capfd):
    store.replace({"a": [row("a", 0, "text")]})
    with monkeypatch.context() as wrong:
        wrong.setattr(chunk_store.time, "time", lambda: -1e6)
        for attempt in (lambda: found(store, "text"), lambda: store.replace({"b": [row("b")]}), store.maintain):
            with pytest.raises(Unavailable, match=r"clock .* before 1970"):
                attempt()
    assert found(store, "text") == ["a"]
    assert not store.is_damaged
    assert "panicked" not in capfd.readouterr().err


@pytest.mark.slow
def test_reads_and_writes_go_on_during_maintenance(store):
    store.replace({f"d{n}": [row(f"d{n}", k, f"text {n} {k}") for k in range(3)] for n in range(300)})
    stop, failures, written = threading.Event(), [], {}

    def reads():
        while not stop.is_set():
            try:
                assert near(store, "text 5 1") and found(store, "text")
                assert len(store.rows_of("d299")) == 3
            except (MemexError, AssertionError) as error:
                failures.append(error)

    def writes():
        n = 0
        while not stop.is_set():
            n += 1
            name = f"d{n % 40}"
            try:
                store.replace({name: [row(name, 0, f"take {n}")]})
                written[name] = f"take {n}"
                assert [passage.text for passage in store.rows_of(name)] == [f"take {n}"]
            except (MemexError, AssertionError) as error:
                failures.append(error)

    threads = [threading.Thread(target=work) for work in (reads, reads, writes)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        store.maintain()
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == [] and len(written) > 5
    for name, text in written.items():
        assert [passage.text for passage in store.rows_of(name)] == [text]
    assert store.count() == 900 - 2 * len(written)


AHEAD = """
import sys, os, time
from pathlib import Path
from index.storage.chunk_store import ChunkStore
from tests.support.chunk_rows import DIMENSIONS, row
folder, clock = Path(sys.argv[1]), Path(os.environ["CLOCK_SET"])
store = ChunkStore(str(folder), dimensions=DIMENSIONS)
for number in range(6):
    store.replace({f"d{number}": [row(f"d{number}", 0, f"text {number}")]})
held = {path.name for path in folder.rglob("*") if path.is_file()}
clock.write_text(str(40 * 365 * 86400))
store.maintain(prune=False)
print(len(held - {path.name for path in folder.rglob("*") if path.is_file()}), store.count())
store.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Clock.possible, reason="needs a C compiler to set a process's clock")
def test_a_clock_that_leaps_ahead_takes_no_file_from_a_reader(tmp_path):
    clock = Clock(tmp_path)
    environ = os.environ | clock.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", AHEAD, str(tmp_path / "s")],
        check=False,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["0", "6"], done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("unpruned", [0, 10_000], ids=["few versions", "many versions"])
def test_no_search_waits_for_maintenance_that_waits_until_the_rows_are_loaded(store, monkeypatch, unpruned):
    monkeypatch.setattr(chunk_store, "DRAIN", 5.0)
    for n in range(12):
        store.replace({f"d{n}": [row(f"d{n}", 0, f"text {n}")]})
    go, begun, read = threading.Event(), threading.Event(), store._read_next

    def read_slowly(batches):
        begun.set()
        assert go.wait(60)
        return read(batches)

    monkeypatch.setattr(store, "_read_next", read_slowly)
    store._start_loading_rows()
    assert begun.wait(60)
    store._unpruned = unpruned
    maintenance = threading.Thread(target=store.maintain)
    began = time.monotonic()
    maintenance.start()
    while maintenance.is_alive():
        assert near(store, "text 3")[0] == "d3"
    took = time.monotonic() - began
    go.set()
    assert took < 4.0
    until(lambda: store._table.seen.rows is not None)
    store.maintain()
    assert near(store, "text 3")[0] == "d3"


@pytest.mark.parametrize("prune", [True, False])
def test_maintenance_shows_no_half_of_a_write_that_failed(store, monkeypatch, prune):
    """The write removed the old rows and could not add the new ones; nor could it restore the version before."""
    monkeypatch.setattr(chunk_store, "UNPRUNED", -1)  # so that no maintenance removes versions while readers wait
    store.replace({"a": [row("a", 0, "heron")]})

    async def fail(*_):
        raise OSError("something of the disk")

    with monkeypatch.context() as patch:
        patch.setattr(store._table._writer, "add", fail)
        patch.setattr(type(store._table._writer), "restore", fail)
        with pytest.raises(Unavailable):
            store.replace({"a": [row("a", 0, "ibis")]})
        assert found(store, "heron") == ["a"]
        with contextlib.suppress(Unavailable):
            store.maintain(prune=prune)
        assert found(store, "heron") == ["a"]
    store.maintain(prune=prune)
    assert found(store, "heron") == ["a"]
    store.replace({"a": [row("a", 0, "ibis")]})
    assert (found(store, "heron"), found(store, "ibis")) == ([], ["a"])
