"""Two notes that say the same become one: with all that either said, and every byte of the kept one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syncd.consolidation.note_merge import mark_superseded, merge_text, missing_blocks
from syncd.notes.front_matter import FrontmatterError, read_properties, split
from tests.support.parsed_notes import parse

HEAD = "---\nid: a\ncreated_at: 2026-01-01T00:00:00.000Z # mine\ntags: [x]   # mine\n---\n"
OTHER = "---\nid: b\ncreated_at: 2026-02-01T00:00:00.000Z\n---\n"


def united(kept, other):
    notes = tuple(
        parse(text.encode(), f"Captures/default/{name}.md", mtime_ms=0) for text, name in ((kept, "a"), (other, "b"))
    )
    return merge_text(kept, other, notes)


def test_what_says_the_same_changes_nothing():
    assert united(HEAD + "Both legs count.\n", OTHER + "both  legs\ncount!\n") == HEAD + "Both legs count.\n"


def test_what_only_the_other_says_comes_to_the_end():
    told = united(
        HEAD + "One.\r\n\r\nTwo.", OTHER + "One\n\n## More\n\nThree.\n\n```py\nx = -1\n```\n\n## Nothing new\n"
    )
    body = "One.\r\n\r\nTwo.\r\n\r\n## More\r\n\r\nThree.\r\n\r\n```py\r\nx = -1\r\n```\r\n"
    assert split(told)[1] == body
    assert split(told)[0] == HEAD[:-4] + 'version: 2\nupdated_at: "2026-02-01T00:00:00.000Z"\n---\n'.replace('"', "")


def test_of_code_every_sign_counts():
    assert missing_blocks("```\na + b\n```\n", "```\na - b\n```\n") == "```\na - b\n```"
    assert missing_blocks("a + b\n", "a - b\n") == ""
    assert missing_blocks("```\nexport PATH=x\n```\n", "```\nexport path=x\n```\n") == "```\nexport path=x\n```"
    inner, outer = (f"```py\nfor x in y:\n    a()\n{indent}b()\n```" for indent in ("    ", ""))
    assert missing_blocks(inner, outer) == outer
    assert missing_blocks(inner.replace("\n", "\r\n"), inner) == ""


@pytest.mark.parametrize("block", ["    rm -rf x\n    done", "\tx = 1\n\ty", "   ```\n   x\n   ```", "   - a\n   - b"])
def test_code_and_lists_keep_the_indentation_of_their_first_line(block):
    assert missing_blocks("Hello.\n", f"Hello.\n\n{block}\n") == block
    assert missing_blocks(f"{block}\n", f"Hello.\n\n{block}\n") == "Hello."


def test_tags_properties_and_relations_are_those_of_both_and_the_kept_note_s_come_first():
    kept = "---\nid: a\ntags: # mine\n  - x\nproject: one\nrelations:\n  - target: '[[N]]'\n    tag: uses\n---\nsame\n"
    other = "---\nid: b\ntags: [X, legs]\nproject: two\nowner: me\nsummary: S\nsource: cli\nrelations:\n  - target: '[[N]]'\n    tag: uses\n  - target: '[[M]]'\n    tag: has\n---\nsame\n"
    told = read_properties(split(united(kept, other))[0])
    assert told["tags"] == ["x", "legs"]
    assert (told["project"], told["owner"], told["summary"], told["source"], told["id"]) == (
        "one",
        "me",
        "S",
        "cli",
        "a",
    )
    assert [one["target"] for one in told["relations"]] == ["[[N]]", "[[M]]"]
    assert "tags: # mine\n  - x\n  - legs\n" in united(kept, other)


def test_the_person_s_own_marks_are_not_taken_over():
    marks = "promote: true\nreview: dismissed\nExpires: 2026-01-01\npublish: true\ndg-home: true\ncollection: memory\n"
    told = united(HEAD + "a\n", f"---\nid: b\n{marks}---\nb\n")
    assert read_properties(split(told)[0]).keys() == {"id", "created_at", "tags", "version", "updated_at"}


@pytest.mark.parametrize(
    ("entry", "stays"),
    [
        pytest.param("target: '[[a]]'\n    id: a", False, id="to the kept note"),
        pytest.param("target: '[[x/a|A]]'\n    id: a", False, id="to the kept note, by its id"),
        pytest.param("target: '[[default/A]]'", False, id="to the kept note, by its name"),
        pytest.param("target: '[[default/A.MD]]'", False, id="to the kept note, by its file"),
        pytest.param("target: '[[b]]'", False, id="to the copy itself"),
        pytest.param("target: '[[other/a]]'", True, id="to a note of the same name elsewhere"),
        pytest.param("target: '[[a]]'\n    id: c", True, id="to another note, by its id"),
    ],
)
def test_a_relation_between_the_two_notes_is_not_taken_over(entry, stays):
    told = united(HEAD + "a\n", f"---\nid: b\nrelations:\n  - {entry}\n    tag: same\n---\nb\n")
    assert ("relations" in read_properties(split(told)[0])) == stays


@pytest.mark.parametrize("body", ["```\nopen", "a\n\n%%\nopen\n"])
def test_nothing_is_added_behind_what_is_not_closed(body):
    with pytest.raises(FrontmatterError, match="unclosed"):
        united(HEAD + body, OTHER + "more\n")


def test_properties_that_can_not_be_changed_by_line_are_refused():
    with pytest.raises(FrontmatterError):
        united("---\nid: a\nid: b\n---\na\n", OTHER + "b\n")


def test_the_older_note_says_what_takes_its_place_in_a_line_of_its_own():
    assert mark_superseded(HEAD + "a\n", "New note") == HEAD[:-4] + 'superseded_by: "[[New note]]"\n---\na\n'


paragraphs = st.lists(
    st.sampled_from(["One.", "Two words.", "## Head", "- item\n- more", "```\ncode\n```", "> quote", "Ünï"]), max_size=5
)


@settings(deadline=None)
@given(paragraphs, paragraphs, st.sampled_from(["\n", "\r\n"]))
def test_no_paragraph_is_lost_and_no_byte_of_the_kept_text(mine, theirs, end):
    kept = HEAD + (2 * end).join(text.replace("\n", end) for text in mine) + end
    told = united(kept, OTHER + "\n\n".join(theirs) + "\n")
    body = split(told)[1].replace("\r\n", "\n")
    assert split(told)[1].startswith(split(kept)[1].rstrip("\r\n"))
    assert all(text in body for text in theirs if text != "## Head")
    assert united(told, OTHER + "\n\n".join(theirs) + "\n") == told
