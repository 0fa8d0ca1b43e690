"""syncd/memos/memo_graph.py: relations between memos are entries in their notes, and are listed and walked."""

import pytest

from index.errors import Conflict, InvalidArgument, NotFound
from syncd.history.audit_log import Author, acting_as
from syncd.notes.front_matter import edit
from tests.support.memo_notes import entries, files, relations_in, save, text_of


def test_a_relation_is_an_entry_that_people_can_read(world, space):
    a, b = save(space, "a", title="One"), save(space, "b", title="Two: a/b")
    made = space.memo_graph.save(a.id, b.id, " supports ", weight=0.456, reason="It says: so")
    assert (made.relation.tag, made.relation.weight, made.relation.version) == ("supports", 0.46, 1)
    assert relations_in(world, a) == [
        {
            "target": "[[Two a b]]",
            "id": b.id,
            "tag": "supports",
            "weight": 0.46,
            "reason": "It says: so",
            "version": 1,
            "created_at": relations_in(world, a)[0]["created_at"],
        }
    ]
    record = space.get(a.id).record
    assert (record.version, record.updated_at) == (1, None)
    assert record.metadata == {}
    assert world.rebuilt(world.state.parent / "other") == world.dump()


def test_saving_again_moves_the_version_only_with_a_change(world, space):
    a, b = save(space, "a"), save(space, "b")
    first = space.memo_graph.save(a.id, b.id, "t", weight=0.5, reason="r")
    before = files(world)
    for given in ({"weight": 0.5}, {"reason": "r"}, {}, {"weight": 0.501, "reason": "r"}):
        same = space.memo_graph.save(a.id, b.id, "t", **given)
        assert (same.relation, same.key) == (first.relation, first.key)
    assert files(world) == before
    changed = space.memo_graph.save(a.id, b.id, "t", weight=0.6)
    assert (changed.relation.version, changed.relation.reason, changed.created_at) == (2, "r", first.created_at)
    assert changed.updated_at >= first.updated_at
    bare = space.memo_graph.save(a.id, b.id, "t", reason="")
    assert (bare.relation.version, bare.relation.reason, bare.relation.weight) == (3, None, 0.6)
    (listed,) = space.memo_graph.list().ties
    assert (listed.relation, listed.updated_at) == (bare.relation, bare.updated_at)
    other = space.memo_graph.save(a.id, b.id, "T")
    assert other.relation.version == 1
    assert len(space.memo_graph.list().ties) == 2


def test_deleting_tells_what_it_was(world, space):
    a, b = save(space, "a"), save(space, "b")
    before = text_of(world, a)
    made = space.memo_graph.save(a.id, b.id, "t", weight=0.25, reason="r")
    with pytest.raises(NotFound):
        space.memo_graph.delete(b.id, a.id, "t")
    with pytest.raises(NotFound):
        space.memo_graph.delete(a.id, b.id, "u")
    assert space.memo_graph.delete(a.id, b.id, "t").relation == made.relation
    assert text_of(world, a) == before
    with pytest.raises(NotFound):
        space.memo_graph.delete(a.id, b.id, "t")


BY_HAND = """---
id: mine
relations:
  # what I think
  - target: "[[Other|that one]]"   # by name
    tag: sees
  - just words
  - target: "[[Other]]"
    id: other
    tag: knows
    weight: 2
  - {id: other, tag: likes, weight: 0.5, own: kept}
  - target: "[[Nowhere]]"
    tag: sees
title: Mine
---
text
"""


def test_what_a_person_writes_is_read_and_what_can_t_be_is_told_and_kept(world, space):
    file = world.write("Captures/default/Mine.md", BY_HAND)
    world.write("Captures/default/Other.md", "---\nid: other\n---\nx")
    world.run()
    assert sorted(entries(space.memo_graph.list())) == [("mine", "other", "likes"), ("mine", "other", "sees")]
    told = [str(defect) for defect in space.get("mine").record.defects]
    assert [one.partition(":")[0] for one in told] == ["bad-relation", "bad-relation"]
    assert "entry 2" in told[0]
    assert "weight" in told[1]
    liked = space.memo_graph.save("mine", "other", "likes", reason="because")
    assert (liked.relation.version, liked.relation.weight) == (2, 0.5)
    seen = space.memo_graph.save("mine", "other", "sees", weight=0.1)
    assert (seen.relation.version, seen.relation.weight) == (2, 0.1)
    text = file.read_text()
    gone = [line for line in BY_HAND.splitlines() if line not in text.splitlines()]
    assert gone == ["  - {id: other, tag: likes, weight: 0.5, own: kept}"]
    assert {"own": "kept"}.items() <= relations_in(world, space.get("mine").record)[3].items()
    assert '  - target: "[[Other|that one]]"   # by name\n    tag: sees\n    id: other\n' in text
    space.memo_graph.delete("mine", "other", "likes")
    space.memos.delete("other")
    assert "just words" in file.read_text()
    assert "weight: 2" in file.read_text()
    assert "# what I think" in file.read_text()
    assert "sees" in file.read_text()  # the one that leads nowhere


def test_a_relation_is_gone_while_a_person_has_taken_an_end_away(world, space):
    a, b = save(space, "a"), save(space, "b")
    space.memo_graph.save(a.id, b.id, "t")
    before = (world.vault / b.path).read_bytes()
    (world.vault / b.path).unlink()
    world.run()
    assert entries(space.memo_graph.list()) == []
    assert space.memo_graph.walk(a.id).steps == ()
    (world.vault / b.path).write_bytes(before)
    world.run()
    assert entries(space.memo_graph.list()) == [(a.id, b.id, "t")]
    moved = world.vault / "Captures/default/Renamed by hand.md"
    (world.vault / b.path).rename(moved)
    world.run()
    assert entries(space.memo_graph.list()) == [(a.id, b.id, "t")]
    (world.vault / a.path).write_text(text_of(world, a).replace(f"    id: {b.id}\n", "    id: nobody\n"))
    world.run()
    assert entries(space.memo_graph.list()) == []


def test_a_relation_stays_within_its_namespace(world, space):
    world.app.agent_access.create_workspace("other")
    a, b = save(space, "a"), save(space, "b", namespace="ns")
    far = save(world.app.agent_access.workspace("other"), "quokka", title="Q")
    for target in (b, far):
        with pytest.raises(NotFound):
            space.memo_graph.save(a.id, target.id, "t")
        with pytest.raises(NotFound):
            space.memo_graph.save(target.id, a.id, "t")
    for id in (b.id, far.id):
        (world.vault / a.path).write_text(
            f"---\nid: {a.id}\nrelations: [{{id: {id}, tag: t}}, {{target: '[[Q]]', tag: t}}]\n---\na"
        )
        world.run()
        assert space.memo_graph.list().ties == ()
        assert space.memo_graph.walk(a.id, way="both").steps == ()
    assert world.app.agent_access.workspace("other").memo_graph.walk(far.id, way="backward").steps == ()


def test_a_link_means_the_note_with_the_best_right_to_the_name(world, space):
    world.write("Captures/default/A.md", "---\nid: a\nrelations:\n  - target: '[[Twin]]'\n    tag: t\n---\n")
    world.write("Captures/default/Twin.md", "---\nid: top\n---\n")
    world.write("Captures/default/Files/Twin.md", "---\nid: deep\n---\n")
    world.run()
    assert entries(space.memo_graph.list()) == [("a", "top", "t")]
    assert entries(space.memo_graph.list(target="deep")) == []
    assert space.memo_graph.walk("deep", way="both").steps == ()


def test_a_saved_relation_is_listed_although_a_link_of_the_note_looks_like_it(world, space):
    world.write("Captures/default/B.md", "---\nid: other\n---\n")
    world.write("Captures/default/alpha/B.md", "---\nid: b\n---\n")
    text = "---\nid: a\nrelations:\n- target: '[[B]]'\n  tag: cites\n---\n"
    world.write("Captures/default/alpha/A.md", text)
    world.run()
    assert entries(space.memo_graph.list(namespace="alpha")) == []
    space.memo_graph.save("a", "b", "cites", namespace="alpha")
    assert entries(space.memo_graph.list(namespace="alpha")) == [("a", "b", "cites")]
    space.memo_graph.delete("a", "b", "cites", namespace="alpha")
    kept = (world.vault / "Captures/default/alpha/A.md").read_text()
    assert "target: '[[B]]'" in kept
    with pytest.raises(NotFound, match="'cites' from 'a' to 'b'; list the relations"):
        space.memo_graph.delete("a", "b", "cites", namespace="alpha")
    space.memo_graph.save("a", "b", "cites", namespace="alpha")
    space.memos.delete("b", namespace="alpha")
    assert (world.vault / "Captures/default/alpha/A.md").read_text().count("tag: cites") == 1


OUT_OF_BOUNDS = [
    {"tag": ""},
    {"tag": "  "},
    {"tag": "x" * 65},
    {"tag": "a\nb"},
    {"tag": "t", "weight": 1.01},
    {"tag": "t", "weight": -0.01},
    {"tag": "t", "weight": float("nan")},
    {"tag": "t", "reason": "x" * 1001},
]


def test_a_relation_out_of_bounds_is_refused(world, space):
    a, b = save(space, "a"), save(space, "b")
    before = files(world)
    for given in OUT_OF_BOUNDS:
        with pytest.raises(InvalidArgument):
            space.memo_graph.save(a.id, b.id, **given)
        assert files(world) == before, given


def test_hostile_words_in_a_relation_are_words(world, space):
    a, b = save(space, "a"), save(space, "b")
    for n, words in enumerate(
        ["---\nid: stolen", "]] [[x", "- x: y", "日本\u2028語", "{a: 1}", "'\"\\", "null", "1e5", "# no"]
    ):
        tie = space.memo_graph.save(a.id, b.id, f"{n} {words}".replace("\n", " ").replace("\u2028", " "), reason=words)
        assert tie.relation.reason == words
    found = space.memo_graph.list().ties
    assert len(found) == 9
    world.run()
    assert space.memo_graph.list().ties == found
    assert space.get(a.id).record.id == a.id


def test_a_list_is_filtered_and_bounded(space):
    a, b, c = (save(space, name) for name in "abc")
    for source, target, tag in ((a, b, "x"), (b, c, "x"), (a, c, "y")):
        space.memo_graph.save(source.id, target.id, tag)
    graph = space.memo_graph
    assert len(graph.list().ties) == 3
    assert {tie.target.id for tie in graph.list(source=a.id).ties} == {b.id, c.id}
    assert {tie.source.id for tie in graph.list(target=c.id).ties} == {a.id, b.id}
    assert entries(graph.list(source=a.id, target=c.id)) == [(a.id, c.id, "y")]
    assert entries(graph.list(source=a.id, tag="x")) == [(a.id, b.id, "x")]
    assert graph.list(source="nobody").ties == ()
    assert graph.list(namespace="none").ties == ()
    short = graph.list(limit=2)
    assert (len(short.ties), short.truncated, graph.list(limit=3).truncated) == (2, True, False)
    assert {memo.id for memo in graph.list(tag="y").memos} == {a.id, c.id}
    for bad in (0, 501):
        with pytest.raises(InvalidArgument):
            graph.list(limit=bad)


def steps(found):
    return [(step.tie.relation.tag, step.depth, step.direction, len(step.path), step.loop) for step in found.steps]


def test_a_walk_tells_depth_direction_and_way_of_each_relation(space):
    a, b, c, d = (save(space, name) for name in "abcd")
    graph = space.memo_graph
    for tag, source, target, weight in (
        ("ab", a, b, 1),
        ("bc", b, c, 1),
        ("ca", c, a, 1),
        ("cd", c, d, 0.5),
        ("aa", a, a, 0.1),
    ):
        graph.save(source.id, target.id, tag, weight=weight)
    assert steps(graph.walk(a.id, depth=10)) == [
        ("ab", 1, "forward", 2, False), ("aa", 1, "forward", 2, True), ("bc", 2, "forward", 3, False),
        ("ca", 3, "forward", 4, True), ("cd", 3, "forward", 4, False),
    ]  # fmt: skip
    assert graph.walk(a.id, depth=10).steps[-1].path == (a.id, b.id, c.id, d.id)
    assert [step[:3] for step in steps(graph.walk(a.id, way="backward", depth=1))] == [
        ("ca", 1, "backward"), ("aa", 1, "backward"),
    ]  # fmt: skip
    assert [step[:3] for step in steps(graph.walk(d.id, way="backward"))] == [
        ("cd", 1, "backward"), ("bc", 2, "backward"), ("ab", 3, "backward"),
    ]  # fmt: skip
    both = graph.walk(b.id, way="both", depth=2)
    assert sorted(step[0] for step in steps(both)) == ["aa", "ab", "bc", "ca", "cd"]
    assert len(both.memos) == 4
    assert steps(graph.walk(a.id, tag="ab")) == [("ab", 1, "forward", 2, False)]
    short = graph.walk(a.id, depth=10, limit=2)
    assert (len(short.steps), short.truncated) == (2, True)
    assert [memo.id for memo in graph.walk(d.id).memos] == [d.id]
    with pytest.raises(NotFound):
        graph.walk("nobody")
    for bad in ({"depth": 0}, {"depth": 11}, {"limit": 0}, {"limit": 1001}):
        with pytest.raises(InvalidArgument):
            graph.walk(a.id, **bad)


def test_a_dense_graph_is_walked_in_no_time(world, space):
    """Where all are related to all, the ways are countless and the relations are not."""
    ids = [f"n{n}" for n in range(24)]
    for own in ids:
        entries_ = "".join(f"  - {{id: {other}, tag: t}}\n" for other in ids if other != own)
        world.write(f"Captures/default/{own}.md", f"---\nid: {own}\nrelations:\n{entries_}---\nx")
    world.run()
    found = space.memo_graph.walk("n0", depth=10, way="both", limit=1000)
    assert len(found.steps) == 24 * 23
    assert max(step.depth for step in found.steps) == 2


def test_a_memo_is_deleted_while_its_owner_has_marked_a_memo_that_relates_to_it(world, space):
    with acting_as(Author("mcp", "memory.delete")):
        marked, other = (space.memos.save(text).record for text in ("A marked memo.", "Another memo."))
        space.memo_graph.save(marked.id, other.id, "about")
        file = world.vault / marked.path
        before = edit(file.read_text(), {"promote": True})
        file.write_text(before)
        for _ in range(2):  # before and after it is indexed
            with pytest.raises(Conflict):
                space.memos.delete(marked.id)
            world.run()
        space.memos.delete(other.id)
    assert not (world.vault / other.path).exists()
    assert file.read_text() == before, "the entry stays, without a target"
    world.run()
    assert space.memo_graph.list().ties == ()
