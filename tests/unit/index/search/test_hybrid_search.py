"""index/search/hybrid_search.py: what it promises, held on the real thing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from index.catalog.catalog import Catalog
from index.document_ids import path_id
from index.encoders.embedder import Embedder
from index.errors import Unavailable
from index.model import Document, Filter, Query, Stat
from index.query import make_query, tag_keys
from index.search.hybrid_search import POOLS, search
from index.storage.chunk_rows import Row
from index.storage.chunk_store import ChunkStore
from index.text.chunking import chunk_sizes, split_document
from tests.support.documents import document, note
from tests.support.fakes import FakeEncoder, fake_embedder
from tests.support.until import until


class Scope:
    """A real store and a real catalog, filled by hand."""

    def __init__(self, folder: Path) -> None:
        self.encoder = FakeEncoder()
        self.embedder = fake_embedder(self.encoder)
        self.store = ChunkStore(str(folder / "notes.lance"), dimensions=64)
        self.catalog = Catalog(folder / "notes.db")

    def add(self, *documents: Document, embedded: bool = True) -> None:
        rows = {path_id(one.path): list(self._rows(one, embedded=embedded)) for one in documents}
        self.store.replace(rows)
        self.catalog.write(upserts=[(one, Stat(1, 1, 1), len(rows[path_id(one.path)]), embedded) for one in documents])

    def _rows(self, one: Document, *, embedded: bool) -> Iterator[Row]:
        for chunk in split_document(one, chunk_sizes(64), self.encoder.count_tokens):
            vector = self.encoder.encode([chunk.embedded], kind="document", urgent=False)[0] if embedded else None
            yield Row(
                f"{path_id(one.path)}-{chunk.ord}", path_id(one.path), chunk.ord, one.workspace, one.namespace, one.collection,
                one.type, one.source, tag_keys(one.tags), one.created_at, chunk.digest, " > ".join(chunk.trail),
                len(chunk.embedded) - len(chunk.text), chunk.embedded, vector,
            )  # fmt: skip

    def answer(self, query: Query | str, *, embedder: Embedder | str | None = "own", **fields):
        asked = make_query(query, **fields) if isinstance(query, str) else query
        return search(
            asked, store=self.store, catalog=self.catalog, embedder=self.embedder if embedder == "own" else embedder
        )

    def found(self, query: Query | str, **fields) -> list[str]:
        return [hit.record.title for hit in self.answer(query, **fields).hits]


@pytest.fixture
def scope(tmp_path) -> Iterator[Scope]:
    made = Scope(tmp_path)
    yield made
    made.store.close()
    made.catalog.close()
    made.embedder.close()


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_each_mode_finds_a_note_by_its_passage(scope, mode):
    scope.add(
        note("Captures/w/Bread.md", "Knead the dough and let it rise"),
        note("Captures/w/Boat.md", "Sand the hull and paint it"),
    )
    answer = scope.answer("knead dough", mode=mode)
    (best, *_) = answer.hits
    assert (answer.mode, answer.degraded) == (mode, ())
    assert (best.record.title, best.chunk, best.ord, best.heading) == (
        "Bread",
        "Knead the dough and let it rise",
        0,
        "",
    )
    assert 0 < best.score <= 1


def test_a_hit_names_the_section_of_its_passage(scope):
    parts = [
        ("heading", "# Plan"),
        ("paragraph", "alpha " * 50),
        ("heading", "## Storage"),
        ("paragraph", "zinc " + "beta " * 40),
    ]
    scope.add(document(*parts, path="Captures/w/Plan.md", title="Plan"))
    (hit,) = scope.answer("zinc").hits
    assert (hit.heading, hit.chunk.startswith("## Storage\n\nzinc"), hit.ord > 0) == ("Plan > Storage", True, True)


def test_a_note_is_found_by_its_title_and_by_its_alias_first(scope):
    scope.add(
        note("Captures/w/Ada.md", "A mathematician", aliases=("Countess of Lovelace",)),
        *[
            note(f"Captures/w/House {n}.md", "The Countess of Lovelace lived here, Countess of Lovelace, Ada")
            for n in range(5)
        ],
    )
    assert scope.found("countess of lovelace")[0] == "Ada"
    assert scope.found("Ada")[0] == "Ada"


def test_an_empty_note_is_found_by_its_title(scope):
    scope.add(note("Captures/w/Quarterly review.md"))
    assert scope.found("quarterly review") == ["Quarterly review"]


def test_japanese_is_found_inside_sentences_without_asking_an_encoder_that_spells_it(scope):
    scope.add(
        note("Captures/w/梅雨.md", "梅雨は東アジアの広範囲でみられる雨季である。"),
        note("Captures/w/雪.md", "北海道の冬は雪が深い。"),
    )
    answer = scope.answer("雨季とは何ですか？")
    assert [hit.record.title for hit in answer.hits] == ["梅雨"]
    assert (answer.mode, answer.degraded) == ("hybrid", ())
    assert not [call for call in scope.encoder.calls if call[0] == "query"]


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
@pytest.mark.parametrize("others", [0, 40], ids=["alone", "among others"])
def test_a_hit_is_weak_if_it_shares_little_with_the_query(scope, mode, others):
    scope.add(
        note("Captures/w/Bread.md", "Knead the dough and let it rise"),
        *[note(f"Captures/w/Boat {n}.md", f"Sand hull {n} and paint it") for n in range(others)],
    )
    best = scope.answer("let the dough rise", mode=mode).hits[0]
    assert (best.record.title, best.weak) == ("Bread", False)
    hits = scope.answer("quantum physics and chromodynamics", mode=mode).hits
    assert {hit.weak for hit in hits} <= {True}
    assert hits or mode == "text"


@pytest.mark.parametrize("words", [True, False])
def test_a_query_whose_words_are_nowhere_is_answered_by_its_vector_even_if_the_encoder_spells_it(scope, words):
    scope.add(note("Captures/w/Rain.md", "雨季は梅雨" if words else "The rainy season"))
    answer = scope.answer("梅雨", limit=1)
    assert [hit.record.title for hit in answer.hits] == ["Rain"]
    assert (answer.mode, answer.degraded) == ("hybrid", ())
    assert bool([call for call in scope.encoder.calls if call[0] == "query"]) is not words


@pytest.mark.parametrize(
    "mode", ["hybrid", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("vector", "text"))]
)
def test_a_smaller_limit_gives_the_beginning_of_a_larger_one(scope, mode):
    words = ["heron", "dunlin", "smew", "whimbrel", "garganey", "avocet", "bittern", "curlew"]
    rng = random.Random(7)
    for number in range(160):
        parts = [" ".join(rng.choices(words, k=rng.choice((3, 12, 60)))) for _ in range(rng.choice((1, 1, 1, 30)))]
        newer = f"N{rng.randrange(160)}" if rng.random() < 0.2 else None
        scope.add(note(f"Captures/w/N{number}.md", *parts, superseded_by=newer))
    scope.found("heron")
    until(lambda: scope.store._table.seen.rows is not None)  # before, LanceDB compares vectors, and rounds differently
    for query in ("heron", "smew and a bittern", "梅雨", "N7 dunlin avocet"):
        longest = [(hit.record.path, hit.ord, hit.score) for hit in scope.answer(query, mode=mode, limit=50).hits]
        assert len(longest) == (0 if (mode, query) == ("text", "梅雨") else 50)
        for limit in (1, 2, 3, 5, 10, 20, 35, 49):
            hits = scope.answer(query, mode=mode, limit=limit).hits
            assert [(hit.record.path, hit.ord, hit.score) for hit in hits] == longest[:limit], (query, limit)


def superseded(scope, mode="hybrid", **fields):
    return [(hit.record.title, hit.score) for hit in scope.answer("heron gauge", mode=mode, **fields).hits]


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_a_superseded_note_follows_the_end_of_its_chain_although_the_middle_is_no_hit(scope, mode):
    scope.add(
        note("Captures/w/A.md", "heron gauge heron gauge", superseded_by="B", type="note"),
        note("Captures/w/B.md", "heron gauge", superseded_by="C", type="entity"),
        note("Captures/w/C.md", "one heron at a gauge " + "among many words " * 12, type="note"),
    )
    assert [title for title, _ in superseded(scope, mode, type="note")] == ["C", "A"]
    assert [title for title, _ in superseded(scope, mode)] == ["C", "B", "A"]


def test_a_superseded_note_does_not_sink_to_the_score_of_the_middle_of_its_chain(scope):
    scope.add(
        note("Captures/w/A.md", "heron gauge", superseded_by="B"),
        note("Captures/w/B.md", "a newt", superseded_by="C"),
        note("Captures/w/C.md", "heron gauge today"),
        note("Captures/w/D.md", "a gauge"),
    )
    assert [title for title, _ in superseded(scope)][:2] == ["C", "A"]


@pytest.mark.parametrize("text", ["???", "。。。", "!?"])
def test_marks_without_a_word_find_weak_hits_at_most(scope, text):
    scope.add(note("Captures/w/Rain.md", "The rainy season"))
    assert all(hit.weak for hit in scope.answer(text).hits)


def test_a_hit_by_a_vector_that_the_encoder_spelt_is_weak_however_near_it_is(scope, monkeypatch):
    scope.add(note("Captures/w/雪.md", "北海道の冬は雪が深い。"))
    near = scope.encoder.encode(["雪\n北海道の冬は雪が深い。"], kind="document", urgent=False)[0]
    monkeypatch.setattr(Embedder, "embed_query", lambda *_: near)
    (hit,) = scope.answer("株価").hits
    assert hit.weak


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_without_an_encoder_words_answer_and_the_answer_says_so(scope, mode):
    scope.add(note("Captures/w/Bread.md", "Knead the dough"))
    answer = scope.answer("dough", mode=mode, embedder=None)
    assert [hit.record.title for hit in answer.hits] == ["Bread"]
    assert answer.mode == "text"
    assert "words only" in answer.degraded[0]


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_an_encoder_behind_a_network_gives_the_same_answer_and_holds_no_store_up(scope, monkeypatch, mode):
    scope.add(note("Captures/w/Tea.md", "Steep the green tea"), note("Captures/w/Bread.md", "Knead the dough"))
    near = scope.answer("green tea", mode=mode)
    titles = [hit.record.title for hit in near.hits]
    order, embed, find = [], scope.embedder.embed_query, scope.store.search
    monkeypatch.setattr(Embedder, "embed_query", lambda _, text: order.append("embed") or embed(text))
    monkeypatch.setattr(scope.store, "search", lambda **asked: order.append("search") or find(**asked))
    monkeypatch.setattr(Embedder, "is_near", property(lambda _: False))
    far = scope.answer("green tea", mode=mode)
    assert ([hit.record.title for hit in far.hits], far.mode, far.degraded) == (titles, near.mode, near.degraded)
    assert order == ["embed"] * (mode != "text") + ["search"]


def test_an_encoder_that_breaks_leaves_the_words(scope):
    scope.add(note("Captures/w/Bread.md", "Knead the dough"))
    scope.embedder.close()
    answer = scope.answer("dough")
    assert [hit.record.title for hit in answer.hits] == ["Bread"]
    assert answer.mode == "text"
    assert "closed" in answer.degraded[0]


def test_notes_without_vectors_are_found_by_their_words_beside_those_that_have_them(scope):
    scope.add(note("Captures/w/Old.md", "the lighthouse keeper"))
    scope.add(note("Captures/w/New.md", "the lighthouse keeper"), embedded=False)
    assert sorted(scope.found("lighthouse keeper")) == ["New", "Old"]


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_nothing_of_another_workspace_is_found(scope, mode):
    scope.add(note("Captures/a/Mine.md", "shared words"), note("Captures/b/Theirs.md", "shared words"))
    assert scope.found("shared words", mode=mode, workspace="a") == ["Mine"]


def test_a_document_that_moved_to_another_workspace_meanwhile_is_not_shown(scope):
    scope.add(note("Captures/a/Mine.md", "shared words"))
    scope.catalog.write(upserts=[(note("Captures/a/Mine.md", "shared words", workspace="b"), Stat(1, 1, 1), 1, True)])
    assert scope.found("shared words", workspace="a") == []


def test_a_document_that_left_the_catalog_is_left_out_and_the_next_takes_its_place(scope):
    scope.add(*[note(f"Captures/w/{n}.md", "shared words") for n in range(4)])
    (first, *_) = scope.answer("shared words", limit=1).hits
    scope.catalog.write(removes=[first.record.path])
    (second,) = scope.answer("shared words", limit=1).hits
    assert second.record.path != first.record.path


def test_every_filter_narrows(scope):
    scope.add(
        note("Captures/w/Plain.md", "common words"),
        note("Captures/w/Tagged.md", "common words", tags=("Deep/Level",)),
        note("Captures/w/Memory.md", "common words", collection="memory"),
        note("Captures/w/Entity.md", "common words", type="entity"),
        note("Captures/w/Sourced.md", "common words", source="codex"),
        note("Captures/w/Spaced.md", "common words", namespace="alpha"),
        note("Captures/w/Late.md", "common words", created_at=9_000),
    )
    assert scope.found("common words", tags=["deep"]) == ["Tagged"]
    assert scope.found("common words", collection="memory") == ["Memory"]
    assert scope.found("common words", type="entity") == ["Entity"]
    assert scope.found("common words", source="codex") == ["Sourced"]
    assert scope.found("common words", namespace="alpha") == ["Spaced"]
    assert scope.found("common words", since=2_000) == ["Late"]
    assert len(scope.found("common words", until=9_000)) == 6


def test_one_long_note_does_not_hide_the_others(scope):
    long = note(
        "Captures/w/Long.md", *["lighthouse lighthouse lighthouse " + f"filler{n} " * 30 for n in range(POOLS[0] + 20)]
    )
    scope.add(
        long, *[note(f"Captures/w/Short {n}.md", f"one lighthouse among many other words {n} " * 2) for n in range(3)]
    )
    assert len(scope.found("lighthouse", mode="text", limit=4)) == 4


def test_no_more_hits_than_asked_for_and_best_first(scope):
    scope.add(*[note(f"Captures/w/{n}.md", "lighthouse " * n + "other words") for n in range(1, 8)])
    scores = [hit.score for hit in scope.answer("lighthouse", limit=5).hits]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("text", ["!!!", '"unbalanced AND (foo', "C++", "' OR 1=1 --", "🙂", "x" * 2_000, "\x00"])
def test_any_text_may_be_asked_for(scope, text):
    scope.add(note("Captures/w/Bread.md", "Knead the dough"))
    for mode in ("hybrid", "vector", "text"):
        paths = [hit.record.path for hit in scope.answer(Query(text, 10, mode, Filter(workspace="w"))).hits]
        assert paths in ([], ["Captures/w/Bread.md"])
        if mode == "text":
            assert paths == [], "no word of it is in the note"


def test_nothing_is_found_in_an_empty_store(scope):
    assert scope.answer("anything").hits == ()


def test_a_store_that_can_not_be_read_is_an_error(scope):
    scope.store.close()
    with pytest.raises(Unavailable):
        scope.answer("anything")


# Times that a query names

ASKED = datetime(2026, 11, 24, 12, tzinfo=UTC)


def moment(*day):
    return int(datetime(*day, 12, tzinfo=UTC).timestamp() * 1000)


def dated(text, **fields):
    return Query(text, asked_at=ASKED, **fields)


@pytest.mark.parametrize("mode", ["hybrid", "text"])
@pytest.mark.parametrize(
    "asked", ["planning the roof last May", "planning the roof, May 2026", "planning the roof 2026年5月"]
)
def test_of_notes_alike_that_of_the_time_comes_first_and_none_is_left_out(scope, mode, asked):
    times = {"April": (2026, 4, 30), "May": (2026, 5, 3), "June": (2026, 6, 9), "Earlier": (2025, 5, 3)}
    scope.add(
        *[note(f"Captures/w/{name}.md", "planning the roof", created_at=moment(*day)) for name, day in times.items()]
    )
    found = scope.found(dated(asked, mode=mode))
    assert found[0] == "May"
    assert sorted(found) == sorted(times)


def test_what_the_note_says_counts_more_than_its_time(scope):
    scope.add(
        note("Captures/w/Roof.md", "planning the roof with the carpenter", created_at=moment(2026, 6, 20)),
        note("Captures/w/Bread.md", "kneading dough", created_at=moment(2026, 5, 3)),
        *[note(f"Captures/w/{n}.md", f"other words {n}", created_at=moment(2026, 7, 1)) for n in range(30)],
    )
    assert scope.found(dated("carpenter planning the roof in May"))[0] == "Roof"


def test_a_query_that_is_a_time_finds_the_notes_of_it_which_are_not_weak(scope):
    scope.add(
        *[
            note(f"Captures/w/{n}.md", f"words {n}", created_at=moment(2026, 11, 1 + n % 20))
            for n in range(POOLS[0] * 2)
        ],
        note("Captures/w/Then.md", "kneading dough", created_at=moment(2023, 5, 8)),
    )
    for asked in ("8 May 2023", "8. Mai 2023", "2023年5月8日"):
        (best, *others) = scope.answer(dated(asked)).hits
        assert (best.record.title, best.weak) == ("Then", False)
        assert all(hit.score < best.score for hit in others)


@pytest.mark.parametrize("day", [(2026, 5, 3), (2026, 7, 3)])
def test_a_time_of_the_query_widens_no_filter(scope, day):
    scope.add(
        note("Captures/w/Mine.md", "planning the roof", created_at=moment(*day)),
        note("Captures/v/Theirs.md", "planning the roof", created_at=moment(2026, 5, 3)),
        note("Captures/w/Late.md", "planning the roof", created_at=moment(2026, 5, 30)),
    )
    until = moment(2026, 5, 20)
    mine = Filter(workspace="w", until=until)
    assert scope.found(dated("the roof in May", filter=mine)) == (["Mine"] if moment(*day) < until else [])


def test_a_smaller_limit_is_the_beginning_of_a_larger_one_where_a_time_is_named(scope):
    draw = random.Random(5)
    scope.add(
        *[
            note(f"Captures/w/{n}.md", " ".join(draw.choices(["roof", "beam", "tile", "wall", "door"], k=4)),
                 created_at=moment(2026, draw.randint(3, 7), draw.randint(1, 28)))
            for n in range(150)
        ]
    )  # fmt: skip
    scope.found("roof")
    until(lambda: scope.store._table.seen.rows is not None)  # before, LanceDB chooses among equals as it likes
    most = scope.found(dated("roof beam in May", limit=50))
    for limit in (1, 7, 20, 49):
        assert scope.found(dated("roof beam in May", limit=limit)) == most[:limit]


def test_notes_that_are_only_of_the_time_do_not_push_out_those_that_answer(scope):
    scope.add(
        note("Captures/w/Long.md", *["lighthouse keeper " + f"filler{n} " * 30 for n in range(POOLS[0] + 20)]),
        *[
            note(f"Captures/w/Short {n}.md", f"the lighthouse keeper and {n}", created_at=moment(2026, 2, 3))
            for n in range(15)
        ],
        *[note(f"Captures/w/Dough {n}.md", f"dough bread {n}", created_at=moment(2026, 5, 3)) for n in range(30)],
    )
    found = scope.found(dated("lighthouse keeper in May"))
    assert len([title for title in found if title.startswith("Short")]) >= 7


def test_a_year_alone_may_be_a_number_so_a_note_that_says_it_stays_first(scope):
    scope.add(
        note("Captures/w/Plan 2024.md", "the plan", created_at=moment(2026, 5, 3)),
        *[note(f"Captures/w/{n}.md", f"dough {n}", created_at=moment(2024, 5, 3)) for n in range(20)],
    )
    assert scope.found(dated("2024"))[0] == "Plan 2024"
