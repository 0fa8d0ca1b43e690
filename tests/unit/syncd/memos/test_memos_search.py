"""Memos are searched by likeness and filtered by their metadata, on the real stores."""

import pytest

from index.errors import InvalidArgument, NotFound, Unavailable
from index.memos.relations import NO_MEMOS
from tests.support.memo_notes import save, titles


def test_a_search_is_by_likeness_and_every_memo_is_compared(space):
    names = ["alpha beta", "alpha gamma", "delta"]
    made = {name: save(space, name) for name in names}
    found = space.memos.search(query="alpha beta")
    assert titles(found)[0] == "alpha beta"
    assert len(found.items) == 3
    assert [item.score for item in found.items] == sorted((item.score for item in found.items), reverse=True)
    assert titles(space.memos.search(query="alpha beta", k=1)) == ["alpha beta"]
    assert titles(space.memos.search(query="alpha beta", minimum=0.9)) == ["alpha beta"]
    far = space.memos.search(query="alpha beta", metric="l2")
    assert titles(far) == titles(found)
    for near, away in zip(found.items, far.items, strict=True):
        assert away.score == pytest.approx((2 - 2 * near.score) ** 0.5, abs=1e-3)
    pivot = space.memos.search(pivot=made["alpha beta"].id)
    assert titles(pivot) == ["alpha gamma", "delta"]
    whole = space.memos.search(pivot=made["alpha beta"].id, exclude_pivot=False)
    assert (titles(whole)[0], whole.items[0].score) == ("alpha beta", pytest.approx(1, abs=1e-4))


def test_a_memo_is_as_near_as_its_nearest_passage(space):
    long = "\n\n".join(f"# Part {n}\n\n" + f"filler{n} " * 120 for n in range(12))
    save(space, long + "\n\n# End\n\n" + "walrus tusk " * 60, title="Long")
    save(space, "walrus", title="Short")
    save(space, "filler0 filler1", title="Other")
    found = space.memos.search(query="walrus tusk walrus tusk")
    assert set(titles(found)[:2]) == {"Long", "Short"}
    assert len(found.items) == 3
    pivot = space.memos.search(pivot=next(item.record.id for item in found.items if item.record.title == "Long"))
    assert len(pivot.items) == 2


def test_a_proposed_change_is_no_memo(world, space):
    a = save(space, "alpha", memo_id="a")
    proposal = "---\nid: p\ntype: change\ntarget: Refs/a.md\nproject: x\nrelations: [{id: a, tag: t}]\n---\nalpha\n"
    world.write("Captures/default/Proposal.md", proposal)
    world.write(a.path, "---\nid: a\nrelations: [{id: p, tag: t}]\n---\nalpha\n")
    world.run()
    assert space.get("p").record.type in NO_MEMOS
    with pytest.raises(NotFound):
        space.memos.memo("p", "default")
    assert [item.record.id for item in space.memos.search(query="alpha").items] == ["a"]
    assert space.memos.search(wanted={"project": "x"}).items == ()
    assert space.memo_graph.list().ties == ()
    assert space.memo_graph.walk("a", way="both").steps == ()


FILTERS = [
    ({}, ["c", "b", "a"]),
    ({"p": "x"}, ["b", "a"]),
    ({"p": "X"}, []),
    ({"p": {"contains": "X"}}, ["b", "a"]),
    ({"deep": {"er": {"n": 1}}}, ["a"]),
    ({"deep": {"er": {"n": 1.0}}}, ["a"]),
    ({"deep": {"er": {"n": True}}}, []),
    ({"deep": {"er": {"t": {"contains": "日本"}}}}, ["a"]),
    ({"deep": {}}, ["a"]),
    ({"list": ["one"]}, ["b"]),
    ({"list": ["two", "one"]}, ["b"]),
    ({"list": ["one", "three"]}, []),
    ({"list": "one"}, []),
    ({"list": {"contains": "ON"}}, ["b"]),
    ({"flag": True}, ["c"]),
    ({"flag": 1}, []),
    ({"contains": {"contains": "in it"}}, ["c"]),
    ({"odd": {"contains": "exact"}}, ["c"]),
    ({'quo"te': "\\'"}, ["c"]),
    ({"title": "a"}, ["a"]),
    ({"tags": ["red"], "p": "x"}, ["a"]),
    ({"tags": ["#Deep  blue"]}, ["a"]),
    ({"tags": ["blue"]}, []),
    ({"none": None}, []),
]


def test_a_filter_is_a_part_of_the_metadata(space):
    save(
        space,
        "alpha",
        title="a",
        metadata={"p": "x", "deep": {"er": {"n": 1, "t": "in 日本 now"}}, "tags": ["red", "deep blue"]},
    )
    save(space, "alpha", title="b", metadata={"p": "x", "list": ["one", "two", 3]})
    save(
        space,
        "beta",
        title="c",
        metadata={"flag": True, "contains": "words in it", "odd": {"contains": "exact"}, 'quo"te': "\\'"},
    )
    for wanted, names in FILTERS:
        assert titles(space.memos.search(wanted=wanted)) == names, wanted
        assert sorted(titles(space.memos.search(query="alpha", wanted=wanted))) == sorted(names), wanted


def test_a_property_is_found_under_the_name_by_which_it_can_be_saved(world, space):
    made = save(space, "alpha", memo_id="a", metadata={"project": "alpha"})
    assert save(space, "alpha", memo_id=made.id, metadata={"Project": "beta"}).metadata == {"project": "beta"}
    assert len(space.memos.search(wanted={"Project": "beta"}).items) == 1
    world.write("Captures/default/Files/F.pdf.md", "---\nid: f\ntype: file\nfile_name: Secret.pdf\n---\nalpha\n")
    world.run()
    for key in ("file_name", "File_Name"):
        assert space.memos.search(wanted={key: {"contains": "secret"}}).items == ()


@pytest.mark.slow
def test_a_filter_of_thousands_of_texts_is_compared_whole(space):
    """SQLite refuses a condition of a thousand parts."""
    texts = [f"{n}x" for n in range(4_500)]
    save(space, "alpha", title="all", metadata={"list": texts})
    save(space, "alpha", title="all but the last", metadata={"list": texts[:-1]})
    assert titles(space.memos.search(wanted={"list": texts})) == ["all"]
    assert titles(space.memos.search(wanted={"list": [*texts, "more"]})) == []
    assert titles(space.memos.search(wanted={"list": ["1x"] * 5_000})) == ["all but the last", "all"]


@pytest.mark.slow
@pytest.mark.parametrize("held", [True, False], ids=["rows at hand", "rows on disk"])
def test_a_filter_comes_before_the_nearest_are_taken(space, monkeypatch, held):
    from index.memos import queries
    from index.storage import maintenance_policy

    if not held:
        monkeypatch.setattr(maintenance_policy, "HELD", 0)
    save(space, "zeta", title="rare", metadata={"rare": True})
    for n in range(40):
        save(space, f"alpha {n}")
    assert titles(space.memos.search(query="alpha", k=1, wanted={"rare": True})) == ["rare"]
    exact = [item.record.id for item in space.memos.search(query="alpha 7", k=5).items]
    monkeypatch.setattr(queries, "EXACT", 10)  # the vector index is asked instead
    assert [item.record.id for item in space.memos.search(query="alpha 7", k=5).items] == exact
    assert titles(space.memos.search(query="alpha", k=1, wanted={"rare": True})) == ["rare"]
    assert len(space.memos.search(query="alpha 7", k=100).items) == 41
    monkeypatch.setattr(queries, "POOL", 8)
    monkeypatch.setattr(queries, "EXACT", 0)
    assert titles(space.memos.search(query="alpha", k=1, wanted={"rare": True})) == ["rare"]
    pivot = space.memos.search(pivot=exact[0], k=3).items
    monkeypatch.undo()
    assert [(item.record.id, pytest.approx(item.score, abs=1e-3)) for item in pivot] == [
        (item.record.id, item.score) for item in space.memos.search(pivot=exact[0], k=3).items
    ]


def test_notes_of_all_kinds_are_memos_but_nodes_are_not(world, space):
    space.capture("a thought of alpha")
    world.write("Captures/default/By hand.md", "alpha by hand")
    world.write("Captures/default/Entities/Ada.md", "---\nid: ada\n---\n## Observations\n- alpha ^o1\n")
    world.write("Notes/Private.md", "alpha of the vault")
    world.run()
    world.run()
    assert sorted(titles(space.memos.search(query="alpha"))) == ["By hand", "a thought of alpha"]
    assert sorted(titles(space.memos.search())) == ["By hand", "a thought of alpha"]
    for work in (
        lambda: space.memos.search(pivot="ada"),
        lambda: space.memos.delete("ada"),
        lambda: space.memo_graph.walk("ada"),
    ):
        with pytest.raises(NotFound):
            work()


def test_without_a_question_those_changed_last_come_first(space):
    first, _, _ = (save(space, name) for name in ("one", "two", "three"))
    save(space, "one!", memo_id=first.id)
    assert titles(space.memos.search(k=2))[0] == "one!"
    assert [item.score for item in space.memos.search().items] == [None] * 3


@pytest.mark.parametrize(
    "given",
    [
        {"query": "a", "pivot": "b"}, {"query": "a", "minimum": 0.5, "metric": "l2"}, {"minimum": 0.5}, {"k": 0}, {"k": 101},
        {"query": " "},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(space, given):
    with pytest.raises(InvalidArgument):
        space.memos.search(**given)


def test_without_an_encoder_a_query_fails_and_a_pivot_does_not(world, space):
    one, _ = save(space, "alpha beta"), save(space, "alpha")
    index = world.app.opened.builds.scopes["captures"].index
    index.memos._fitting = lambda: None
    with pytest.raises(Unavailable):
        space.memos.search(query="alpha")
    assert titles(space.memos.search(pivot=one.id)) == ["alpha"]
    assert len(space.memos.search().items) == 2
