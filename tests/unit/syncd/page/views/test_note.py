"""syncd/page/views/note.py: the properties and the history of a note in words."""

from __future__ import annotations

import pytest

from syncd.page.views.note import list_properties, list_versions

EVENT = {
    "at": 1000, "what": "update", "path": "a.md", "surface": "mcp", "tool": "kb_update_note", "key": "claude", "request": "c1", "entry": 2,
    "undone": False, "commit": "", "author": "", "subject": "", "source": "", "diff": ["--- a.md", "+++ a.md", "@@ -1 +1 @@", "-old", "+new", " same"],
}  # fmt: skip


def test_an_event_says_who_did_what_how():
    (version,) = list_versions([EVENT])
    assert (version.verb, version.who, version.how, version.call) == ("changed", "claude", "kb_update_note", "c1")
    assert [line.kind for line in version.lines] == ["place", "place", "place", "removed", "added", "same"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"undone": True}, ("changed", "claude", "kb_update_note", "")),
        ({"what": "edit", "key": "", "tool": "", "surface": "file"}, ("changed outside Memex", "", "", "")),
        (
            {"what": "commit", "commit": "abc", "author": "Ann", "subject": "Fix", "key": ""},
            ("committed", "Ann", "Fix", ""),
        ),
        ({"what": "promote", "author": "Ann", "key": ""}, ("promoted", "Ann", "kb_update_note", "c1")),
    ],
)
def test_kinds_of_events(fields, expected):
    (version,) = list_versions([EVENT | fields])
    assert (version.verb, version.who, version.how, version.call) == expected


def test_the_newest_event_comes_first_and_a_lost_text_has_no_lines():
    versions = list_versions([EVENT | {"at": 1, "diff": None}, EVENT | {"at": 2}])
    assert [version.at for version in versions] == [2, 1]
    assert versions[1].lines is None


def test_properties_are_text_and_empty_ones_are_left_out():
    note = {
        "type": "note", "workspace": "", "collection": "documents", "id": "x", "aliases": ["a", "b"],
        "metadata": {"done": True, "sizes": [1, 2], "deep": {"k": "v"}, "none": None},
    }  # fmt: skip
    assert list_properties(note) == [
        ("type", "note"), ("collection", "documents"), ("id", "x"), ("aliases", "a, b"), ("done", "yes"), ("sizes", "1, 2"), ("deep", "k: v"),
    ]  # fmt: skip
