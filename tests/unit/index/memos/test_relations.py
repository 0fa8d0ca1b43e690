"""index/memos/relations.py and index/memos/relations.py against a plain reckoning over the notes, whatever order they came in."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.catalog.catalog import Catalog
from index.document_ids import choose_owner, path_id
from index.memos.relations import MemoRelations, end_of, walk
from index.model import Stat
from tests.support.example_counts import examples
from tests.support.parsed_notes import parse

PATHS = [
    f"Captures/{folder}/{name}.md"
    for folder in ("one", "one/ns", "one/Entities", "two", "one/Files")
    for name in ("A", "B", "a copy", "日本")
]
IDS = ["a", "b", "c"]
TAGS = ["t", "u"]


@dataclass(frozen=True)
class Note:
    path: str
    id: str | None
    stated: tuple[tuple[str | None, str, str, int], ...]  # id, link, tag, weight in hundredths

    @property
    def text(self) -> bytes:
        entries = "".join(
            f"  - {{target: '[[{link}]]', tag: {tag}, weight: {weight / 100}" + (f", id: {id}}}\n" if id else "}\n")
            for id, link, tag, weight in self.stated
        )
        return f"---\n{f'id: {self.id}' if self.id else 'x: 1'}\nrelations:\n{entries or '  []'}\n---\nx".encode()


NOTES = st.lists(
    st.builds(
        Note,
        st.sampled_from(PATHS),
        st.none() | st.sampled_from(IDS),
        st.lists(
            st.tuples(
                st.sampled_from([None, *IDS, "gone", *map(path_id, PATHS[:3])]), st.sampled_from(["A", "b", "日本", "no"]),
                st.sampled_from(TAGS), st.integers(0, 3),
            ),
            max_size=4,
        ).map(tuple),
    ),
    max_size=9,
    unique_by=lambda note: note.path,
)  # fmt: skip


def catalog_of(folder, notes):
    catalog = Catalog(folder / "captures.db")
    catalog.write(
        upserts=[(parse(note.text, note.path, mtime_ms=5), Stat(1, 1, n), 1, True) for n, note in enumerate(notes)]
    )
    return catalog, MemoRelations(catalog, lambda: [note.path for note in notes])


def reckoned(notes):
    """The relations as (source path, target path, tag), by reading every note."""

    def where(path):
        parts = path.split("/")[1:-1]
        return tuple(part for part in parts if part not in ("Entities", "Files"))

    claims = {}
    for note in notes:
        claims.setdefault((where(note.path)[0], note.id), []).append(note.path)
    at = {}  # by workspace and id
    for note in notes:
        own = (where(note.path)[0], note.id)
        mine = note.id and choose_owner(claims[own]) == note.path
        at[own if mine else (own[0], path_id(note.path))] = note.path

    found = []
    for note in sorted(notes, key=lambda note: note.path):
        for id, link, tag, _ in note.stated:
            named = [p for p in at.values() if stem(p) == link.casefold() and where(p)[0] == where(note.path)[0]]
            target = at.get((where(note.path)[0], id)) if id else (choose_owner(named) if named else None)
            ends = (note.path, target)
            if target is None or where(note.path) != where(target) or any("/Entities/" in path for path in ends):
                continue
            if (*ends, tag) not in found:
                found.append((*ends, tag))
    return found


def stem(path):
    return path.rpartition("/")[2].removesuffix(".md").casefold()


@given(notes=NOTES, data=st.data())
@examples(60)
def test_relations_are_those_that_the_notes_state(tmp_path_factory, notes, data):
    expected = reckoned(notes)
    folder = tmp_path_factory.mktemp("ties")
    catalog, ties = catalog_of(folder, data.draw(st.permutations(notes)))
    try:
        records = [end_of(catalog.record_at(note.path)) for note in notes]
        assert sorted(tie.key for tie in ties.outgoing(records)) == sorted(expected)
        assert sorted(tie.key for tie in ties.incoming(records)) == sorted(expected)
        for workspace, namespace in (("one", "default"), ("one", "ns"), ("two", "default"), ("none", "default")):
            here = {r.path for r in records if (r.workspace, r.namespace) == (workspace, namespace)}
            found = [tie.key for tie in ties.list_relations(workspace, namespace, None, 1000)]
            assert sorted(found) == sorted(key for key in expected if key[0] in here)
            assert [tie.key for tie in ties.list_relations(workspace, namespace, None, 1)] == found[:1]
            assert [tie.key for tie in ties.list_relations(workspace, namespace, "t", 9)] == [
                k for k in found if k[2] == "t"
            ][:9]
        for record in records:
            assert sorted(tie.key for tie in ties.outgoing([record])) == sorted(
                k for k in expected if k[0] == record.path
            )
            assert sorted(tie.key for tie in ties.incoming([record])) == sorted(
                k for k in expected if k[1] == record.path
            )
            walked(ties, record, expected, data)
    finally:
        catalog.close()


def walked(ties, start, expected, data):
    directions = data.draw(st.sampled_from([("forward",), ("backward",), ("forward", "backward")]))
    depth, most = data.draw(st.integers(1, 4)), data.draw(st.sampled_from([1, 3, 1000]))
    tag = data.draw(st.sampled_from([None, *TAGS]))
    steps, truncated = walk(ties, start, directions, depth=depth, most=most, tag=tag)
    edges = [key for key in expected if tag in (None, key[2])]
    distance, level = {start.path: 0}, 0
    met: dict[tuple[str, str, str], int] = {}
    while level < depth:
        level += 1
        around = {path for path, far in distance.items() if far == level - 1}
        for key in edges:
            for near, far, way in ((*key[:2], "forward"), (*key[1::-1], "backward")):
                if way in directions and near in around:
                    met.setdefault(key, level)
                    distance.setdefault(far, level)
    assert truncated == (len(met) > most)
    told = {step.tie.key: step.depth for step in steps}
    assert len(told) == len(steps) == min(len(met), most)
    assert all(met[key] == depth for key, depth in told.items())
    assert [step.depth for step in steps] == sorted(step.depth for step in steps)
    for step in steps:
        assert step.path[0] == start.id
        assert len(step.path) == step.depth + 1
        assert step.path[-1] == (step.tie.target if step.direction == "forward" else step.tie.source).id
        assert step.loop == (step.path[-1] in step.path[:-1])
        assert len(set(step.path[:-1])) == step.depth


def test_a_relation_without_times_has_those_of_its_memo(tmp_path):
    catalog, ties = catalog_of(tmp_path, [Note("Captures/one/A.md", "a", ((None, "a", "t", 1),))])
    (tie,) = ties.list_relations("one", "default", None, 2000)
    assert (tie.created_at, tie.updated_at) == (5, 5)
    catalog.close()


def test_many_relations_without_a_target_take_few_rounds(tmp_path, monkeypatch):
    missing = tuple((None, f"gone {n}", "t", 1) for n in range(60))
    notes = [Note(f"Captures/one/A{n:02}.md", f"a{n}", missing) for n in range(20)]
    catalog, ties = catalog_of(tmp_path, [*notes, Note("Captures/one/Z.md", "z", (("a7", "A07", "t", 1),))])
    rounds, resolve = [], ties._resolve_ends
    monkeypatch.setattr(ties, "_resolve_ends", lambda rows: (rounds.append(len(rows)), resolve(rows))[1])
    assert [tie.target.id for tie in ties.list_relations("one", "default", None, 1)] == ["a7"]
    assert len(rounds) <= 5
    catalog.close()


@pytest.mark.slow
@pytest.mark.parametrize("count", [1_200])
def test_more_memos_than_one_question_holds(tmp_path, count):
    notes = [Note(f"Captures/one/N{n}.md", f"n{n}", ((f"n{(n + 1) % count}", "x", "t", 1),)) for n in range(count)]
    catalog, ties = catalog_of(tmp_path, notes)
    records = [end_of(catalog.record_at(note.path)) for note in notes]
    assert (
        len(ties.outgoing(records))
        == len(ties.incoming(records))
        == len(ties.list_relations("one", "default", None, 2000))
        == count
    )
    steps, _ = walk(ties, records[0], ("forward",), depth=10, most=1000)
    assert [step.path[-1] for step in steps] == [f"n{n}" for n in range(1, 11)]
    catalog.close()
