"""syncd/page/views/note.py: the properties of a note in words."""

from __future__ import annotations

from syncd.page.views.note import list_properties


def test_properties_are_text_and_empty_ones_are_left_out():
    note = {
        "type": "note", "workspace": "", "collection": "documents", "id": "x", "aliases": ["a", "b"],
        "metadata": {"done": True, "sizes": [1, 2], "deep": {"k": "v"}, "none": None},
    }  # fmt: skip
    assert list_properties(note) == [
        ("type", "note"), ("collection", "documents"), ("id", "x"), ("aliases", "a, b"), ("done", "yes"), ("sizes", "1, 2"), ("deep", "k: v"),
    ]  # fmt: skip
