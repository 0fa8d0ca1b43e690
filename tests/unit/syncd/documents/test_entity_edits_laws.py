"""The laws of edits of an entity's note: what is given comes back, a person's bytes stay, and an ordinal is given once."""

import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from index.errors import InvalidArgument, NotFound
from index.model import Statement
from syncd.documents import entity_edits
from syncd.documents.entity_lines import parse_page
from syncd.documents.entity_node import NodeProperties, NumberedObservations, checked_type
from syncd.notes.front_matter import read_properties, split
from tests.support.entity_notes import NOW, STAMP, observed, said
from tests.support.example_counts import examples

OWN = {"id": "ada", "type": "entity", "entity_type": "person", "created_at": "2026-11-20T14:32:05.120Z"}

# What a line of an observation may look like and must not be taken for.
LOOKS = [
    "## Observations",
    "# Relations",
    "- item",
    "* item",
    "12. item ^o3",
    "- [ ] task",
    "knows:: [[Charles Babbage]]",
    "[knows:: [[X]]] in a sentence",
    "```",
    "```python",
    "~~~~",
    "%%",
    "%% note %%",
    "<!--",
    "-->",
    "$$",
    "---",
    "===",
    "- - -",
    "* * *",
    "> quote",
    "| a | b |",
    "^o7",
    "text ^o7",
    "text ^o999999999999",
    "^block",
    "text ^block",
    "^o3 ^block",
    "text ^block ^o3",
    "    code",
    "\tcode",
    "a  ",
    "#tag [[link|shown]] ![[embed]]",
    'said "so", \\n it\'s `code`',
    "👩🏽‍🚀 emoji",
    "עברית \u200fמימין",
    "日本語の事実　です。",
    "\ufeffmark",
    "a\u2028b\x0bc\x85d\x1ce",
    "",
    "   ",
    "\u3000",
]
lines = st.sampled_from(LOOKS) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12
)
contents = (
    st.lists(lines, min_size=1, max_size=6)
    .map("\n".join)
    .filter(lambda text: text.strip())
    .map(lambda text: text.replace("\r", ""))
)


def normal(text):
    return text.replace("\r\n", "\n").strip()


@given(st.lists(contents, max_size=5))
@examples(300)
def test_what_is_given_comes_back_as_it_was_given(given_contents):
    text = entity_edits.compose(OWN, given_contents)
    assert list(observed(text).items()) == list(enumerate(map(normal, given_contents), 1))
    assert said(text).relations == ()
    assert not said(text).unsettled
    assert said(text).last_ordinal == len(given_contents)


def test_a_new_note_is_one_that_obsidian_understands():
    assert entity_edits.compose(
        OWN | {"tags": ["math"]},
        ["Wrote the first published algorithm", "Two lines,\r\n  the second indented", "a list:\n- in it"],
    ) == (
        "---\nid: ada\ntype: entity\nentity_type: person\ncreated_at: 2026-11-20T14:32:05.120Z\ntags:\n  - math\n"
        "last_ordinal: 3\nobserved_at: 2026-11-20T14:32:05.120Z\n---\n"
        "## Observations\n"
        "- Wrote the first published algorithm ^o1\n"
        "- Two lines,\n    the second indented\n  ^o2\n"
        "- a list:\n  - in it\n\n  ^o3\n"
    )
    assert entity_edits.compose(OWN, []).endswith("\n---\n## Observations\n")


# A person's note, out of pieces that no edit may touch.


KEPT = st.sampled_from(
    [
        "Prose about her.",
        "prose ^o4 in between",
        "",
        "",
        "### Later",
        "```\n- code\n## Observations\nknows:: [[Code]]\n```",
        "%%\n- hidden\nknows:: [[Hidden]]\n%%",
        "> - quoted\n> knows:: [[Quoted]]",
        "| a | b |\n|---|---|\n| c | d |",
        "trailing blanks  ",
        "日本語の文。",
    ]
)
ITEMS = st.sampled_from(
    [
        "- settled ^o1",
        "* another ^O3",
        "- by hand",
        "1. numbered\n   and wrapped",
        "- parent\n    - child\n    - child ^o2",
        "-  loose  ",
        "- copy ^o1",
        "- linked to ^abc123",
        "* both ^o4 ^b-1",
        "- the other way ^B2 ^o6",
        "- parent ^c3\n    - child ^d4",
        "- lines\n  and\n\n  more\n\n  ^e5",
        " - a blank more",
        "  - two more\n    of it",
        "   - three more ^f6",
        "  prose, indented",
        "- lines\n  and\n\n  more\n  ^o9",
        "- > quote\n  > more",
        "- ",
        "-",
        "---",
        "===",
    ]
)
STATED = st.sampled_from(
    [
        "- knows:: [[B]]",
        "bare:: [[C]], [[D|d]]",
        "Met [mentor:: [[E]]] once.",
        "- text\n    - nested:: [[F]]",
        "- knows:: [[B]], [[F]]\n    - j:: [[C]]",
        "knows:: [[E]]\n    k:: [[D]]",
        "- no relation",
    ]
)
FRONTS = st.sampled_from(
    [
        "",
        "---\nid: ada # comment\n\nversion: 4\nlast_ordinal: 3\nAliases: [Countess]\n---\n",
        "---\n# only a comment\n---\n",
        "---\nVersion: 2\nUpdated_At: 2020-01-01\nsummary: >\n  folded\n  text\nid: x\n---   \n",
        "---\nid: x\n---",
    ]
)


@st.composite
def notes(draw):
    """A note as a person may have it, with any line ends, with or without a byte order mark and a last line end."""
    parts = draw(st.lists(KEPT | STATED, max_size=4))
    if draw(st.booleans()):
        parts += ["", draw(st.sampled_from(["## Observations", "# observations #", "#### OBSERVATIONS"]))]
        parts += draw(st.lists(KEPT | ITEMS | ITEMS, max_size=7))
    if draw(st.booleans()):
        parts += ["", "# Relations", *draw(st.lists(KEPT | STATED, max_size=4))]
    front = draw(FRONTS)
    body = "\n".join(parts) + "\n" * draw(st.integers(0, 2))
    if front and not front.endswith("\n"):
        body = ""
    text = "\ufeff" * draw(st.booleans()) + front + body
    return text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n", "\r"])))


def lines_of(text):
    """The lines of the body with their ends; of the last one, whether it has an end is not compared here."""
    return [line.rstrip("\r\n") for line in re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", split(text)[1])]


def kept_in_order(lines, among):
    rest = iter(among)
    return all(line in rest for line in lines)


def unmarked(line):
    """A line without the id at its end, which settling may add or change. A block id of a person's stays behind it."""
    line = re.sub(r" \^[oO][0-9]+(?=(?: \^[A-Za-z0-9-]+)?$)", "", line)
    return line.rstrip(" ") if line.strip(" ") == "-" else line  # an id stands one blank behind a mark without text


def anchors(text):
    """The block ids by which a person's links lead to observations: what ends the last line, or the first."""
    front, body = split(text)
    items = NumberedObservations(parse_page(body), NodeProperties(read_properties(front), []).last_ordinal()).items
    return {ordinal: item.anchor.text for ordinal, item in items.items() if item.anchor}


def linkable(text):
    """The block ids of a person's that Obsidian finds: those that end a line, whatever it belongs to."""
    ends = [re.search(r"\s(\^[A-Za-z0-9-]+)$", line) for line in lines_of(text)]
    return [found[1] for found in ends if found and not re.fullmatch(r"\^[oO][1-9][0-9]{0,11}", found[1])]


def statements(text):
    return set(said(text).relations)


def check_the_rest(before, after, *, gone=0):
    """What any edit must keep: all other lines in their order, line ends, byte order mark, last line end, properties."""
    old, new = [unmarked(line) for line in lines_of(before)], [unmarked(line) for line in lines_of(after)]
    if not gone:
        assert kept_in_order(old, new)
    assert after.startswith("\ufeff") == before.startswith("\ufeff")
    ends = set(re.findall(r"\r\n|\r|\n", before)) or {"\n"}
    assert set(re.findall(r"\r\n|\r|\n", after)) <= ends
    if split(before)[1] and not gone:
        assert (after[-1] in "\r\n") == (before[-1] in "\r\n")
    stamped = {"updated_at", "version", "last_ordinal", "observed_at", "summary_updated_at", "summary"}
    was, now = read_properties(split(before)[0]), read_properties(split(after)[0])
    assert {key: value for key, value in now.items() if key.casefold() not in stamped} == {
        key: value for key, value in was.items() if key.casefold() not in stamped
    }
    comments = re.findall(r"#[^\r\n]*", split(before)[0])
    assert kept_in_order(comments, re.findall(r"#[^\r\n]*", split(after)[0]))


def check_settled(before, after):
    """Every observation that was there has the ordinal that it was told to have, now stated."""
    node = said(after)
    assert not node.unsettled
    assert read_properties(split(after)[0]).get("last_ordinal", 0) == node.last_ordinal >= said(before).last_ordinal


@given(notes())
@examples(300)
def test_settling_states_the_ordinals_that_were_told_and_touches_nothing_else(text):
    after = entity_edits.state_ordinals(text, now=NOW)
    if not said(text).unsettled:
        assert after == text
        return
    check_the_rest(text, after)
    check_settled(text, after)
    assert observed(after) == observed(text)
    assert statements(after) == statements(text)
    assert anchors(after) == anchors(text)
    assert linkable(after) == linkable(text)
    assert len(lines_of(after)) - len(lines_of(text)) <= 2 * len(observed(text))  # ids on lines of their own
    assert entity_edits.state_ordinals(after, now=NOW + 1) == after


@given(notes(), st.lists(contents, min_size=1, max_size=3))
@examples(300)
def test_what_is_added_to_a_person_s_note_comes_back_and_the_rest_stays(text, given_contents):
    after, new = entity_edits.add_observations(text, given_contents, now=NOW)
    assert [one.content for one in new] == [normal(content) for content in given_contents]
    assert anchors(after) == anchors(text)
    first = said(text).last_ordinal + 1
    assert [one.ordinal for one in new] == list(range(first, first + len(new)))
    assert observed(after) == observed(text) | {one.ordinal: one.content for one in new}
    assert statements(after) == statements(text)
    check_the_rest(text, after)
    check_settled(text, after)


@given(notes(), contents, st.data())
@examples(300)
def test_an_observation_is_replaced_in_its_place(text, content, data):
    before = observed(text)
    if not before:
        with pytest.raises(NotFound, match="no observation 1"):
            entity_edits.replace_observation(text, 1, content, now=NOW)
        return
    ordinal = data.draw(st.sampled_from(sorted(before)))
    after, old = entity_edits.replace_observation(text, ordinal, content, now=NOW)
    assert old == before[ordinal]
    assert observed(after) == before | {ordinal: normal(content)}
    assert anchors(after) == anchors(text)
    if ordinal in anchors(text):
        assert anchors(text)[ordinal] in linkable(after)
    assert statements(after) == statements(text)
    check_the_rest(text, after, gone=1)
    if after != text:
        check_settled(text, after)


@given(notes(), st.sets(st.integers(1, 12)))
@examples(300)
def test_observations_are_removed_and_their_ordinals_stay_spent(text, ordinals):
    before = observed(text)
    after, gone = entity_edits.remove_observations(text, ordinals, now=NOW)
    assert set(gone) == ordinals & before.keys()
    assert observed(after) == {ordinal: content for ordinal, content in before.items() if ordinal not in ordinals}
    assert anchors(after) == {ordinal: id for ordinal, id in anchors(text).items() if ordinal not in ordinals}
    kept, were = (Counter(unmarked(line).strip(" \t") for line in lines_of(note)) for note in (after, text))
    assert {line for line in kept if kept[line] > were[line]} <= {""}  # ids on lines of their own, with a line above
    assert statements(after) == statements(text)
    if not gone:
        assert after == text
        return
    check_the_rest(text, after, gone=1)
    check_settled(text, after)
    _, new = entity_edits.add_observations(after, ["new"], now=NOW)
    assert new[0].ordinal == said(text).last_ordinal + 1


types = st.text(max_size=8).map(lambda text: f"t{text}".strip()).filter(lambda text: valid(checked_type, text))
targets = st.sampled_from(["Charles Babbage", "B", "Engine 2|Engine/2", "日本", "a`b", "50%", "C$ $D", "x.y"])


def valid(check, text):
    try:
        check(text)
    except InvalidArgument:
        return False
    return True


@given(notes(), types, targets)
@examples(300)
def test_a_relation_is_stated_once_and_the_rest_stays(text, type, target):
    after = entity_edits.add_relations(text, [(type, target)], now=NOW)
    stated = Statement(checked_type(type), target.partition("|")[0])
    assert statements(after) == statements(text) | {stated}
    assert observed(after) == observed(text)
    check_the_rest(text, after)
    assert entity_edits.add_relations(after, [(type, target)], now=NOW + 1) == after


@given(notes(), st.sets(st.sampled_from("BCDEF")), types)
@example("\n- knows:: [[B]]", {"B"}, "likes")
@examples(300)
def test_relations_are_taken_out_or_renamed_and_the_rest_stays(text, targets, type):
    before = statements(text)
    chosen = {one for one in before if one.target in targets}
    after, count = entity_edits.remove_relations(text, chosen.__contains__, now=NOW)
    assert (statements(after), count) == (before - chosen, len(chosen))
    renamed = entity_edits.retype_relations(text, chosen.__contains__, type, now=NOW)
    assert statements(renamed) == (before - chosen) | {Statement(checked_type(type), one.target) for one in chosen}
    for edited in (after, renamed):
        assert observed(edited) == observed(text)
        check_the_rest(text, edited, gone=1)
        others = [line for line in lines_of(text) if "::" not in line]
        assert kept_in_order(map(unmarked, others), map(unmarked, lines_of(edited)))
    assert (after == text) == (not chosen)


@given(notes(), st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
@examples(300)
def test_a_summary_is_a_property_and_the_rest_stays(text, summary):
    after = entity_edits.set_properties(text, {"summary": summary}, now=NOW)
    own = {key.casefold(): value for key, value in read_properties(split(after)[0]).items()}
    was = {key.casefold(): value for key, value in read_properties(split(text)[0]).items()}
    assert own.get("summary") == summary
    assert own.get("summary_updated_at") == (STAMP if summary else None)
    assert own["updated_at"] == STAMP
    assert own["version"] == was.get("version", 1) + 1
    assert observed(after) == observed(text)
    check_the_rest(text, after)
