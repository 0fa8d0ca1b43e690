"""Which paths a workspace may read: tables of entries, and laws that no entry and no pattern can break."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument
from syncd.sharing.share_rules import ShareRules, make_entry
from tests.support.example_counts import examples

NAMES = st.sampled_from(
    ["Refs", "refs", "Private", "a", "b.md", "Ünï", unicodedata.normalize("NFD", "Ünï"), "Captures"]
)
FOLDERS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
PATHS = st.builds(lambda folder, name: f"{folder}/{name}.md", FOLDERS, st.sampled_from(["x", "y", "Private"]))
ENTRIES = st.lists(FOLDERS.map(lambda folder: f"{folder}/**") | PATHS, max_size=4).map(tuple)
RULES = st.builds(
    ShareRules,
    st.just("Captures"),
    st.lists(FOLDERS | FOLDERS.map(lambda folder: f"{folder}/**") | st.sampled_from(["Private", "*.md"]), max_size=2).map(tuple),
    st.dictionaries(st.sampled_from(["work", "home"]), ENTRIES),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("References", "References/**"),
        ("References/", "References/**"),
        ("References/**", "References/**"),
        (" References/Papers ", "References/Papers/**"),
        ("Notes/Plan.md", "Notes/Plan.md"),
        ("Notes/Plan.MD", "Notes/Plan.MD"),
        ("odd.md/", "odd.md/**"),
        ("odd.md/**", "odd.md/**"),
        (unicodedata.normalize("NFD", "Ünï"), "Ünï/**"),
    ],
)
def test_an_entry_is_a_folder_or_a_note(text, entry):
    assert make_entry(text) == entry
    assert make_entry(entry) == entry


@pytest.mark.parametrize(
    "text",
    ["", " ", "/", "**", "*", "/**", "..", "../x", "a/../b", "/etc", "a//b", ".", ".obsidian", "a/.hidden/b", "a*", "*/b",
     "a/**/b", "a?", "a\0b", ".git", "\udce9.md"],
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(InvalidArgument):
        make_entry(text)


@pytest.mark.parametrize(
    ("path", "shared"),
    [
        ("References/a.md", True),
        ("References/deep/er/a.md", True),
        ("Notes/Plan.md", True),
        ("Notes/Other.md", False),
        ("References.md", False),
        ("References2/a.md", False),
        ("references/a.md", False),
        ("References/a.pdf", False),
        ("References/.hidden/a.md", False),
        ("References/Private/a.md", False),
        ("References/deep/PRIVATE/a.md", False),
        ("References/Private.md", False),
        ("References/deep/private.MD", False),
        ("References/Diary.md", True),
        ("References/Private notes.md", True),
        ("References/Diary/a.md", False),
        ("References/diary/deep/a.md", False),
        ("Captures/Reports/a.md", False),
        ("captures/work/a.md", False),
        ("Captures", False),
        ("", False),
    ],
)
def test_what_a_workspace_may_read(path, shared):
    entries = ("References/**", "Notes/Plan.md", "Captures/**", "captures/**")
    rules = ShareRules("Captures", ("Private", "References/Diary/**"), {"work": entries})
    assert rules.shares(path, "work") is shared
    assert rules.shares_with_any(path) is shared
    assert not rules.shares(path, "home")


@given(path=PATHS)
@examples(200)
def test_without_an_entry_nothing_is_shared(path):
    rules = ShareRules("Captures")
    assert rules.is_empty
    assert not rules.shares_with_any(path)


@given(rules=RULES, path=PATHS)
@examples(400)
def test_no_entry_shares_what_is_excluded(rules, path):
    if rules.why_excluded(path) or path.casefold().startswith("captures/"):
        assert not rules.shares_with_any(path)


@given(rules=RULES, path=PATHS, more=ENTRIES)
@examples(400)
def test_an_entry_of_one_workspace_shares_nothing_with_another(rules, path, more):
    wider = replace(rules, entries={**rules.entries, "work": (*rules.entries.get("work", ()), *more)})
    assert wider.shares(path, "home") == rules.shares(path, "home")
    assert wider.shares(path, "work") >= rules.shares(path, "work")
    assert wider.shares_with_any(path) == any(wider.shares(path, name) for name in ("work", "home"))


@given(rules=RULES, path=PATHS, pattern=FOLDERS)
@examples(400)
def test_one_more_pattern_never_shares_more(rules, path, pattern):
    narrower = replace(rules, never=(*rules.never, pattern))
    assert narrower.shares_with_any(path) <= rules.shares_with_any(path)


@given(rules=RULES, path=PATHS)
@examples(200)
def test_letters_with_an_accent_are_the_same_in_both_forms(rules, path):
    for form in ("NFC", "NFD"):
        assert rules.shares(unicodedata.normalize(form, path), "work") == rules.shares(path, "work")
