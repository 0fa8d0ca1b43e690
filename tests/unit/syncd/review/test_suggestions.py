"""syncd/review/suggestions.py: what may become of a capture, decided from values alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.model import Record, SimilarDocument
from syncd.review.suggestions import (
    STAYS,
    SURE,
    ScoredSuggestion,
    SimilarNote,
    Suggestions,
    SuggestionSubject,
    learn_habits,
    name_words,
    resemblance,
    shared_parts,
    shingles,
    suggest,
    suggestion_properties,
)


def record(path, title=None, tags=(), aliases=()):
    own = dict.fromkeys(Record.__dataclass_fields__)
    stem = path.rpartition("/")[2][:-3]
    return Record(**own | {"path": path, "title": title or stem, "tags": tuple(tags), "aliases": tuple(aliases)})


def told(path, tags=(), aliases=(), template=False, title=None):
    return path, title or path.rpartition("/")[2][:-3], tuple(tags), tuple(aliases), template


def near(path, value, tags=()):
    return SimilarDocument(record(path, tags=tags), value, 0.0)


NOTES = [
    told("Recipes/Leek soup.md", ["recipe"]),
    told("Recipes/Bread.md", ["recipe"]),
    told("Projects/Heron/Heron radio.md", ["project/heron"]),
    told("Projects/Heron/Heron battery.md", ["project/heron"]),
    told("Home.md"),
]


def subject(title="Untitled", tags=(), text="", linked=()):
    return SuggestionSubject(title, tags, text, linked)


def test_a_folder_is_the_one_of_the_nearest_notes():
    kin = [near("Recipes/Leek soup.md", 0.8), near("Recipes/Bread.md", 0.6), near("Projects/Heron/Heron radio.md", 0.3)]
    found = suggest(subject(), kin, learn_habits(NOTES, inbox="Captures"), {})
    assert [one.what for one in found.folders] == ["Recipes", "Projects/Heron"]
    assert found.folders[0].reason == "2 of its 3 nearest notes are there"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        pytest.param(subject(tags=["Recipes"]), "notes with its tags are there", id="their tags, whatever their form"),
        pytest.param(subject("Heron antenna"), "notes with similar titles are there", id="words of their titles"),
    ],
)
def test_tags_and_titles_speak_for_a_folder(given, reason):
    (first, *_) = suggest(given, [], learn_habits(NOTES, inbox="Captures"), {}).folders
    assert first.reason.startswith(reason)


@pytest.mark.parametrize(
    "notes",
    [
        pytest.param([told("Daily/2026-11-01.md"), told("Daily/2026-11-02.md")], id="named for days"),
        pytest.param([told("Tagebuch/2026-11-01 Mo.md"), told("Tagebuch/20261102.md")], id="whatever it is called"),
        pytest.param([told("Vorlagen/a.md", template=True)], id="templates by what is in them"),
        pytest.param([told("Templates/Recipe.md")], id="by their name"),
        pytest.param([told("归档/旧.md")], id="in another script"),
        pytest.param([told("Projects/Archive/Old.md")], id="what was set aside"),
        pytest.param([told("Mine/Below/Old.md")], id="what the settings name"),
        pytest.param([told("Captures/Reports/Old.md"), told("Captures/Archive/default/x.md")], id="what lies in the inbox"),
        pytest.param([told("Home.md")], id="the root"),
    ],
)  # fmt: skip
def test_folders_that_are_kept_apart_are_never_proposed(notes):
    known = learn_habits(notes, inbox="Captures", aside=["Mine"])
    kin = [near(one[0], 0.9) for one in notes]
    found = suggest(subject(text=" ".join(one[1] for one in notes)), kin, known, {})
    assert found.folders == ()
    assert notes[0][0] == "Home.md" or (found.similar, found.links) == ((), ())


def test_a_folder_with_a_name_that_only_holds_such_a_word_is_proposed():
    known = learn_habits(
        [told("Contemplation/a.md"), told("Daily bread/b.md"), told("Archivists/c.md")], inbox="Captures"
    )
    assert set(known.folders) == {"Contemplation", "Daily bread", "Archivists"}


def test_tags_are_those_of_the_nearest_notes_that_are_used_and_not_there_yet():
    kin = [near("Recipes/Leek soup.md", 0.8, ["recipe", "once"]), near("Recipes/Bread.md", 0.7, ["recipe"])]
    known = learn_habits([*NOTES, told("Recipes/Other.md", ["once"])], inbox="Captures")
    assert [one.what for one in suggest(subject(), kin, known, {}).tags] == ["recipe"]
    assert suggest(subject(tags=["recipes"]), kin, known, {}).tags == ()


def test_names_that_are_no_links_yet_are_proposed():
    known = learn_habits(NOTES, inbox="Captures")
    text = "The Heron radio, the Heron battery and leek soup; a heron."
    found = suggest(subject(text=text, linked=["Projects/Heron/Heron battery.md"]), [], known, {})
    assert [one.what for one in found.links] == ["Projects/Heron/Heron radio.md", "Recipes/Leek soup.md"]


@pytest.mark.parametrize(
    ("here", "there", "near_", "kind"),
    [
        (0.9, 0.2, 0.9, "duplicate"),
        (0.3, 0.7, 0.9, "supersedes"),
        (0.9, 0.9, 0.9, "duplicate"),
        (0.4, 0.1, 0.9, "extends"),
        (0.1, 0.1, 0.7, "similar"),
        (0.1, 0.1, 0.4, None),
    ],
)
def test_what_a_capture_is_to_a_note(here, there, near_, kind):
    assert resemblance(subject(), near("A.md", near_), here, there) == kind


def test_a_note_of_the_same_title_is_extended():
    assert resemblance(subject("leek SOUP"), near("Recipes/Leek soup.md", 0.5), 0.0, 0.0) == "extends"


WORDS = st.lists(st.sampled_from(["ab", "cd", "ef", "東京", "タワー", "gh"]), max_size=12).map(" ".join)


@given(WORDS, WORDS)
def test_shares_are_of_the_one_and_of_the_other(one, other):
    a, b = shingles(one), shingles(other)
    here, there = shared_parts(a, b)
    assert (there, here) == shared_parts(b, a)
    assert 0 <= here <= 1
    assert shared_parts(a, a) == ((1.0, 1.0) if a else (0.0, 0.0))


@given(st.permutations(NOTES), st.permutations([near(one[0], 0.2 + n / 10, one[2]) for n, one in enumerate(NOTES)]))
def test_the_order_of_notes_is_of_no_matter(notes, kin):
    given_ = subject("Heron soup", ["recipe"], "Leek soup and the Heron radio.")
    expected = suggest(
        given_, sorted(kin, key=lambda one: (-one.near, one.record.path)), learn_habits(NOTES, inbox="C"), {}
    )
    found = suggest(
        given_, sorted(kin, key=lambda one: (-one.near, one.record.path)), learn_habits(notes, inbox="C"), {}
    )
    assert found == expected


SCORED = st.lists(
    st.builds(ScoredSuggestion, st.sampled_from(["A", "B", "C", "D"]), st.floats(0, 1), st.just("")), max_size=4, unique_by=lambda one: one.what
).map(lambda found: tuple(sorted(found, key=lambda one: -one.score)))  # fmt: skip


@given(SCORED, SCORED, SCORED)
def test_what_is_given_stays_given(folders, tags, links):
    similar = tuple(SimilarNote(one.what, "similar", one.score) for one in tags)
    found = Suggestions(folders, tags, links, similar)
    link = {name: f"To {name}" for name in "ABCD"}
    once = suggestion_properties(found, {}, link)
    assert suggestion_properties(found, once, link) == once


def test_a_folder_gives_way_to_one_that_is_plainly_better():
    def given_(score):
        return suggestion_properties(
            Suggestions((ScoredSuggestion("New", 1.0, ""), ScoredSuggestion("Old", score, ""))),
            {"suggested_folder": "Old"},
            {},
        )

    assert given_(STAYS)["suggested_folder"] == "Old"
    assert given_(STAYS - 0.01)["suggested_folder"] == "New"
    assert (
        suggestion_properties(Suggestions((ScoredSuggestion("Weak", SURE - 0.01, ""),)), {}, {})["suggested_folder"]
        is None
    )


def test_words_of_a_name():
    assert name_words("The Heron's radios") >= {"heron", "radio"}
    assert name_words("東京タワー") >= {"東京", "京タ"}
