"""What the note of a file says, and what an uploaded note may bring along."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.documents.capture_note import compose_note
from syncd.documents.file_note import (
    ABOUT,
    FileFacts,
    clean_text,
    digest_of,
    file_properties,
    is_untouched,
    revise,
    split_uploaded_note,
    without_front_matter,
)
from syncd.documents.file_types import MARKDOWN, TEXT
from syncd.notes.front_matter import OWNED, comparable_key, compose, encode, read_properties, split
from tests.support.parsed_notes import parse

FACTS = FileFacts("application/pdf", 7, "ab" * 32, "The text.\n", pages=3)
PATH = "Captures/default/Files/report.pdf"


def note(facts=FACTS, **more):
    return compose_note({"id": "x", "type": "file", **file_properties(facts, PATH), **more}, facts.text)


def test_a_note_says_what_is_known_of_its_file():
    said = read_properties(split(note())[0])
    assert said["file"] == f"[[{PATH}]]"
    assert said["file_sha256"] == FACTS.digest
    assert (said["file_type"], said["file_size"], said["pages"]) == ("application/pdf", 7, 3)
    assert "text_cut" not in said
    document = parse(encode(note()), f"{PATH}.md", mtime_ms=0)
    assert document.file == PATH
    assert document.content == FACTS.text
    assert not document.defects


def test_what_is_missing_of_a_text_is_said():
    facts = FileFacts("application/pdf", 7, "ab" * 32, "", cut=True, warnings=("2 of 3 pages contain no text",))
    said = read_properties(split(note(facts))[0])
    assert said["text_cut"] is True
    assert said["file_warnings"] == ["2 of 3 pages contain no text"]


@given(st.text())
def test_every_text_can_be_held_and_told_from_an_edited_one(text):
    facts = FileFacts("text/plain", 1, "0" * 64, clean_text(text))
    raw = encode(note(facts))
    assert is_untouched(raw)
    assert not is_untouched(raw + b"!")
    assert digest_of(raw) == "0" * 64
    assert split(raw.decode())[1] == facts.text


@pytest.mark.parametrize(
    ("text", "held"),
    [("a\r\nb\rc", "a\nb\nc"), ("\ufeffx", "x"), ("a\0b", "a\ufffdb"), ("\ud83d\ude00", "😀"), ("\ud83d!", "\ufffd!")],
)
def test_what_no_note_can_hold_is_replaced(text, held):
    assert clean_text(text) == held


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_that_gets_its_first_text_never_writes_into_the_properties(end):
    """An editor has taken the line end away with which the note of an empty text ended."""
    raw = encode(note(FileFacts("application/pdf", 7, "ab" * 32, "")).rstrip("\n").replace("\n", end))
    assert is_untouched(raw)
    text = "promote: true\n---\nThe text."
    after = revise(raw, FileFacts("application/pdf", 9, "cd" * 32, text), PATH, updated_at="2026-01-01", version=2)
    document = parse(encode(after), f"{PATH}.md", mtime_ms=0)
    assert (document.claimed_id, document.content, document.file) == ("x", text, PATH)
    assert "promote" not in read_properties(split(after)[0])


def test_a_changed_file_changes_the_lines_about_it_and_the_text_alone():
    raw = encode(note(tags=["mine"], project="  alpha ").replace("type: file", "type: file  # mine"))
    new = FileFacts("application/pdf", 9, "cd" * 32, "Another text.\n", cut=True)
    text = revise(raw, new, PATH, updated_at="2026-11-20T00:00:00.000Z", version=2)
    said = read_properties(split(text)[0])
    assert split(text)[1] == "Another text.\n"
    assert "type: file  # mine" in text
    assert (said["tags"], said["project"], said["id"]) == (["mine"], "  alpha ", "x")
    assert (said["file"], said["file_sha256"], said["text_cut"], said["version"]) == (f"[[{PATH}]]", "cd" * 32, True, 2)
    assert "pages" not in said
    assert is_untouched(encode(text))


KEYS = st.sampled_from([*OWNED, *ABOUT, "Promote", "PROMOTE_TO", "ｐromote", "project", "aliases", "Review ", "x"])


@given(st.dictionaries(KEYS, st.sampled_from(["true", "x", "2026-01-01"]), max_size=6), st.text(max_size=20))
def test_nothing_in_an_uploaded_note_sets_what_memex_owns(front, body):
    text = compose(front, clean_text(body)) if front else clean_text(body)
    rest, title, tags, left = split_uploaded_note(text)
    assert {comparable_key(key) for key in rest}.isdisjoint(OWNED | set(ABOUT))
    assert title is None or "title" in map(comparable_key, front)
    assert left == split(text)[1]
    assert all(isinstance(tag, str) for tag in tags)


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        ("---\ntitle: Mine\ntags: [a]\n---\n\n# Head\n", "```yaml\ntitle: Mine\ntags: [a]\n```\n\n# Head\n"),
        ("---\nx: ```\n---\nbody\n", "````yaml\nx: ```\n````\n\nbody\n"),
        ("---\nno end\n", "---\nno end\n"),
        ("plain\n", "plain\n"),
    ],
)
def test_front_matter_of_a_markdown_file_is_code_in_the_note_beside_it(text, beside):
    facts = FileFacts(MARKDOWN, len(text), "ab" * 32, text)
    assert without_front_matter(facts) == replace(facts, text=beside)
    plain = replace(facts, media_type=TEXT)
    assert without_front_matter(plain) == plain


def test_an_uploaded_note_keeps_its_own_properties_its_title_and_its_tags():
    text = "---\ntitle: Mine\ntags: [a, b]\nproject: alpha\nid: stolen\npromote: true\npublish: true\nDg-Publish: true\nfile: '[[x.pdf]]'\n---\nBody\n"
    assert split_uploaded_note(text) == ({"project": "alpha"}, "Mine", ("a", "b"), "Body\n")


def test_properties_that_cannot_be_read_stay_text():
    text = "---\nbroken: [\npromote: true\n---\nBody\n"
    assert split_uploaded_note(text) == ({}, None, (), text)
