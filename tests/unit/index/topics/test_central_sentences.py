"""index/topics/central_sentences.py: which sentences of a note are its summary."""

import pytest

from index.encoders.word_frequency import word_ranks
from index.text.sentences import SUMMARY, split_markdown
from index.topics.summary_and_tags import enrich
from tests.support.parsed_notes import parse

FILLER = (
    "The gardener came by in the morning and drank a cup of tea with the plumber and the neighbours from next door."
)


def summary(text):
    note = parse(text.encode(), "Captures/default/Untitled.md", mtime_ms=0)
    return enrich(note, vocabulary={}, places=word_ranks()).summary


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("The boat has a keel of lead. It was cold.", "The boat has a keel of lead.", id="the central one"),
        pytest.param("However, it was. The boat has a keel of lead.", "The boat has a keel of lead.", id="none that points back"),
        pytest.param("Boat, keel, lead, anchor, rudder. The boat has a keel of lead.", "The boat has a keel of lead.", id="no list of words"),
        pytest.param("Is the boat cold? The boat has a keel of lead.", "The boat has a keel of lead.", id="rather no question"),
        pytest.param("We like it. For example, the boat has a keel of lead.", "The boat has a keel of lead.", id="without the words that join it"),
        pytest.param("Section 2 is about the boat. The boat has a keel of lead.", "The boat has a keel of lead.", id="none that refers to another text"),
        pytest.param("“The boat has a keel of lead, and it was cold on it. So it was.", "The boat has a keel of lead, and it was cold on it.", id="without an open quotation mark"),
        pytest.param("We like it. For example, boats are there. The boat has a keel of lead.", "The boat has a keel of lead.", id="rather no example"),
        pytest.param("Paint the boat. This protects the keel and the lead of the boat.", "Paint the boat. This protects the keel and the lead of the boat.", id="with the one that it points at"),
        pytest.param("Das Boot hat einen „Kiel“ aus Blei. Es war kalt.", "Das Boot hat einen „Kiel“ aus Blei.", id="with its German quotation marks"),
        pytest.param("El barco (¡y no el coche!) tiene una quilla de plomo.", "El barco (¡y no el coche!) tiene una quilla de plomo.", id="Spanish: with a remark that ends as a sentence does"),
        pytest.param("[18] The boat has a keel of lead.", "The boat has a keel of lead.", id="without the number of a list"),
        pytest.param("The boat has a keel, a mast etc. The rope is old.", "The boat has a keel, a mast etc.", id="that ends with etc."),
        pytest.param("船の竜骨（鉛です。）は重い。", "船の竜骨（鉛です。）は重い。", id="Japanese: with a remark that ends as a sentence does"),
        pytest.param("Los dos son así. Para más detalles, lea la sección del barco. El barco tiene quilla.", "El barco tiene quilla.", id="Spanish: none that refers to another text"),
        pytest.param("So können Boote einen Kiel aus Blei haben.", "So können Boote einen Kiel aus Blei haben.", id="German: with its first word"),
        pytest.param("就像鱼会游泳一样，船有龙骨。", "就像鱼会游泳一样，船有龙骨。", id="Chinese: with a comparison"),
        pytest.param("所以，船有龙骨。", "船有龙骨。", id="Chinese: without the words that join it"),
    ],
)  # fmt: skip
def test_a_summary_is_a_sentence_that_can_stand_alone(text, expected):
    assert summary(text) == expected


def test_a_long_text_may_get_two_sentences_in_their_order():
    rest = "We were there again and liked it very much, as always when we go out together for so long in the end."
    text = f"The boat has a keel of lead. {rest} {rest} The keel of the boat is heavy. {rest}"
    assert summary(text) == "The boat has a keel of lead. The keel of the boat is heavy."
    rest = "とてもよかったと思うので、またいつかみんなでいきたいとずっとおもっている。" * 9
    assert summary(f"船には鉛の竜骨がある。{rest}船の竜骨は重い。") == "船には鉛の竜骨がある。船の竜骨は重い。"


@pytest.mark.parametrize(
    "text",
    [FILLER * 4, "(" + "a remark of many words, " * 7 + ")", "word " * 100, "東" * 500, "x; " * 200, "—" * 200 + "x"],
)
def test_whatever_the_text_a_summary_is_made_of_its_sentences(text):
    line = summary(text)
    assert 0 < len(line) <= SUMMARY
    assert line.removesuffix("…").split(". ")[0] in " ".join(split_markdown(text))
