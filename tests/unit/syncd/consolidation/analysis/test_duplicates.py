"""Whether two notes say the same: each reason against it, and each threshold just on one side and just on the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.consolidation.analysis.duplicates import (
    LEAST,
    READ,
    SAME,
    ComparedNote,
    Sentence,
    Sentences,
    find_duplicate,
)

WORDS = [
    "gateway",
    "cellar",
    "packet",
    "uplink",
    "antenna",
    "battery",
    "harbour",
    "station",
    "reading",
    "warden",
    "ladder",
    "orchard",
    "kettle",
    "violin",
    "saddle",
    "meadow",
]
LINES = [f"The {WORDS[n]} near the {WORDS[n + 1]} needs a {WORDS[n + 2]} each {WORDS[n + 3]}." for n in range(0, 12, 2)]
TEXT = "\n\n".join(LINES)


def note(text, title="Gateway"):
    return ComparedNote(title, text)


def duplicate(text, other, title="Gateway", other_title="Gateway"):
    return find_duplicate(note(text, title), note(other, other_title))


@pytest.mark.parametrize(
    ("other", "how"),
    [
        pytest.param(f"**{TEXT.upper()}**", "equal", id="the same words"),
        pytest.param("\n\n".join(reversed(LINES)), "edited", id="another order"),
        pytest.param(TEXT.replace("antenna", "antena"), "edited", id="another spelling"),
        pytest.param(TEXT.replace("antenna each", "antenna, well packed, each"), "edited", id="words more"),
        pytest.param("\n\n".join(LINES[:4]), "part", id="a part"),
        pytest.param(f"I found this:\n\n{TEXT}\n\nAsk if you need more.", "edited", id="framed"),
        pytest.param(f"```\n{TEXT}\n```", "equal", id="in a block of code"),
    ],
)
def test_a_copy_is_a_duplicate_however_it_was_edited(other, how):
    assert duplicate(TEXT, other).how == how
    assert duplicate(other, TEXT).how == how


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(TEXT.replace("needs a antenna", "needs a kettle"), id="another word in its place"),
        pytest.param(TEXT.replace("needs a antenna", "needs no antenna"), id="denied"),
        pytest.param(TEXT.replace("needs a antenna", "doesn't need a antenna"), id="denied in short"),
        pytest.param(
            TEXT.replace("needs a antenna", "needs 3 antennas") + " It has 2.", id="a figure that the other lacks"
        ),
        pytest.param("\n\n".join(LINES[:2]), id="an excerpt"),
        pytest.param("\n\n".join(LINES[:4]) + "\n\nNobody ever saw the mountain burn at dawn.", id="much that is new"),
        pytest.param(f"{TEXT}\n\n{{{{date}}}} and <% tp.date.now() %>", id="a template"),
    ],
)
def test_what_says_something_else_is_no_duplicate(other):
    longer = f"{TEXT}\n\nIt came up in the spring."
    assert duplicate(longer, other) is None
    assert duplicate(other, longer) is None


@pytest.mark.parametrize(
    ("text", "same", "apart"),
    [
        pytest.param(TEXT, "A {} of the harbour", "Day {}", id="one word of the titles"),
        pytest.param(f"# Notes\n\n{TEXT}", "Gateway", "2025-03-{:02}", id="days"),
    ],
)
def test_titles_that_name_two_things_of_a_kind_keep_notes_apart(text, same, apart):
    edited = f"{text}\n\nIt came up in the spring."
    assert duplicate(text, edited, same.format("note"), same.format("note")) is not None
    assert duplicate(text, edited, apart.format(1), apart.format(2)) is None


def test_a_number_behind_a_title_that_was_taken_names_no_other_thing():
    more = f"{TEXT}\n\nSo be it."
    assert duplicate(TEXT, more, "Field visit", "Field visit 2") is not None
    assert duplicate(TEXT, more, "Field visit 3", "Field visit 2") is None


def test_headings_that_name_two_things_of_a_kind_keep_notes_apart():
    def headed(heading):
        return f"# {heading}\n\n{TEXT}"

    assert duplicate(headed("Rules of the harbour"), headed("Rules of the harbour") + "\n\nSo be it.") is not None
    assert duplicate(headed("Rules of the harbour"), headed("Rules of the orchard") + "\n\nSo be it.") is None
    assert duplicate(headed("Visit 1"), headed("Visit 2") + "\n\nSo be it.") is None


def test_long_figures_are_compared_to_their_last_digit():
    dated = f"{TEXT}\n\nThe export is called 20250304."
    assert duplicate(dated, dated).how == "equal"
    assert duplicate(dated, dated.replace("20250304", "20250305")) is None


def test_a_note_that_links_to_the_other_is_another_note():
    more = f"{TEXT}\n\nSo be it."
    assert duplicate(f"{more} See [[rooms/Loft|up]].", TEXT, "Attic", "Loft") is None
    assert duplicate(TEXT, f"{more} See [[Attic]].", "Attic", "Loft") is None
    assert duplicate(f"{more} See [[Cellar]].", TEXT, "Attic", "Loft") is not None


def test_a_note_of_a_few_words_is_too_short_to_decide():
    words = ["one", "two", "six", "ten", "red", "sun", "sea", "oak", "elm", "fir", "ash", "yew"]
    assert len(words) == LEAST
    assert duplicate(" ".join(words), " ".join(words)) is not None
    assert duplicate(" ".join(words[1:]), " ".join(words[1:])) is None


def test_the_note_that_says_more_is_kept_and_what_only_the_copy_says_is_told():
    most = "\n\n".join(LINES + [line.replace("near", "under") for line in LINES])
    copy = f"{most}\n\nNobody ever saw mountains."
    kept = f"{most}\n\nIt came up in the spring, when the warden asked for a ladder."
    found = duplicate(copy, kept)
    assert (found.kept, found.lost) == (1, ("Nobody ever saw mountains.",))
    assert 0.95 <= found.score < 1
    assert duplicate(kept, copy).kept == 0


def test_a_note_that_is_not_read_to_its_end_is_a_duplicate_only_if_all_words_are_equal():
    start = "\n\n".join(f"{line} It was number {n}." for n in range(READ // 300) for line in LINES)
    assert len(start) > READ
    ends = [f"The {word} was sold to the pilot." for word in WORDS]
    long, other = f"{start}\n\n{ends[0]}", "\n\n".join([start, *ends[1:]])
    assert duplicate(long, other) is None
    assert duplicate(other, long) is None
    assert duplicate(long, start[:READ]) is None
    assert duplicate(long, f"**{long}**").how == "equal"


@given(
    st.lists(st.sampled_from(LINES), min_size=3, max_size=9), st.lists(st.sampled_from(LINES), min_size=3, max_size=9)
)
def test_the_order_of_two_notes_does_not_change_whether_they_are_duplicates(some, others):
    text, other = "\n\n".join(some), "\n\n".join(others)
    assert (duplicate(text, other) is None) == (duplicate(other, text) is None)
    assert len(note(text).sentences.places) < LEAST or duplicate(text, text).how == "equal"


words = st.frozensets(st.sampled_from(WORDS[:8]), min_size=1)


@given(st.lists(words, max_size=8), words)
def test_the_match_of_a_sentence_is_the_first_of_those_with_most_of_its_words(others, wanted):
    sentences = Sentences(tuple(Sentence("", other, negated=False) for other in others))
    best = max(sentences.all, key=lambda other: (len(wanted & other.words), -len(other.words)), default=None)
    enough = best is not None and len(wanted & best.words) >= SAME * len(wanted)
    assert sentences.find_match(Sentence("", wanted, negated=False)) is (best if enough else None)


class Counted(frozenset):
    """Words that count how often they are compared with those of another sentence."""

    times = 0

    def __rand__(self, other):
        Counted.times += 1
        return frozenset.__and__(other, self)


def test_a_sentence_is_compared_with_few_others_however_many_there_are():
    lines = [Sentence("", Counted({f"item{n}", f"box{n % 30}", "is", "in"}), negated=False) for n in range(900)]
    note = Sentences(tuple(lines))
    for n in range(900):
        assert note.find_match(Sentence("", frozenset(lines[n].words), negated=False)) is lines[n]
    assert Counted.times < 900 * 50
