"""Whether two notes say the same: each reason against it, and each threshold just on one side and just on the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from syncd.consolidation.analysis.contradictions import NoteClaims
from syncd.consolidation.analysis.duplicates import BOTH, LEAST, LOST, WORDS, find_duplicate
from syncd.consolidation.analysis.sentence_claims import Claim, Value

BIT = 0.001
TEXT = "the gateway in the cellar keeps its packets"
EDITED = f"{TEXT} warm"
OTHER = "wholly unlike in every run of three"


def claim(text="", words=(), **flags):
    empty = {"negated": False, "denied": frozenset(), "changed": False, "instead": False, "over": False, "once": False}
    return Claim(**{"text": text, "words": dict(words), "values": (), "new": False, **empty, **flags})


def note(text, *claims, title="", named=(), extra=()):
    """A note with its text; its title names nothing unless `named` says what."""
    words = {word for each in claims for word in each.words} | set(dict(named)) | set(extra)
    return text, NoteClaims(claim(title, named), claims, frozenset(words), named=False)


def worth(text, words, **flags):
    """A note of one claim."""
    return note(text, claim("short", words, **flags))


SAME = worth(TEXT, {"gateway": 4.0}), worth(EDITED, {"gateway": 4.0})


def sizes(older, newer, *, text=OTHER):
    """Two notes that share all of what the lesser says, and few runs of words unless `text` says so."""
    extra = {"cellar": newer - older} if newer > older else {}
    return worth(TEXT, {"gateway": older}), worth(text, {"gateway": older} | extra)


def parts(shared):
    """Two notes that say 4 each, of which they share so much."""
    return (
        worth(TEXT, {"gateway": shared, "cellar": 4 - shared}),
        worth(EDITED, {"gateway": shared, "attic": 4 - shared}),
    )


@pytest.mark.parametrize(
    ("same", "apart"),
    [
        pytest.param(sizes(LEAST, LEAST, text=EDITED), sizes(LEAST - BIT, LEAST - BIT, text=EDITED), id="too short"),
        pytest.param(parts(4 * WORDS), parts(4 * WORDS - BIT), id="words"),
        pytest.param(sizes(3.0, 6 / BOTH - 3), sizes(3.0, 6 / BOTH - 3 + BIT), id="of both together"),
        pytest.param(
            (worth("a b c d e f", {"w": 3.0}), worth("a b c d x y", {"w": 3.0, "v": 9.0})),
            (worth("a b c d e f g", {"w": 3.0}), worth("a b c d t u v", {"w": 3.0, "v": 9.0})),
            id="half of the runs",
        ),
        pytest.param(
            (worth(TEXT, {"gateway": 4.0}, changed=True), worth(EDITED, {"gateway": 4.0}, changed=True)),
            (worth(TEXT, {"gateway": 4.0}), worth(EDITED, {"gateway": 4.0}, changed=True)),
            id="the newer one tells of a change",
        ),
        pytest.param(
            (worth(TEXT, {"gateway": 4.0}, negated=True), worth(EDITED, {"gateway": 2 * LEAST})),
            (worth(TEXT, {"gateway": 4.0 - BIT}, negated=True), worth(EDITED, {"gateway": 2 * LEAST - BIT})),
            id="one denies, and they are short",
        ),
        pytest.param(
            (worth(TEXT, {"gateway": 4.0}), worth(EDITED, {"gateway": 4.0}, values=(Value("side", "1", "0", True),))),
            (worth(TEXT, {"gateway": 4.0}), worth(EDITED, {"gateway": 4.0}, values=(Value("number", "eur", "8"),))),
            id="the copy has a figure of its own",
        ),
        pytest.param(
            (worth("{{date}} " + TEXT, {"gateway": 4.0}), worth("{{date}} " + EDITED, {"gateway": 4.0})),
            (worth(TEXT, {"gateway": 4.0}), worth("<% tp.date() %> " + EDITED, {"gateway": 4.0})),
            id="one is a template",
        ),
    ],
)
def test_notes_say_the_same_just_above_a_threshold(same, apart):
    assert find_duplicate(*same) is not None
    assert find_duplicate(*apart) is None


def titled(title, other, text=TEXT, edited=EDITED):
    return (
        note(text, claim("short", {"gateway": 4.0}), title=title),
        note(edited, claim("short", {"gateway": 4.0}), title=other),
    )


@pytest.mark.parametrize(
    ("same", "apart"),
    [
        pytest.param(
            titled("Attic", "Loft", f"{TEXT} [[Loft]]", f"{EDITED} [[Loft]]"),
            titled("Attic", "Loft", f"{TEXT} [[Loft]]"),
            id="the older links to the newer",
        ),
        pytest.param(
            titled("Attic", "Loft", f"{TEXT} [[Elsewhere]]"),
            titled("Attic", "Loft", edited=f"{EDITED} [[rooms/Attic|up]]"),
            id="the newer links to the older",
        ),
        pytest.param(titled("Theme", "Paint"), titled("Theme A", "Theme B"), id="one word of the titles"),
        pytest.param(
            titled("Theme A", "Theme B", f"theme {TEXT}", f"theme {EDITED} a"),
            titled("Theme A", "Theme B", f"theme {TEXT}", f"theme {EDITED}"),
            id="that a note lacks",
        ),
        pytest.param(
            titled("Theme A", "Theme B", f"theme {TEXT} b", f"theme {EDITED} a"),
            titled("My Theme A", "My Theme B", f"my theme {TEXT} b", f"my theme {EDITED} a"),
            id="one word of long titles",
        ),
        pytest.param(titled("Theme A", "Paint B"), titled("Theme A", "Theme B"), id="two words of the titles"),
        pytest.param(
            titled("青い本の色の話", "赤い車"), titled("青い本の色の話", "赤い本の色の話"), id="without blanks"
        ),
    ],
)
def test_notes_under_titles_that_name_two_things_do_not_say_the_same(same, apart):
    assert find_duplicate(*same) is not None
    assert find_duplicate(*apart) is None


def test_each_tells_of_what_its_own_title_names():
    def pair(*, known=()):
        first = note(TEXT, claim("short", {"gateway": 8.0, "loft": 1.0}), title="L", named={"loft": 1.0}, extra=known)
        return first, note(EDITED, claim("short", {"gateway": 8.0, "attic": 1.0}), title="A", named={"attic": 1.0})

    assert find_duplicate(*pair()) is None
    assert find_duplicate(*pair(known=["attic"])) is not None


def test_under_titles_that_may_name_two_things_notes_must_say_more():
    def pair(worth):
        notes = [
            note(text, claim("short", {"gateway": worth}), title=title, named={title: 1.0})
            for text, title in ((TEXT, "loft"), (EDITED, "attic"))
        ]
        return [(text, replace(said, named=True)) for text, said in notes]

    assert find_duplicate(*pair(1.5 * LEAST)) is not None
    assert find_duplicate(*pair(1.5 * LEAST - BIT)) is None


def test_the_note_that_says_more_is_kept_and_how_they_are_the_same_is_told():
    equal = find_duplicate(worth(TEXT, {"gateway": 4.0}), worth(f"**{TEXT.upper()}**", {"gateway": 4.0}))
    assert (equal.how, equal.kept, equal.score, equal.lost) == ("equal", 0, 1.0, ())
    assert (find_duplicate(*SAME).how, find_duplicate(*SAME).kept, find_duplicate(*SAME).score) == ("edited", 0, 1.0)
    assert (find_duplicate(*sizes(3.0, 4.0, text=EDITED)).how, find_duplicate(*sizes(3.0, 4.0, text=EDITED)).kept) == (
        "edited",
        1,
    )
    assert find_duplicate(*sizes(3.0, 4.0 + BIT, text=EDITED)).how == "part"
    words = find_duplicate(*sizes(3.0, 6.0))
    assert (words.how, words.kept, words.score) == ("words", 1, 0.7)
    assert find_duplicate(*reversed(sizes(3.0, 6.0))).kept == 0


@pytest.mark.parametrize(
    ("lacking", "weight", "lost"),
    [(LOST, 0.2, False), (LOST + BIT, 0.2, True), (0.25, 1.0, False), (0.25 + BIT, 1.0, True)],
)
def test_a_sentence_of_the_copy_is_lost_if_the_whole_lacks_much_of_it(lacking, weight, lost):
    whole = worth(TEXT, {"gateway": 9.0, "run": 2.0})
    copy = note(EDITED, claim("kept", {"gateway": 9.0}), claim("new", {"attic": lacking, "run": weight - lacking}))
    assert find_duplicate(whole, copy).lost == (("new",) if lost else ())
