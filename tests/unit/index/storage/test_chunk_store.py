"""index/storage/chunk_store.py, on real LanceDB databases."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from multiprocessing.connection import Connection

import numpy as np
import psutil
import pytest

from index.errors import InvalidArgument, MemexError, Unavailable
from index.model import Filter
from index.storage.chunk_store import Store, StoreDamaged
from tests.support.chunk_rows import DIMENSIONS, row, unit
from tests.support.paths import ROOT
from tests.support.shifted_clock import Clock

ALL = Filter()


@pytest.fixture
def store(tmp_path):
    opened = Store.open(str(tmp_path / "s.lance"), dimensions=DIMENSIONS)
    yield opened
    opened.close()


def near(store: Store, text: str, filter: Filter = ALL, pool: int = 10) -> list[str]:
    return [match.doc_id for match in store.legs(vector=unit(text), words=None, filter=filter, pool=pool)[0]]


def found(store: Store, words: str, filter: Filter = ALL, pool: int = 10) -> list[str]:
    return [match.doc_id for match in store.legs(vector=None, words=words, filter=filter, pool=pool)[1]]


# Writing and reading back


def test_a_new_store_is_empty_and_answers(store):
    assert store.fresh and not store.healed
    assert (store.count(), store.documents(), store.passages("a"), store.vectors(["x"])) == (0, {}, [], {})
    assert store.legs(vector=unit("x"), words="x", filter=Filter(workspace="w", tags=("t",)), pool=5) == ([], [])


def test_what_was_written_is_read_back(store):
    given = row(
        tags=("Projects/Alpha",),
        source="claude",
        heading="Top > Sub",
        cut=4,
        text="Top\nsnake_case 東京都に住む",
        created_at=-5,
    )
    store.replace({"a": [given, row("a", 1, "second")]})
    first, second = store.passages("a")
    assert first == replace(given, vector=None) and second.ord == 1
    [match] = store.legs(vector=None, words="東京", filter=ALL, pool=5)[1]
    assert (match.doc_id, match.ord, match.workspace, match.heading, match.cut, match.text) == (
        "a",
        0,
        "default",
        "Top > Sub",
        4,
        given.text,
    )
    assert match.value > 0
    assert store.documents() == {"a": 2} and store.count() == 2


def test_a_document_is_replaced_as_a_whole(store):
    store.replace({"a": [row("a", n, f"old {n}") for n in range(3)], "b": [row("b", 0, "old other")]})
    store.replace({"a": [row("a", 0, "new")]})
    assert [passage.text for passage in store.passages("a")] == ["new"]
    assert found(store, "old") == ["b"]


def test_a_document_without_rows_leaves(store):
    store.replace({"a": [row()], "b": [row("b")]})
    store.replace({"a": [], "unknown": []})
    assert store.documents() == {"b": 1}


def test_nothing_to_do_writes_no_version(store):
    before = store._ask(store._table.version())
    store.replace({})
    store.replace({"unknown": []})
    assert store._ask(store._table.version()) == before


def test_many_documents_are_one_step(store):
    store.replace({f"d{n}": [row(f"d{n}", 0, f"text {n}")] for n in range(6_001)})
    assert store.count() == 6_001
    store.replace({f"d{n}": [] for n in range(6_000)})
    assert store.documents() == {"d6000": 1}


def test_the_order_of_writing_does_not_show(store, tmp_path):
    documents = {name: [row(name, n, f"{name} {n}") for n in range(3)] for name in "abcde"}
    store.replace(documents)
    other = Store.open(str(tmp_path / "other"), dimensions=DIMENSIONS)
    for name in "edcba":
        other.replace({name: [row(name, 0, "before")]})
        other.replace({name: documents[name]})
    other.maintain()
    assert other.dump(vectors=True) == store.dump(vectors=True)
    other.close()


def test_vectors_are_found_by_digest(store):
    rows = [row("a", n, f"text {n}") for n in range(4)] + [row("a", 4, "without", vector=None)]
    store.replace({"a": rows})
    vectors = store.vectors({one.digest for one in rows} | {"unknown"})
    assert set(vectors) == {one.digest for one in rows[:4]}
    for one in rows[:4]:
        assert vectors[one.digest].dtype == np.float32
        assert vectors[one.digest] == pytest.approx(one.vector, abs=1e-3)
    again = [replace(one, vector=vectors.get(one.digest)) for one in rows]
    dump = store.dump(vectors=True)
    store.replace({"a": again})
    assert store.dump(vectors=True) == dump, "a reused vector is stored exactly as it was"


def test_a_row_without_a_vector_is_found_by_its_words_only(store):
    store.replace({"a": [row("a", 0, "lonely words", vector=None)]})
    assert found(store, "lonely") == ["a"] and near(store, "lonely words") == []


# Finding


def test_both_legs_answer_best_first_with_their_scores(store):
    store.replace(
        {"a": [row("a", 0, "lance index")], "b": [row("b", 0, "lance lance lance")], "c": [row("c", 0, "nothing")]}
    )
    by_vector, by_words = store.legs(vector=unit("lance index"), words="lance", filter=ALL, pool=10)
    assert by_vector[0].doc_id == "a" and by_vector[0].value == pytest.approx(1.0, abs=2e-3)
    assert [match.value for match in by_vector] == sorted((match.value for match in by_vector), reverse=True)
    assert by_vector[1].value == pytest.approx(float(unit("lance index") @ unit(by_vector[1].text)), abs=2e-3)
    assert [match.doc_id for match in by_words] == ["b", "a"]
    assert len(store.legs(vector=unit("x"), words="lance", filter=ALL, pool=1)[0]) == 1


@pytest.mark.parametrize(
    "words", [None, "", "  ", "'''", "!!!", 'C++ "unbalanced AND (foo', "zzz", "\x00", "a" * 20_000]
)
def test_any_words_may_be_asked_for(store, words):
    store.replace({"a": [row()]})
    assert found(store, words) == []


@pytest.mark.parametrize(
    ("restriction", "ids"),
    [
        pytest.param(Filter(), "abcd", id="nothing"),
        pytest.param(Filter(workspace="work"), "bcd", id="a workspace"),
        pytest.param(Filter(workspace=""), "", id="the vault's workspace"),
        pytest.param(Filter(workspace="wor"), "", id="not a prefix of a workspace"),
        pytest.param(Filter(namespace="x"), "b", id="a namespace, and not those below it"),
        pytest.param(Filter(namespace="x/y"), "c", id="a namespace below"),
        pytest.param(Filter(collection="memory"), "c", id="a collection"),
        pytest.param(Filter(type="entity"), "d", id="a type"),
        pytest.param(Filter(source="o'neil"), "d", id="a source"),
        pytest.param(Filter(tags=("#Area",)), "bc", id="a tag and those below it"),
        pytest.param(Filter(tags=("area/HOME",)), "b", id="a tag below"),
        pytest.param(Filter(tags=("area", "straße")), "c", id="every tag"),
        pytest.param(Filter(tags=("STRASSE",)), "c", id="a folded tag"),
        pytest.param(Filter(tags=("#",)), "", id="a tag that is none"),
        pytest.param(Filter(any_tags=("area/home", "STRASSE", "none")), "bc", id="any of several tags"),
        pytest.param(Filter(any_tags=("#Area",)), "bc", id="any of one, and those below it"),
        pytest.param(Filter(any_tags=("#", "none")), "", id="any of none"),
        pytest.param(Filter(tags=("area",), any_tags=("straße", "x")), "c", id="all of some and any of others"),
        pytest.param(Filter(since=200), "cd", id="since"),
        pytest.param(Filter(until=200), "ab", id="until"),
        pytest.param(Filter(since=10**40, until=-(10**40)), "", id="beyond all times"),
        pytest.param(Filter(workspace="work", tags=("area",), since=200, type="note"), "c", id="all at once"),
    ],
)
def test_a_search_keeps_to_its_filter(store, restriction, ids):
    store.replace(
        {
            "a": [row("a", 0, "same", created_at=100, workspace="default")],
            "b": [row("b", 0, "same", created_at=199, workspace="work", namespace="x", tags=("Area/Home",))],
            "c": [
                row(
                    "c",
                    0,
                    "same",
                    created_at=200,
                    workspace="work",
                    namespace="x/y",
                    collection="memory",
                    tags=("area", "Straße"),
                )
            ],
            "d": [row("d", 0, "same", created_at=300, workspace="work", type="entity", source="o'neil")],
        }
    )
    assert sorted(near(store, "same", restriction)) == sorted(found(store, "same", restriction)) == list(ids)


HOSTILE = [
    "\\') OR true --", "\\' OR 1=1 --", "' OR '1'='1", "') OR true --", "'; DROP TABLE chunks; --", "a' OR workspace = 'b' OR '1'='2",
    "' UNION SELECT * FROM chunks --", "\\", "\\\\", "'", "''", "'''", "\\'", "\\\\'", "\\\\\\'", '"', '" OR true --', "`", "`workspace`",
    "%", "_", "%' OR workspace LIKE '%", "\x00", "a\x00' OR true --", "\n", "' OR true\n--", "/*", "*/ OR true /*", "' /* ", "--",
    "workspace", "NULL", "true", "1 OR 1=1", "$1", "?", "{}", "${workspace}", "E'\\'' OR true --", "X'27'", "U&'\\0027' OR true --",
    "ʼ OR true --", "＇ OR true --", "’ OR ’1’=’1", "]) OR true --", "']) OR true --", "') OR array_has(tags, 'b",
]  # fmt: skip


@pytest.mark.parametrize("field", ["workspace", "namespace", "collection", "type", "source", "tags", "any_tags"])
def test_no_value_reaches_beyond_its_workspace(store, field):
    assert len(HOSTILE) >= 40
    store.replace(
        {
            "mine": [row("mine", 0, "same", workspace="a")],
            "theirs": [row("theirs", n, "same", workspace="b") for n in range(3)],
        }
    )
    for payload in HOSTILE:
        value = (payload,) if field.endswith("tags") else payload
        restriction = replace(Filter(workspace="a"), **{field: value})
        both = near(store, "same", restriction) + found(store, "same", restriction)
        assert "theirs" not in both, payload
        assert both == [], payload
    assert store.documents() == {"mine": 1, "theirs": 3}


def test_a_hostile_value_is_stored_and_found_like_any_other(store):
    rows = [row(f"d{n}", 0, "same", workspace=payload, source=payload) for n, payload in enumerate(HOSTILE)]
    store.replace({one.doc_id: [one] for one in rows} | {"other": [row("other", 0, "same")]})
    for one in rows:
        assert found(store, "same", Filter(workspace=one.workspace, source=one.source)) == [one.doc_id]
        assert store.vectors([one.workspace]) == {}
        assert store.passages(one.workspace) == []
    store.replace({one.doc_id: [] for one in rows})
    assert store.documents() == {"other": 1}


# Refusing


@pytest.mark.parametrize("doc_id", ["", "a b", "x' OR true --", "a\n", "-a", "a" * 65, "ä", "../a"])
def test_a_malformed_id_never_gets_in(store, doc_id):
    with pytest.raises(AssertionError):
        store.replace({doc_id: [row(doc_id)]})
    assert store.count() == 0


def test_rows_of_another_document_and_twins_never_get_in(store):
    with pytest.raises(AssertionError):
        store.replace({"a": [row("b")]})
    with pytest.raises(AssertionError):
        store.replace({"a": [row("a", 0), row("a", 0)]})


@pytest.mark.parametrize("field", ["text", "heading", "workspace", "source", "tags"])
def test_half_a_character_is_refused_with_its_place(store, field):
    bad = "before \ud800 after"
    with pytest.raises(InvalidArgument, match="half a character"):
        store.replace({"a": [replace(row(), **{field: (bad,) if field == "tags" else bad})]})
    with pytest.raises(InvalidArgument, match="half a character"):
        store.legs(vector=None, words=bad, filter=ALL, pool=5)
    with pytest.raises(InvalidArgument, match="half a character"):
        store.legs(vector=None, words="x", filter=Filter(workspace=bad), pool=5)
    store.replace({"a": [row()]})
    assert store.count() == 1, "the store goes on"


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(np.full(DIMENSIONS, np.nan, np.float32), id="no number"),
        pytest.param(np.full(DIMENSIONS, np.inf, np.float32), id="infinite"),
        pytest.param(np.full(DIMENSIONS, 1e6, np.float32), id="far too long"),
        pytest.param(np.ones(DIMENSIONS + 1, np.float32), id="of another size"),
    ],
)
def test_a_vector_that_is_none_is_refused(store, vector):
    with pytest.raises(InvalidArgument, match="vector"):
        store.replace({"a": [row(vector=vector)]})
    with pytest.raises(InvalidArgument, match="vector"):
        store.legs(vector=vector, words=None, filter=ALL, pool=5)


@pytest.mark.parametrize("pool", [0, -1, 1_001, 2**31, 2**63])
def test_the_pool_is_bounded(store, pool):
    with pytest.raises(InvalidArgument, match="pool"):
        store.legs(vector=unit("x"), words=None, filter=ALL, pool=pool)


def test_a_closed_store_says_so(tmp_path):
    store = Store.open(str(tmp_path / "s"), dimensions=DIMENSIONS)
    store.close()
    with pytest.raises(Unavailable, match="closed"):
        store.count()


def test_a_write_that_fails_half_way_changes_nothing(store):
    store.replace({"a": [row("a", 0, "old")], "b": [row("b", 0, "other")]})
    real = store._table._writer

    class Full:
        def __getattr__(self, name):
            return getattr(real, name)

        async def add(self, _):
            raise OSError(28, "No space left on device")

    store._table._writer = Full()
    with pytest.raises(Unavailable, match="disk is full"):
        store.replace({"a": [row("a", 0, "new")]})
    assert found(store, "old new") == ["a"]
    store.replace({"b": [row("b", 0, "changed")]})
    assert [passage.text for passage in store.passages("a")] == ["old"], "the delete was taken back"


def test_maintenance_first_takes_back_what_was_left_half_written(store):
    store.replace({"a": [row("a", 0, "old")]})
    store._table._undo = store._ask(store._table.version())
    store._ask(store._table._writer.delete("doc_id IN ('a')"))  # and here the disk was full
    store.maintain()
    assert [passage.text for passage in store.passages("a")] == ["old"]
    store.replace({"a": [row("a", 0, "new")]})
    assert [passage.text for passage in store.passages("a")] == ["new"]


# Maintenance


def test_maintenance_changes_no_answer_and_removes_what_is_old(store):
    for n in range(60):
        store.replace({f"d{n % 20}": [row(f"d{n % 20}", k, f"word{n % 20} take {n} part {k}") for k in range(2)]})
    before, files = store.dump(vectors=True), sum(1 for _ in store._table.folder.rglob("*"))
    words, vector = found(store, "word7"), near(store, "word7 take 47 part 1")
    store.maintain()
    assert store.dump(vectors=True) == before
    assert found(store, "word7") == words and near(store, "word7 take 47 part 1")[0] == vector[0] == "d7"
    assert sum(1 for _ in store._table.folder.rglob("*")) < files / 4
    store.replace({"d7": [row("d7", 0, "afterwards")]})
    assert found(store, "afterwards") == ["d7"] and store.count() == 39


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
    assert not store.due()
    for n in range(3):
        store.replace({"a": [row("a", 0, f"take {n}")]})
    now = time.monotonic()
    assert not store.due(now + 19) and store.due(now + 700)
    store.maintain()
    assert not store.due(now + 700)


@pytest.mark.slow
def test_a_thousand_commits_leave_memory_and_files_as_they_were(tmp_path):
    process, store = psutil.Process(), Store.open(str(tmp_path / "s"), dimensions=384)

    def write(n: int) -> None:
        name = f"d{n % 200}"
        rows = [
            row(name, k, f"word{n % 97} take {n} part {k} " + "some more text " * 40, vector=unit((n, k), 384))
            for k in range(4)
        ]
        store.replace({name: rows})
        store.legs(vector=rows[0].vector, words=f"word{n % 97}", filter=ALL, pool=50)

    def measured(n: int) -> tuple[int, int, int]:
        for turn in range(n, n + 250):
            write(turn)
            if store.due(time.monotonic() + 100):
                store.maintain()
        store.maintain()
        return process.memory_info().rss >> 20, process.num_fds(), sum(1 for _ in tmp_path.rglob("*"))

    warm, *later = [measured(n) for n in range(0, 1_250, 250)]
    assert later[-1][0] < warm[0] + 60, (warm, later)
    assert later[-1][1] < warm[1] + 20, (warm, later)
    assert later[-1][2] < warm[2] + 40, (warm, later)
    store.close()


def test_reads_and_writes_go_on_during_maintenance(store):
    store.replace({f"d{n}": [row(f"d{n}", k, f"text {n} {k}") for k in range(3)] for n in range(300)})
    stop, failures, written = threading.Event(), [], {}

    def reads():
        while not stop.is_set():
            try:
                assert near(store, "text 5 1") and found(store, "text")
                assert len(store.passages("d299")) == 3
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
                assert [passage.text for passage in store.passages(name)] == [f"take {n}"]
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
        assert [passage.text for passage in store.passages(name)] == [text]
    assert store.count() == 900 - 2 * len(written)


# Outliving


def test_it_is_all_there_when_it_is_opened_again(tmp_path):
    store = Store.open(str(tmp_path / "s"), dimensions=DIMENSIONS)
    store.replace({"a": [row()]})
    dump = store.dump(vectors=True)
    store.close()
    again = Store.open(f"file://{tmp_path / 's'}", dimensions=DIMENSIONS)
    assert again.dump(vectors=True) == dump and not again.healed and not again.fresh
    again.close()


def test_a_store_of_another_model_must_be_made_anew(tmp_path):
    Store.open(str(tmp_path / "s"), dimensions=DIMENSIONS).close()
    with pytest.raises(StoreDamaged, match="another model"):
        Store.open(str(tmp_path / "s"), dimensions=DIMENSIONS + 1)


def keep_writing(uri: str, n: int, acknowledge: Connection) -> None:
    """Replace two documents at a time, for ever; say so each time that it is done."""
    store = Store.open(uri, dimensions=DIMENSIONS)
    while True:
        n += 1
        store.replace(
            {
                f"d{k}": [row(f"d{k}", part, f"take {n} of {k} part {part}") for part in range(3)]
                for k in (n % 7, 7 + n % 5)
            }
        )
        acknowledge.send(n)
        if n % 25 == 0:
            store.maintain()


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path):
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.unit.index.storage.test_chunk_store"])
    acknowledged, chances = 0, np.random.default_rng(5)
    for _ in range(15):
        here, there = processes.Pipe(duplex=False)
        child = processes.Process(target=keep_writing, args=(str(tmp_path / "s"), acknowledged, there))
        child.start()
        there.close()
        acknowledged = here.recv()
        time.sleep(float(chances.uniform(0, 0.4)))
        child.kill()
        with contextlib.suppress(EOFError):
            while True:
                acknowledged = here.recv()
        child.join()
        store = Store.open(str(tmp_path / "s"), dimensions=DIMENSIONS)
        try:
            assert not store.healed
            last = {k: n for n in range(acknowledged + 1) for k in (n % 7, 7 + n % 5) if n}
            for k, n in last.items():
                texts = [passage.text for passage in store.passages(f"d{k}")]
                takes = {int(text.split()[1]) for text in texts}
                if not takes:  # between its delete and its add: the next pass of the pipe writes it again
                    assert k in ((acknowledged + 1) % 7, 7 + (acknowledged + 1) % 5)
                    continue
                assert len(texts) == 3 and len(takes) == 1, "never half of one and half of another"
                assert takes <= {n, acknowledged + 1}
        finally:
            store.close()
    assert acknowledged > 15


AHEAD = """
import sys, os, time
from pathlib import Path
from index.storage.chunk_store import Store
from tests.support.chunk_rows import DIMENSIONS, row
folder, clock = Path(sys.argv[1]), Path(os.environ["CLOCK_SET"])
store = Store.open(str(folder), dimensions=DIMENSIONS)
for number in range(6):
    store.replace({f"d{number}": [row(f"d{number}", 0, f"text {number}")]})
held = {path.name for path in folder.rglob("*") if path.is_file()}
clock.write_text(str(40 * 365 * 86400))
store.maintain(prune=False)
print(len(held - {path.name for path in folder.rglob("*") if path.is_file()}), store.count())
store.close()
"""


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
