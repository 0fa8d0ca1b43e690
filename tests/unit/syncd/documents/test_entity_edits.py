"""Edits of the note of an entity, by example: where a line is added, and what is left alone."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import Conflict, InvalidArgument
from index.model import Observation
from syncd.documents import entity_edits
from syncd.notes.front_matter import FrontmatterError, split
from tests.support.entity_notes import NOW, STAMP, observed
from tests.support.example_counts import examples

CRLF = "\ufeff---\r\nid: ada # hers\r\n---\r\nShe was.\r\n\r\n## Observations\r\n- one ^o1\r\nprose\r\n- two"


def test_an_edit_adds_its_own_lines_and_no_other():
    assert entity_edits.add_observations(CRLF, ["three\nfour"], now=NOW)[0] == (
        "\ufeff---\r\nid: ada # hers\r\n"
        f"updated_at: {STAMP}\r\nobserved_at: {STAMP}\r\nversion: 2\r\nlast_ordinal: 3\r\n"
        "---\r\nShe was.\r\n\r\n## Observations\r\n- one ^o1\r\nprose\r\n- two ^o2\r\n- three\r\n  four\r\n  ^o3"
    )


@pytest.mark.parametrize(
    ("body", "after"),
    [
        pytest.param("", "## Observations\n- x ^o1\n", id="an empty note"),
        pytest.param("Prose.", "Prose.\n\n## Observations\n- x ^o1", id="behind prose"),
        pytest.param("## Observations", "## Observations\n- x ^o1", id="under a bare heading"),
        pytest.param("## Observations\nProse.\n", "## Observations\n- x ^o1\n\nProse.\n", id="before prose"),
        pytest.param("## Relations\n- k:: [[B]]\n", "## Observations\n- x ^o1\n\n## Relations\n- k:: [[B]]\n", id="before relations"),
        pytest.param("a\n### Relations\n", "a\n\n### Observations\n- x ^o1\n\n### Relations\n", id="at their level"),
        pytest.param("## Observations\n* a\n\n\n## More\n", "## Observations\n* a ^o1\n* x ^o2\n\n\n## More\n", id="behind the last"),
        pytest.param("## Observations\n 1. a\n\n  2. b\n", "## Observations\n 1. a ^o1\n\n  2. b ^o2\n  - x ^o3\n", id="behind a numbered one"),
        pytest.param("## Observations\n    - code\n\n  prose\n\n## More\n", "## Observations\n    - code\n\n  prose\n- x ^o1\n\n## More\n", id="behind what would else sink into it"),
        pytest.param("## Observations\n- > a\n  > b\n", "## Observations\n- > a\n  > b\n\n  ^o1\n- x ^o2\n", id="behind the last one's id"),
    ],
)  # fmt: skip
def test_an_observation_is_added_where_a_person_would_look_for_it(body, after):
    assert split(entity_edits.add_observations(body, ["x"], now=NOW)[0])[1] == after


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("- a ^b1\n", "- a ^o1 ^b1\n"),
        ("- a\n  b ^b1\n", "- a\n  b ^o1 ^b1\n"),
        ("- a ^b1\n    - c ^b2\n", "- a ^o1 ^b1\n    - c ^b2\n"),
        ("- a\n\n  b\n\n  ^b1\n", "- a\n\n  b\n\n  ^o1 ^b1\n"),
        ("- > a\n  > b\n\n  ^b1\n", "- > a\n  > b\n\n  ^o1 ^b1\n"),
        ("- \n  - a\n    b\n", "- ^o1\n  - a\n    b\n"),
        ("- a ^o1\n- copy ^o1 ^b1\n", "- a ^o1\n- copy ^o2 ^b1\n"),
    ],
)
def test_an_ordinal_is_written_where_it_is_read_and_before_a_person_s_block_id_which_links_need_last(body, after):
    assert split(entity_edits.state_ordinals("## Observations\n" + body, now=NOW))[1] == "## Observations\n" + after


@pytest.mark.parametrize(
    ("content", "after"),
    [
        ("new", "- new ^o1 ^b1\n"),
        ("two\nlines", "- two\n  lines\n  ^o1 ^b1\n"),
        ("as if ^linked", "- as if ^linked\n  ^o1 ^b1\n"),
        ("a list:\n- in it", "- a list:\n  - in it\n\n  ^o1 ^b1\n"),
    ],
)
@pytest.mark.parametrize("ids", ["^b1", "^o1 ^b1", "^b1 ^o1"])
def test_a_person_s_block_id_stays_with_an_observation_that_is_replaced(content, after, ids):
    text = f"## Observations\n- old {ids}\n- other ^o2\n"
    assert split(entity_edits.replace_observation(text, 3 if ids == "^b1" else 1, content, now=NOW)[0])[1] == (
        "## Observations\n" + after.replace("^o1", "^o3" if ids == "^b1" else "^o1") + "- other ^o2\n"
    )


def test_a_person_s_block_id_goes_with_its_observation():
    text = "## Observations\n- a ^o1 ^b1\n- b\n  c\n  ^o2 ^b2\n- d ^o3 ^b3\n"
    assert split(entity_edits.remove_observations(text, [1, 2], now=NOW)[0])[1] == "## Observations\n- d ^o3 ^b3\n"


@given(st.lists(st.integers(0, 3), min_size=1, max_size=7), st.data())
@examples(200)
def test_an_item_that_would_sink_into_the_one_before_is_a_reason_to_refuse_a_removal(indents, data):
    """In a list that steps by one blank, an item can be too deep for the one before, once what stood between is removed."""
    text = "## Observations\n" + "".join(f"{' ' * n}- item {at}\n" for at, n in enumerate(indents))
    before = observed(text)
    gone = data.draw(st.sets(st.sampled_from(sorted(before))))
    try:
        after, _ = entity_edits.remove_observations(text, gone, now=NOW)
    except Conflict:
        assert max(indents) - min(indents) > 1
    else:
        assert observed(after) == {ordinal: content for ordinal, content in before.items() if ordinal not in gone}


@pytest.mark.parametrize(
    ("body", "after"),
    [
        pytest.param("", "## Relations\n- k:: [[B]]\n", id="an empty note"),
        pytest.param("## Observations\n- a ^o1\n", "## Observations\n- a ^o1\n\n## Relations\n- k:: [[B]]\n", id="behind observations"),
        pytest.param("# Observations\n- a ^o1\n", "# Observations\n- a ^o1\n\n## Relations\n- k:: [[B]]\n", id="behind observations of the first level"),
        pytest.param("## Relations\n- j:: [[A]]\n  - note\n\nProse.\n", "## Relations\n- j:: [[A]]\n  - note\n- k:: [[B]]\n\nProse.\n", id="behind the last and its notes"),
        pytest.param("## Relations\n\n## More\n", "## Relations\n- k:: [[B]]\n\n## More\n", id="under a bare heading"),
    ],
)  # fmt: skip
def test_a_relation_is_added_where_a_person_would_look_for_it(body, after):
    assert split(entity_edits.add_relations(body, [("k", "B")], now=NOW))[1] == after


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("- old:: [[A]], [[B]]\n  - note\n", "- new:: [[A]]\n- old:: [[B]]\n  - note\n"),
        ("> old:: [[A|x]]; [[B]]\n", "> old:: [[B]]\n> - new:: [[A|x]]\n"),
        ("Met [old:: [[A]]] and [old:: [[B]]].\n", "Met [new:: [[A]]] and [old:: [[B]]].\n"),
    ],
)
def test_a_relation_is_renamed_though_its_line_states_another(body, after):
    assert split(entity_edits.retype_relations(body, lambda one: one.target == "A", "new", now=NOW))[1] == after


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("- k:: [[A]]\n    - j:: [[B]]\n- i:: [[A]]\n", "- [[A]]\n    - j:: [[B]]\n"),
        ("- [k:: [[A]]]\n  more\n", "- [[A]]\n  more\n"),
        ("Prose.\n- k:: [[A]]\n---\n", "Prose.\n\n---\n"),
    ],
)
def test_what_stands_around_a_relation_keeps_its_meaning(body, after):
    assert split(entity_edits.remove_relations(body, lambda one: one.target == "A", now=NOW)[0])[1] == after


def test_an_observation_between_prose_and_a_rule_can_be_removed():
    after, gone = entity_edits.remove_observations("# Observations\n\nProse.\n- a ^o1\n---\n- b ^o2\n", [1], now=NOW)
    assert split(after)[1] == "# Observations\n\nProse.\n\n---\n- b ^o2\n"
    assert gone == [1]


@pytest.mark.parametrize("body", ["```\nopen", "%% open\n", "<!-- open\n", "---\n\n~~~~\n~~~\n"])
def test_a_note_that_would_swallow_what_is_added_is_left_alone(body):
    with pytest.raises(Conflict, match="unclosed"):
        entity_edits.add_observations(body, ["x"], now=NOW)
    with pytest.raises(Conflict, match="unclosed"):
        entity_edits.add_relations(body, [("k", "B")], now=NOW)
    closed = "## Observations\n- a ^o1\n" + body
    assert observed(entity_edits.add_observations(closed, ["x"], now=NOW)[0]) == {1: "a", 2: "x"}


@pytest.mark.parametrize("text", ["---\na: [\n---\n", "---\na: 1\na: 2\n---\n", "---\nid: x\nopen\n"])
def test_a_note_whose_properties_can_t_be_changed_is_left_alone(text):
    with pytest.raises(FrontmatterError):
        entity_edits.add_observations(text, ["x"], now=NOW)


def test_ordinals_can_be_spent():
    text = "---\nlast_ordinal: 999999999998\n---\n## Observations\n"
    text, new = entity_edits.add_observations(text, ["x"], now=NOW)
    assert new == [Observation(999_999_999_999, "x")]
    with pytest.raises(Conflict, match="no ordinals left"):
        entity_edits.add_observations(text, ["y"], now=NOW)
    with pytest.raises(Conflict, match="no ordinals left"):
        entity_edits.state_ordinals(text + "- y\n", now=NOW)


@pytest.mark.parametrize("link", ["", " ", "#a", "a#b|c", "a]]b", "[[a]]", "a\nb", "a]", "## a", "|"])
def test_a_link_that_leads_nowhere_is_not_written(link):
    with pytest.raises(InvalidArgument, match="can't be linked"):
        entity_edits.add_relations("", [("k", link)], now=NOW)


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: entity_edits.add_observations(text, [], now=NOW)[0],
        lambda text: entity_edits.replace_observation(text, 1, " one\n", now=NOW)[0],
        lambda text: entity_edits.remove_observations(text, [7], now=NOW)[0],
        lambda text: entity_edits.add_relations(text, [("k", "B|other words")], now=NOW),
        lambda text: entity_edits.remove_relations(text, lambda one: one.target == "A", now=NOW)[0],
        lambda text: entity_edits.retype_relations(text, lambda one: one.target == "B", "k", now=NOW),
        lambda text: entity_edits.state_ordinals(text, now=NOW),
    ],
)
def test_an_edit_that_changes_nothing_leaves_the_note_as_it_is(edit):
    text = "---\nlast_ordinal: 1\n---\n## Observations\n- one ^o1\n\n## Relations\n- k:: [[B]]\n"
    assert edit(text) == text


@pytest.mark.slow
def test_a_large_note_is_changed_in_linear_time():
    line = "- an observation of an ordinary length, with a [[link]]\n"
    text = "## Observations\n" + line * 8_000 + "\n## Relations\n" + "- k:: [[B]], [[C]]\n" * 4_000
    began = time.process_time()
    text = entity_edits.state_ordinals(text, now=NOW)
    text, _ = entity_edits.add_observations(text, ["x"], now=NOW)
    text, _ = entity_edits.replace_observation(text, 4_000, "y", now=NOW)
    text, gone = entity_edits.remove_observations(text, range(1, 8_000, 2), now=NOW)
    text, count = entity_edits.remove_relations(text, lambda one: one.target == "C", now=NOW)
    assert (len(gone), count, len(observed(text))) == (4_000, 1, 4_001)
    assert time.process_time() - began < 15  # measured: 2 s
