"""index/observations/resident_observations.py, and the store that answers from it, against the exact comparison of all vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.model import Filter
from index.observations import resident_observations
from index.observations.resident_observations import ObservationVectors
from index.storage import maintenance_policy
from index.storage.chunk_rows import VectorBatch
from index.storage.chunk_store import ChunkStore
from tests.support.chunk_rows import DIMENSIONS, row, unit
from tests.support.until import until

CLOSE = 0.005  # the most by which rounding to bytes may change a similarity
PERSPECTIVES = ("general", "technical")
GENERAL = Filter(workspace="default", type="general")
CHANGES = st.lists(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=25
)


@pytest.fixture
def store(tmp_path):
    opened = ChunkStore(str(tmp_path / "s.lance"), dimensions=DIMENSIONS, hold=ObservationVectors.of)
    yield opened
    opened.close()


def facets(doc_id: str, observations: int, turn: object, *, workspace: str = "default") -> list:
    """The rows of a node, each observation under each perspective."""
    return [
        row(
            doc_id,
            32 * n + k,
            f"{name} {doc_id} {n} {turn}",
            type=name,
            heading=str(n + 7),
            workspace=workspace,
        )
        for n in range(observations)
        for k, name in enumerate(PERSPECTIVES)
    ]


def exact(documents, point, filter=GENERAL) -> dict[tuple[str, int], float]:
    """The similarity of each row that passes."""
    return {
        (one.doc_id, one.ord): float(one.vector @ point)
        for rows in documents.values()
        for one in rows
        if (one.workspace, one.type) == (filter.workspace, filter.type)
    }


def agree(state, documents, point) -> None:
    """All rows of each perspective are there, in the order of their similarity."""
    for name in PERSPECTIVES:
        wanted = Filter(workspace="default", type=name)
        matches, expected = state.nearest(point, wanted, 200), exact(documents, point, wanted)
        assert {(match.doc_id, match.ord): match.value for match in matches} == pytest.approx(expected, abs=CLOSE)
        assert [match.value for match in matches] == sorted((match.value for match in matches), reverse=True)
        assert all(match.heading == str(match.ord // 32 + 7) for match in matches)


@given(CHANGES)
def test_each_state_stays_as_it_was(changes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("index.storage.resident_rows.SPARE", 2)  # packed often
        state, model, seen = ObservationVectors.of([], DIMENSIONS), {}, []
        for turn, change in enumerate(changes):
            documents = {name: facets(name, count, turn) for name, count in change.items()}
            state.replace(
                {"unshown": facets("unshown", 3, turn), "a": facets("a", 1, "unshown")}
            )  # a write that failed
            state, model = state.replace(documents), {**model, **documents}
            seen.append((state, dict(model)))
    for state, documents in seen:
        assert sum(group.live.sum() for group in state.groups.values()) == sum(map(len, documents.values()))
        agree(state, documents, unit("a point"))


def test_rows_of_other_workspaces_and_rows_without_a_vector_are_not_found():
    mine, others = facets("a", 2, 0), facets("b", 2, 0, workspace="other")
    state = ObservationVectors.of([], DIMENSIONS).replace(
        {"a": mine, "b": others, "c": [row("c", 0, type="general", heading="1", vector=None)]}
    )
    assert {match.doc_id for match in state.nearest(unit("x"), GENERAL, 50)} == {"a"}
    assert {match.workspace for match in state.nearest(unit("x"), Filter(workspace="other", type="general"), 50)} == {
        "other"
    }
    assert state.nearest(unit("x"), Filter(workspace="none", type="general"), 50) == []
    assert state.nearest(np.zeros(DIMENSIONS, np.float32), GENERAL, 50) == []


def test_an_ordinal_may_have_twelve_digits():
    largest = 10**12 - 1
    state = ObservationVectors.of([], DIMENSIONS)
    for heading in (3_000_000_000, largest):
        state = state.replace({"a": [row("a", 0, "text", type="general", heading=str(heading))]})
        [match] = state.nearest(unit("x"), GENERAL, 5)
        assert match.heading == str(heading)


@pytest.mark.slow
def test_of_many_rows_nearly_all_of_the_nearest_are_found():
    rng = np.random.default_rng(5)
    topics = rng.standard_normal((200, 384))
    vectors = topics[rng.integers(0, 200, 20_000)] + 0.9 * rng.standard_normal((20_000, 384))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    ids = [f"d{n // 4}" for n in range(20_000)]
    batch = VectorBatch(ids, range(20_000), ["default"] * 20_000, ["general"] * 20_000, range(20_000), vectors)
    state = ObservationVectors.of([], 384).with_batch(batch)
    shares = []
    for number in range(0, 20_000, 1_000):
        point = vectors[number] + 0.02 * rng.standard_normal(384).astype(np.float32)
        nearest = set(np.argsort(vectors @ -point)[:30].tolist())
        shares.append(len(nearest & {match.ord for match in state.nearest(point, GENERAL, 30)}) / 30)
    assert np.mean(shares) > 0.97
    group = state.groups["default", "general"]
    assert np.abs(group.vectors.centre - vectors.mean(axis=0)).max() < 0.001
    assert state.groups["default", "general"].vectors.steps.itemsize == 1


@pytest.mark.parametrize("documents", [None, frozenset({"d1", "d3", "unknown"})], ids=["all", "some"])
@pytest.mark.parametrize("perspective", [None, "technical"])
def test_the_sums_are_those_of_the_table(store, monkeypatch, perspective, documents):
    monkeypatch.setattr(maintenance_policy, "HELD", 5)
    store.replace({f"d{n}": facets(f"d{n}", n, 0) for n in range(5)} | {"e": facets("e", 2, 0, workspace="other")})
    wanted = Filter(workspace="default", type=perspective, documents=documents)
    assert store._table.seen.held is None
    expected = store.vector_sums(wanted)
    until(lambda: store.nearest([(unit("x"), GENERAL)], 5) and store._table.seen.vectors is not None)
    for summed in (1, 3, resident_observations.SUMMED):  # documents lie in several blocks
        monkeypatch.setattr(resident_observations, "SUMMED", summed)
        sums = store.vector_sums(wanted)
        assert sums.keys() == expected.keys() and len(sums) == (4 if documents is None else 2)
        for doc_id, total in sums.items():
            assert total == pytest.approx(expected[doc_id], abs=0.02)


def test_a_store_with_many_rows_holds_their_vectors_and_finds_what_is_written(store, monkeypatch):
    monkeypatch.setattr(maintenance_policy, "HELD", 20)
    monkeypatch.setattr(maintenance_policy, "VECTORS_HELD", 60)
    monkeypatch.setattr(maintenance_policy, "VECTORS_OUTGROWN", 80)
    documents = {f"d{n}": facets(f"d{n}", 3, 0) for n in range(8)}

    def search(point, pool=200):
        return {(match.doc_id, match.ord) for match in store.nearest([(point, GENERAL)], pool)[0]}

    store.replace(documents)
    point = unit("general d3 1 0")
    from_table = search(point)
    until(lambda: search(point) and store._table.seen.vectors is not None)
    assert store._table.seen.rows is None
    assert search(point) == from_table == exact(documents, point).keys()
    assert search(point, 1) == {("d3", 32)}
    changed = {"d3": facets("d3", 2, 1), "d4": [], "new": facets("new", 1, 1)}
    store.replace(changed)
    assert store._table.seen.vectors is not None
    assert search(point) == exact({**documents, **changed}, point).keys()
    [match] = store.search(vector=None, words="technical d3 1 1", filter=Filter(documents=frozenset({"d3"})), pool=1)[1]
    assert match.text == "technical d3 1 1"
    store.maintain()
    assert store._table.seen.vectors is not None
    assert search(point) == exact({**documents, **changed}, point).keys()
    store.replace({f"e{n}": facets(f"e{n}", 3, 0) for n in range(8)})
    assert store._table.seen.held is None, "there are too many now"
    assert search(unit("general e5 0 0"), 1) == {("e5", 0)}


def test_a_store_that_shrinks_holds_whole_rows_again(store, monkeypatch):
    monkeypatch.setattr(maintenance_policy, "HELD", 20)
    store.replace({f"d{n}": facets(f"d{n}", 3, 0) for n in range(8)})
    until(lambda: store.nearest([(unit("x"), GENERAL)], 5) and store._table.seen.vectors is not None)
    store.replace({f"d{n}": [] for n in range(4)})
    assert store._table.seen.vectors is not None
    store.replace({f"d{n}": [] for n in range(4, 6)})
    assert store._table.seen.held is None
    until(lambda: store.nearest([(unit("x"), GENERAL)], 5) and store._table.seen.rows is not None)


def test_rows_that_became_too_many_before_they_were_loaded_are_not_read(store, monkeypatch):
    monkeypatch.setattr(maintenance_policy, "HELD", 5)
    monkeypatch.setattr(maintenance_policy, "OUTGROWN", 6)
    monkeypatch.setattr(maintenance_policy, "VECTORS_HELD", 10)
    store.replace({"a": facets("a", 5, 0)})
    reads = []
    monkeypatch.setattr(store._table, "all_rows", lambda *_: reads.append(1))
    with store._writing:  # the loading waits for it
        store.nearest([(unit("x"), GENERAL)], 5)
        assert store._recalling.locked()
        store._work = replace(store._work, rows=11)
    until(lambda: not store._recalling.locked())
    assert not reads


@pytest.mark.slow
def test_nothing_is_left_of_a_perspective_that_is_gone_or_of_replaced_rows():
    state = ObservationVectors.of([], DIMENSIONS)
    for turn in range(1_500):
        state = state.replace({"a": facets("a", 2, turn), "b": facets("b", 1, turn)})
    assert all(len(group.live) < 1_250 for group in state.groups.values())
    renamed = [replace(one, type="renamed") for one in facets("a", 2, 0)]
    state = state.replace({"a": renamed, "b": []})
    assert set(state.groups) == {("default", "renamed")}
    assert list(state.vector_sums(Filter(workspace="default"))) == ["a"]


def test_without_a_function_for_them_no_vectors_of_many_rows_are_held(tmp_path, monkeypatch):
    monkeypatch.setattr(maintenance_policy, "HELD", 5)
    store = ChunkStore(str(tmp_path / "s.lance"), dimensions=DIMENSIONS)
    store.replace({"a": facets("a", 4, 0)})
    assert len(store.nearest([(unit("x"), GENERAL)], 50)[0]) == 4
    assert store._table.seen.held is None and not store._recalling.locked()
    store.close()


def test_a_row_holds_16_bytes_beside_its_vector():
    rows = resident_observations.GroupRows.allocate(100, 8)
    assert rows.numbers.nbytes + rows.headings.nbytes == 16 * 100
