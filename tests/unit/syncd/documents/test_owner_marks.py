"""A person's marks in a capture: what counts as one, and what only looks like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.captures.note_update import property_error
from syncd.documents.owner_marks import (
    PERSONS,
    OwnerMarks,
    decode_marks,
    encode_marks,
    find_overreach,
    read_marks,
    read_owner_keys,
)
from syncd.notes.front_matter import compose, split
from syncd.notes.property_reader import OWNED, FrontmatterError


@pytest.mark.parametrize(
    ("front", "counts"),
    [
        pytest.param("promote: true", True, id="as Obsidian writes it"),
        pytest.param("Promote: true", True, id="letter case is no part of a key"),
        pytest.param("promote:   true   # yes", True, id="with a comment behind"),
        pytest.param("promote: 'true'", False, id="a text"),
        pytest.param('promote: "true"', False, id="another"),
        pytest.param("promote: yes", False, id="a text to YAML 1.2"),
        pytest.param("promote: True", False, id="a text to this reader"),
        pytest.param("promote: 1", False, id="a number"),
        pytest.param("promote: [true]", False, id="a list"),
        pytest.param("promote: {true: true}", False, id="a mapping"),
        pytest.param("promote:", False, id="nothing"),
        pytest.param("promote: false", False, id="no"),
        pytest.param("promote: true\nPromote: false", False, id="two spellings"),
        pytest.param("promote: true\npromote: true", False, id="twice"),
        pytest.param("x: |\n  promote: true", False, id="in a text"),
        pytest.param("x:\n  promote: true", False, id="in a mapping"),
        pytest.param("# promote: true", False, id="in a comment"),
        pytest.param('"promote\\u200b": true', False, id="with a character that does not show"),
        pytest.param("ｐromote: true", False, id="in wide letters"),
        pytest.param("summary: promote: true", False, id="broken"),
    ],
)
def test_only_a_persons_true_is_a_mark(front, counts):
    assert read_marks(f"---\nid: a\n{front}\n---\nbody\n").promote is counts


@pytest.mark.parametrize(
    "text",
    [
        "promote: true\n",
        "\n---\npromote: true\n---\n",
        "text\n---\npromote: true\n---\n",
        "---\npromote: true\nbody without an end\n",
        "```\n---\npromote: true\n---\n```\n",
        "---\nid: a\n---\n---\npromote: true\n---\n",
        "---\nid: a\n---\n%%\npromote:: true\n%%\n- [x] promote\n",
    ],
)
def test_text_is_no_mark(text):
    assert read_marks(text) == OwnerMarks()


@given(st.text(max_size=300))
def test_no_text_of_a_capture_marks_it(body):
    assert read_marks(compose({"id": "a"}, f"---\npromote: true\n---\n{body}")) == OwnerMarks()
    assert not read_marks(compose({"id": "a", "summary": f"x\npromote: true\n{body}"}, "")).promote


def test_all_that_a_person_says_is_told():
    found = read_marks(
        "---\npromote: false\nPromote_To: Projects/Ideas\nreview: Dismissed\nexpires: 2026-12-01\n"
        'suggested_folder: Notes\nsuperseded_by: "[[New]]"\npromote_problem: no\n---\n'
    )
    assert found == OwnerMarks(
        promote_to="Projects/Ideas",
        review="dismissed",
        expires=1_796_083_200_000,
        suggested_folder="Notes",
        superseded_by="[[New]]",
        promote_problem="no",
    )
    assert read_marks("---\npromote_to: 2026\n---\n").promote_to == "2026"
    assert read_marks("---\npromote_to: [a]\n---\n") == OwnerMarks(unclear=("promote_to",))
    assert read_marks("---\nreview: a\nREVIEW: b\n---\n") == OwnerMarks(twice=("review",))


@pytest.mark.parametrize(
    ("front", "unclear"),
    [
        ("promote: yes", True),
        ("promote: True", True),
        ('promote: "true"', True),
        ("promote: 0", True),
        ("promote: [true]", True),
        ("promote: true\nPromote: true", True),
        ("promote: true\npromote: false", True),
        ("tags: a\ntags: b\npromote: true", True),
        ("tags: a\ntags: b\npromote: false", False),
        ("promote: true", False),
        ("promote: false", False),
        ("promote:", False),
        ("promote: ''", False),
        ("review: yes", False),
    ],
)
def test_what_may_be_meant_as_a_mark_and_is_none_is_told(front, unclear):
    assert ("promote" in read_marks(f"---\nid: a\n{front}\n---\nbody\n").unclear) is unclear


def test_the_persons_keys_are_memex_s_own():
    assert PERSONS < OWNED


@pytest.mark.parametrize("key", ["promote", "PROMOTE", " promote ", "ｐromote", "Promoted_At", "suggested_links"])
def test_a_key_is_a_persons_in_any_spelling(key):
    front = split(compose({"id": "a", key: "x"}, ""))[0]
    assert list(read_owner_keys(front).values()) == [["x"]]


def test_what_can_not_be_read_has_no_keys():
    with pytest.raises(FrontmatterError):
        read_owner_keys("---\na: [\n---\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own", "fits"),
    [
        pytest.param(f"note: {'x' * 40_000}\n", True, id="long"),
        pytest.param(f"note: {'x' * 49_200}\n", False, id="longer than an agent's part"),
        pytest.param(f"note: {'x' * 65_300}\n", False, id="nearly all there is"),
        pytest.param(f"note: [{'0, ' * 3_900}]\n", True, id="many"),
        pytest.param(f"note: [{'0, ' * 4_100}]\n", False, id="more than an agent's part"),
    ],
)
def test_how_much_an_agent_may_write_does_not_depend_on_what_is_its_owner_s(own, fits):
    said = f"promote_to: {'Birds ' * 50}\nsuggested_links:\n  - '[[A]]'\n  - '[[B]]'\n"
    for more in ("", said):
        was, now = f"---\nid: a\n{more}---\ntext", f"---\nid: a\n{more}{own}---\ntext"
        told = find_overreach(was, now, is_node=lambda: False)
        assert (told is None) == fits
        if told is not None:
            too_large = FrontmatterError("whatever", defect="frontmatter-too-large")
            assert told.as_dict() == property_error(too_large).as_dict(), "as where all of it is too much"
        if len(own) < 60_000:  # else nobody can read it
            assert find_overreach(now, now.replace("text", "other"), is_node=lambda: False) is None, (
                "what is there already"
            )


@given(
    st.builds(
        OwnerMarks,
        promote=st.booleans(),
        promote_to=st.none() | st.text(),
        expires=st.none() | st.integers(-(2**53), 2**53),
        twice=st.lists(st.sampled_from(sorted(PERSONS))).map(tuple),
        unclear=st.lists(st.sampled_from(["promote", "promote_to"])).map(tuple),
    )
)
def test_marks_survive_being_kept_as_text(owner_marks):
    assert decode_marks(encode_marks(owner_marks)) == owner_marks


def test_no_marks_are_no_text():
    assert encode_marks(OwnerMarks()) == ""
