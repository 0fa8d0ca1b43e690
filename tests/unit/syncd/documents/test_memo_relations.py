"""syncd/documents/memo_relations.py: the property `relations`, read and changed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument
from index.model import MemoRelation
from syncd.documents.memo_relations import checked_tag, drop_relations, read_relations, round_weight, save_relation
from syncd.notes.front_matter import compose, read_properties, split
from tests.support.parsed_notes import parse

RELATION = MemoRelation("b-1", "Two", "sees", 0.5, "why: so", 3, 1_700_000_000_000, 1_800_000_000_000)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=12)
TAGS = WORDS.map(str.strip).filter(bool).map(checked_tag)
IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True)
TIMES = st.integers(1_000_000_000_000, 4_000_000_000_000)
MADE = st.builds(
    MemoRelation, target=IDS, link=st.sampled_from(["Two", "Deploy checklist", "日本", "a-b 2"]), tag=TAGS,
    weight=st.integers(0, 100).map(lambda n: n / 100), reason=st.none() | WORDS, version=st.integers(1, 9), created_at=TIMES,
    updated_at=st.none() | TIMES,
)  # fmt: skip
MALFORMED = st.sampled_from(
    ["words", 1, None, [], {}, {"tag": "t"}, {"id": "x"}, {"id": "a b", "tag": "t"}, {"id": "x", "tag": ""}, {"id": "x", "tag": "t", "weight": 2},
     {"id": "x", "tag": "t", "weight": "much"}, {"id": "x", "tag": "t", "version": 0}, {"id": "x", "tag": "t", "created_at": "soon"},
     {"id": "x", "tag": "t", "reason": [1]}, {"id": "x", "tag": ["t"]}, {"id": "x", "tag": "t" * 65}]
)  # fmt: skip


def stated(text):
    return parse(text.encode(), "Captures/default/x.md", mtime_ms=1).memo_relations


def test_what_is_written_is_what_is_read():
    text = save_relation("---\nid: a\n---\nbody", RELATION, lambda _: False)
    assert text == (
        "---\nid: a\nrelations:\n"
        '  - target: "[[Two]]"\n    id: b-1\n    tag: sees\n    weight: 0.5\n    reason: "why: so"\n    version: 3\n'
        "    created_at: 2023-11-14T22:13:20.000Z\n    updated_at: 2027-01-15T08:00:00.000Z\n---\nbody"
    )
    assert stated(text) == (RELATION,)
    assert drop_relations(text, lambda one: one.tag == "sees") == "---\nid: a\n---\nbody"


def test_by_hand_a_link_and_a_tag_will_do():
    found, defects = read_relations(
        [{"target": "[[Two#^o1|second]]", "tag": " sees "}, {"id": 7, "tag": 5}, {"target": "Three", "tag": "t"}]
    )
    assert not defects
    assert found == (
        MemoRelation(None, "Two", "sees", 1.0, None, 1, None, None), MemoRelation("7", "", "5", 1.0, None, 1, None, None),
        MemoRelation(None, "Three", "t", 1.0, None, 1, None, None),
    )  # fmt: skip


@pytest.mark.parametrize("value", ["text", 1, {"a": 1}, True])
def test_what_is_no_list_is_a_defect(value):
    assert read_relations(value)[0] == ()
    assert [one.name for one in read_relations(value)[1]] == ["bad-relation"]


def test_a_repeat_is_a_defect_and_the_first_counts():
    entry = {"id": "b", "tag": "t", "weight": 0.1}
    found, (defect,) = read_relations([entry, entry | {"weight": 0.9}])
    assert [one.weight for one in found] == [0.1]
    assert "entry 2" in defect.detail


def test_entities_and_the_vault_proper_state_no_memo_relations():
    text = b"---\nrelations:\n  - words\n  - {id: b, tag: t}\n---\n"
    for path in ("Notes/x.md", "Captures/default/Entities/x.md"):
        document = parse(text, path, mtime_ms=1)
        assert document.memo_relations == ()
        assert not any(defect.name == "bad-relation" for defect in document.defects)
    assert len(parse(text, "Captures/default/x.md", mtime_ms=1).memo_relations) == 1


@pytest.mark.parametrize(
    ("weight", "two"), [(0.005, 0.01), (0.455, 0.46), (1, 1.0), (0.1 + 0.2, 0.3), (1e-9, 0.0), (-0.0, 0.0)]
)
def test_a_weight_has_two_decimals(weight, two):
    assert repr(round_weight(weight)) == repr(two)


@pytest.mark.parametrize("tag", ["", " ", "x" * 65, "a\nb", "a\x00", "\u2028"])
def test_a_tag_is_one_line_of_64_characters(tag):
    with pytest.raises(InvalidArgument, match="tag"):
        checked_tag(tag)


@given(st.lists(st.one_of(MADE, MALFORMED), max_size=6), MADE, st.sampled_from(["\n", "\r\n"]), st.data())
def test_saving_and_dropping_leave_all_other_entries_as_they_are(before, made, newline, data):
    text = "---\nid: a\n---\nbody".replace("\n", newline)
    for one in before:
        text = save_relation(text, one, lambda _: False) if isinstance(one, MemoRelation) else beside(text, one)
    values = read_properties(split(text)[0]).get("relations") or []
    known = stated(text)

    def same(one):
        return (one.target, one.tag) == (made.target, made.tag)

    more = save_relation(text, made, same)
    assert replace(made, link="") in [replace(one, link="") for one in stated(more)]
    assert [one for one in stated(more) if not same(one)] == [one for one in known if not same(one)]
    assert split(more)[1] == split(text)[1]
    assert more.count("\n") == more.count(newline)
    assert save_relation(more, made, same) == more
    back = drop_relations(more, same)
    assert [one for one in stated(back) if same(one)] == []
    left = read_properties(split(back)[0]).get("relations") or []
    assert left == [value for value in values if value in left]
    if not any(same(one) for one in known):
        assert back == text


def beside(text, value):
    """The note with something among its relations that is none."""
    front, body = split(text)
    found = read_properties(front)
    found["relations"] = [*(found.get("relations") or []), value]
    newline = "\r\n" if "\r\n" in text else "\n"
    return compose(found, "").replace("\n", newline) + body


def test_of_two_spellings_the_one_that_is_read_is_changed():
    entry = "relations:\n  - {target: '[[Two]]', id: b-1, tag: sees}\n"
    text = f"---\nRelations: [x]\n{entry}---\n"
    (kept,) = stated(text)
    both = save_relation(text, replace(RELATION, target="c", link="Three"), lambda _: False)
    assert [relation.target for relation in stated(both)] == [kept.target, "c"]
    assert drop_relations(both, lambda relation: relation.target == "c") == text
    assert "Relations: [x]" in drop_relations(text, lambda _: True)
