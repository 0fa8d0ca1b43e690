"""syncd/page/views/note_versions.py: the history of a note in words, with the ways back."""

from __future__ import annotations

import pytest

from syncd.page.views.note_versions import describe_restore, list_versions

EVENT = {
    "at": 1000, "what": "update", "path": "a.md", "surface": "mcp", "tool": "kb_update_note", "key": "claude", "request": "c1", "entry": 2,
    "undone": False, "after": "f00d", "commit": "", "author": "", "subject": "", "source": "", "diff": ["--- a.md", "+++ a.md", "@@ -1 +1 @@", "-old", "+new", " same"],
}  # fmt: skip


def test_an_event_says_who_did_what_how():
    (version,) = list_versions([EVENT])
    assert (version["verb"], version["who"], version["how"], version["call"]) == (
        "changed",
        "claude",
        "kb_update_note",
        "c1",
    )
    assert [line.kind for line in version["lines"]] == ["place", "place", "place", "removed", "added", "same"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"undone": True}, ("changed", "claude", "kb_update_note", "")),
        ({"what": "edit", "key": "", "tool": "", "surface": "file"}, ("changed outside Memex", "", "", "")),
        (
            {"what": "removed", "key": "", "tool": "", "surface": "file"},
            ("deleted outside Memex after this time", "", "", ""),
        ),
        ({"key": "", "tool": "review", "surface": "daemon"}, ("changed", "Memex", "review", "c1")),
        (
            {"what": "commit", "commit": "abc", "author": "Ann", "subject": "Fix", "key": ""},
            ("committed", "Ann", "Fix", ""),
        ),
        ({"what": "promote", "author": "Ann", "key": ""}, ("promoted", "Ann", "kb_update_note", "c1")),
    ],
)
def test_kinds_of_events(fields, expected):
    (version,) = list_versions([EVENT | fields])
    assert (version["verb"], version["who"], version["how"], version["call"]) == expected


def test_the_newest_event_comes_first_and_a_lost_text_has_no_lines():
    versions = list_versions([EVENT | {"at": 1, "diff": None}, EVENT | {"at": 2}])
    assert [version["at"] for version in versions] == [2, 1]
    assert versions[1]["lines"] is None


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        ({}, ""),
        ({"additions": ["review"]}, "The lines include what Memex added after this write: review."),
        ({"diff": None}, ""),
        ({"diff": None, "surface": "daemon"}, ""),
        ({"diff": None, "never_kept": True}, "Memex keeps no version of a note from before its own additions."),
    ],
)
def test_lines_that_include_more_or_never_were_kept_have_a_remark(fields, remark):
    (version,) = list_versions([EVENT | fields])
    assert version["remark"] == remark


def test_only_a_text_that_can_be_restored_has_a_name():
    names = [version["name"] for version in list_versions([EVENT, EVENT | {"restorable": True}])]
    assert names == ["f00d", ""]


def test_a_call_that_moved_notes_is_not_undone_as_a_call():
    (version,) = list_versions([EVENT | {"tool": "promote"}])
    assert version["call"] == ""


@pytest.mark.parametrize(
    ("moves", "ways"),
    [
        (["promote"], ["unpromote"]),
        (["dismiss"], ["unarchive"]),
        (["expire", "update"], ["", "unarchive"]),
        (["promote", "unpromote"], ["", ""]),
        (["promote", "unpromote", "promote"], ["unpromote", "", ""]),
    ],
)
def test_the_last_move_can_be_taken_back(moves, ways):
    events = [EVENT | {"what": move, "request": ""} for move in moves]
    assert [version["way"] for version in list_versions(events)] == ways


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"undo": None}, "`a.md` already has this text."),
        (
            {"commit": "1" * 40, "kept": "2" * 40},
            "Restored `a.md` in commit `1111111111`. The text before is in commit `2222222222`. ",
        ),
        ({}, "Restored `a.md`. To undo this, use the history below, or run `memex undo c1`"),
    ],
)
def test_a_restore_is_described(fields, sentence):
    result = {"path": "a.md", "commit": "", "kept": "", "undo": "c1"}
    assert describe_restore(result | fields).startswith(sentence)
