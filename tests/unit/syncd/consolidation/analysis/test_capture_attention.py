"""What needs attention among captures: copies, tags, and that nothing else changes what is found."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.encoders.word_frequency import word_ranks
from index.model import DocumentOverview
from index.search import vector_similarity
from index.text import similarity_sketch
from syncd.consolidation.analysis import capture_attention
from syncd.consolidation.analysis.duplicates import ComparedNote, find_duplicate
from syncd.consolidation.analysis.findings import key_of
from tests.bench.consolidation import pairs
from tests.support.example_counts import examples

DAY = 86_400_000
NOTES = [
    note
    for name, step in (("contradictions", 4), ("apart", 4), ("again", 1))
    for pair in pairs(name)[::step]
    for note in (pair.older, pair.newer)
]


def noted(number, title, text, *, tags=(), at=None):
    """A capture; `text` goes along as its hash."""
    return DocumentOverview(
        id=f"n{number:03}",
        key=f"k{number:03}",
        path=f"Captures/default/{number}/{title}.md",
        title=title,
        type="note",
        tags=tuple(tags),
        created_at=at if at is not None else number * DAY,
        updated_at=None,
        content_hash=text,
    )


def found(captures):
    """What comparing these notes finds, by their words alone."""
    captures = sorted(captures, key=lambda one: one.id)
    texts = lambda numbers: {n: captures[n].content_hash for n in numbers}  # noqa: E731 - a value
    made = [similarity_sketch.make_sketch(one.content_hash) for one in captures]
    nobody = np.empty((0, vector_similarity.MUTUAL), np.int64), np.empty((0, vector_similarity.MUTUAL), np.float32)
    near = capture_attention.choose_pairs(made, [], nobody, lambda: None)
    return capture_attention.compare_pairs(
        "default", captures, near, texts, common=similarity_sketch.find_frequent(made)
    )


def proposals(captures):
    """All of it."""
    told = found(captures)
    return (*told.duplicates, *told.near)


@functools.cache
def everything():
    return proposals([noted(n, *note) for n, note in enumerate(NOTES)])


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
@examples(4)
def test_the_same_notes_in_any_order_give_the_same_findings(dice):
    shuffled = [noted(n, *note) for n, note in enumerate(NOTES)]
    dice.shuffle(shuffled)
    assert proposals(shuffled) == everything()
    assert len(everything()) > 5


def test_a_note_that_shares_nothing_with_others_changes_no_finding():
    captures = [noted(n, *note) for n, note in enumerate(NOTES)]
    strange = noted(900, "Zzyzx", "Qwrtpl vbnmx ghjkl wqzrt.")
    assert proposals([*captures, strange]) == everything()


def test_a_key_tells_what_would_be_done_and_nothing_else():
    text = "Charge the drill. Pack two spare antennas. Print the map of the poles. Tell Odalys the day before."
    [one] = proposals([noted(1, "Field visit", text), noted(2, "Visit", text)])
    [edited] = proposals([noted(1, "Field visit", text), noted(2, "Visit", f"{text} Check the tide table, too.")])
    assert sorted(one.ids) == sorted(edited.ids) == ["n001", "n002"]
    assert one.key == key_of("default", "merge-duplicates", one.ids, ())
    assert edited.key == key_of("default", "merge-duplicates", edited.ids, ())
    assert one.hashes != edited.hashes
    assert key_of("a", "relate", ("b", "c"), ()) != key_of("a", "relate", ("b",), ("c",))
    assert key_of("a", "relate", ("b",), ()) != key_of("b", "relate", ("b",), ())


def compared(note):
    return ComparedNote(*note)


@pytest.mark.parametrize(
    "pair",
    [*pairs("apart")[::3], *pairs("last-apart")[::2], *pairs("contradictions")[::3]],
    ids=lambda pair: pair.newer[0],
)
def test_notes_about_two_things_of_a_kind_and_updates_are_not_the_same(pair):
    assert find_duplicate(compared(pair.older), compared(pair.newer)) is None


@pytest.mark.parametrize(
    "note", [note for note in NOTES[::7] if len(compared(note).sentences.places) >= 12], ids=lambda note: note[0]
)
def test_a_note_is_a_duplicate_of_itself(note):
    assert find_duplicate(compared(note), compared(note)).how == "equal"


def test_the_same_words_are_a_copy_of_the_oldest():
    text = "The gateway keeps packets on its flash while the uplink is down, and sends them once it is back."
    told = found([noted(3, "Uplink", text), noted(1, "Gateway", text), noted(2, "Flash", f"**{text}**")])
    assert sorted(one.ids for one in told.duplicates) == [("n001", "n002"), ("n001", "n003")]
    assert told.near == ()


def test_forms_that_were_filled_in_are_no_copies_though_most_words_are_the_same():
    form = "Choose it under Appearance and restart the editor. It has icons for tasks, questions, quotes and bookmarks."
    themes = [
        noted(n, f"{name} colours", f"{name} by {name.lower()}. {form}") for n, name in enumerate(("Ochre", "Birch"))
    ]
    assert found(themes).near == ()
    words = ("Ochre", "Birch", "Slate", "Plum", "Moss")
    sheets = [
        noted(n, f"{word} for {word.lower()} walls", f"{form} Seen twice {word}.") for n, word in enumerate(words)
    ]
    assert found(sheets).near == ()


def test_a_text_that_many_notes_share_is_a_form_unless_the_very_same_note_was_captured_again():
    text = "Charge the drill. Pack two spare antennas. Print the map of the poles. Tell Odalys the day before."
    again = [noted(n, "Field visit", text) for n in range(5)]
    assert len(found(again).duplicates) == 4
    assert not proposals([noted(n, f"Visit {name}", text) for n, name in enumerate(("Oslo", "Turin", "Graz", "Brno"))])


def test_no_secret_is_quoted():
    key = "sk-ant-api03-" + "aBcdEfgHi" * 10
    words = ("logs", "maps", "tides", "chisels", "poles", "lamps", "nets", "ropes", "buoys", "masts", "tar", "paint")
    shared = " ".join(f"The harbour team keeps {word} in the cellar of the old customs house." for word in words)
    notes = [
        noted(1, "Harbour", f"Berth 03 is free on Sundays in spring. {shared}"),
        noted(2, "Token", f"Use {key}. {shared}"),
    ]
    told = repr([(one.reason, one.quotes) for one in proposals(notes)])
    assert key not in told
    assert "only the second contains “Use" in told


def test_what_nobody_changed_or_linked_is_unused():
    captures = [noted(n, f"Note {n}", "x", at=0) for n in range(5)]
    captures[1] = replace(captures[1], updated_at=DAY)
    captures[4] = replace(captures[4], type="file")
    now = 400 * DAY
    told = capture_attention.find_unused("default", captures, linked={"n002"}, now=now)
    assert {one.ids for one in told} == {("n000",), ("n003",)}
    assert not capture_attention.find_unused("default", captures, linked=(), now=100 * DAY)


def test_work_is_broken_off_between_batches():
    captures = [noted(n, *note) for n, note in enumerate(NOTES)]
    made = [similarity_sketch.make_sketch(one.content_hash) for one in captures]
    nobody = np.empty((0, 1), np.int64), np.empty((0, 1), np.float32)

    class Stopped(Exception):
        pass

    def stop():
        raise Stopped

    with pytest.raises(Stopped):
        capture_attention.choose_pairs(made, [], nobody, stop)
    with pytest.raises(Stopped):
        capture_attention.compare_pairs(
            "default",
            captures,
            np.array([[0, 1]]),
            lambda _: {},
            common=similarity_sketch.find_frequent(made),
            go_on=stop,
        )


def test_few_long_notes_stay_in_memory():
    captures = [noted(n, f"Log {n}", "The heron stood in the reeds. " * 600) for n in range(300)]
    reader = capture_attention.ReadTexts(captures, lambda numbers: {n: captures[n].content_hash for n in numbers})
    size = len(captures[0].content_hash)
    for n in range(0, len(captures), 20):
        reader.read_ahead(range(n, n + 20))
        assert reader.read.keys() >= set(range(n, n + 20))
        assert sum(len(note.text) for note in reader.read.values()) < capture_attention.HELD + 20 * size


def test_work_can_be_broken_off_every_few_pairs():
    captures = [noted(n, f"{n}", "short") for n in range(300)]
    calls = []
    capture_attention.compare_pairs(
        "default",
        captures,
        np.array([[n, n + 1] for n in range(299)]),
        lambda numbers: dict.fromkeys(numbers, "short"),
        common=similarity_sketch.find_frequent([]),
        go_on=lambda: calls.append(None),
    )
    assert len(calls) > 299 / 50


def test_pairs_beyond_the_bound_are_told():
    captures = [noted(n, *note) for n, note in enumerate(NOTES)]
    every = np.array([[0, 1], [2, 3], [4, 5]])
    told = capture_attention.compare_pairs(
        "default", captures, every, lambda _: {}, common=similarity_sketch.find_frequent([]), looked_at=2
    )
    assert told.left_out == 1


def test_tags_of_captures_become_proposals():
    captures = [noted(n, f"{n}", "x", tags=("kubernetes",) if n < 3 else ("k8s",)) for n in range(4)]
    [one] = capture_attention.find_tag_synonyms("default", captures, word_ranks())
    assert (one.kind, one.would, one.ids) == ("tag-merge", ("kubernetes", "k8s"), ())
    assert "3 captures have kubernetes, 1 capture has k8s" in one.reason
