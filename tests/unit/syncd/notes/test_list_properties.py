"""syncd/notes/list_properties.py: one item of a list property is changed by its own lines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.notes.front_matter import FrontmatterError, compose, read_properties, split
from syncd.notes.list_properties import edit_items

HAND_MADE = """---
id: a  # mine
relations:
  # the first
  - target: "[[One]]"   # why
    tag: 'sees'
    own: [1, 2]

  - {target: "[[Two]]", tag: knows}
  -   target: "[[Three]]"
      # inside
      tag: is
  - not a mapping
# before the rest
title: x
---
Body
- tag: not mine
"""


def values(text):
    return read_properties(split(text)[0]).get("relations")


def changed_lines(before, after):
    return [line for line in after.splitlines() if line not in before.splitlines()]


def test_a_key_of_an_item_is_set_on_its_line():
    text = edit_items(HAND_MADE, "relations", {0: {"tag": "likes"}})
    assert changed_lines(HAND_MADE, text) == ["    tag: likes"]
    assert text.replace("tag: likes", "tag: 'sees'") == HAND_MADE


def test_a_new_key_stands_below_the_others_of_its_item():
    text = edit_items(HAND_MADE, "relations", {2: {"weight": 0.5}})
    assert text.replace("      weight: 0.5\n", "") == HAND_MADE
    assert text.index("tag: is") < text.index("weight: 0.5") < text.index("not a mapping")


def test_an_item_in_braces_is_written_anew_alone():
    text = edit_items(HAND_MADE, "relations", {1: {"weight": 0.5}})
    assert changed_lines(HAND_MADE, text) == ['  - target: "[[Two]]"', "    tag: knows", "    weight: 0.5"]
    assert values(text)[1] == {"target": "[[Two]]", "tag": "knows", "weight": 0.5}


def test_an_item_leaves_with_its_lines_and_no_others():
    text = edit_items(HAND_MADE, "relations", {0: None, 3: None})
    assert [one["target"] for one in values(text)] == ["[[Two]]", "[[Three]]"]
    assert changed_lines(HAND_MADE, text) == []
    assert "# the first" in text
    assert "# before the rest\ntitle: x" in text


def test_what_is_added_stands_behind_the_last():
    text = edit_items(HAND_MADE, "relations", {}, [{"target": "[[Four]]", "tag": "x y"}])
    assert changed_lines(HAND_MADE, text) == ['  - target: "[[Four]]"', "    tag: x y"]
    assert text.index("not a mapping") < text.index("Four") < text.index("# before")


def test_the_last_item_takes_the_property_with_it():
    text = edit_items("---\nid: a\nrelations:\n  - {a: 1}\nx: 1\n---\nb", "relations", {0: None})
    assert text == "---\nid: a\nx: 1\n---\nb"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "list_",
    [
        "relations: [{a: 1}, x]\n",
        "relations:\n- a: 1\n- x\n",
        "Relations:\n  -\n    a: 1\n  - x\n",
        "relations: [{a: 1},\n  x]\n",
    ],
)
def test_a_list_may_be_written_in_any_way(list_, newline):
    text = f"\ufeff---\nid: a\n{list_}---\nbody".replace("\n", newline)
    made = edit_items(text, "relations", {0: {"b": "c"}}, [{"d": 2}])
    found = read_properties(split(made)[0])
    assert found.get("relations", found.get("Relations")) == [{"a": 1, "b": "c"}, "x", {"d": 2}]
    assert made.startswith("\ufeff---" + newline)
    assert made.count("\n") == made.count(newline)
    assert made.endswith("---" + newline + "body")


def test_a_note_without_properties_gets_them():
    assert edit_items("body", "relations", {}, [{"a": 1}]) == "---\nrelations:\n  - a: 1\n---\nbody"
    assert (
        edit_items("---\nid: a\nrelations:\n---\n", "relations", {}, [{"a": 1}])
        == "---\nid: a\nrelations:\n  - a: 1\n---\n"
    )


@pytest.mark.parametrize("text", ["---\nrelations: text\n---\n", "---\na: [\n---\n", "---\nrelations:\n  - a: 1\n"])
def test_what_is_no_list_or_broken_is_left_alone(text):
    with pytest.raises(FrontmatterError):
        edit_items(text, "relations", {}, [{"a": 1}])


words = st.text(max_size=12)
scalars = st.one_of(words, st.integers(-9, 9), st.booleans(), st.floats(0, 1).map(lambda n: round(n, 2)))
items = st.one_of(scalars, st.dictionaries(words, st.one_of(scalars, st.lists(words, max_size=2)), max_size=4))


@given(
    st.lists(items, max_size=5),
    st.dictionaries(st.integers(0, 4), st.one_of(st.none(), st.dictionaries(words, st.one_of(st.none(), scalars), max_size=3))),
    st.lists(items, max_size=3),
    st.sampled_from(["\n", "\r\n"]),
)  # fmt: skip
def test_what_is_written_is_what_was_asked_and_nothing_else(before, changed, added, newline):
    changed = {at: one for at, one in changed.items() if at < len(before)}
    for at, one in changed.items():
        held = before[at] if isinstance(before[at], dict) else {}
        if one and len({key.casefold() for key in {**held, **one}}) < len({**held, **one}):
            return  # keys that differ by letter case are one in a note
    text = compose({"id": "a", "list": before, "z": 1}, "").replace("\n", newline) + "body"
    made = edit_items(text, "list", changed, added)
    expected = []
    for at, value in enumerate(before):
        if at not in changed:
            expected.append(value)
        elif changed[at] is not None:
            whole = {**(value if isinstance(value, dict) else {}), **changed[at]}
            expected.append({key: part for key, part in whole.items() if changed[at].get(key, "") is not None})
    expected += added
    found = read_properties(split(made)[0])
    assert json.dumps(found.get("list") or [], sort_keys=True) == json.dumps(expected, sort_keys=True)
    assert (found["id"], found["z"], split(made)[1]) == ("a", 1, "body")
    assert edit_items(made, "list", {}, []) == made


@pytest.mark.parametrize("other", ["Relations: [x]", "Relations: mine", "RELATIONS:\n  - y"])
def test_of_several_spellings_the_exact_one_is_changed(other):
    text = f"---\n{other}\nrelations: [a, b]\n---\n"
    left = edit_items(text, "relations", {0: None}, ["c"])
    before, after = read_properties(split(text)[0]), read_properties(split(left)[0])
    assert after == {**before, "relations": ["b", "c"]}
