"""Texts that share words find each other by few numbers, whatever else there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.text import similarity_sketch

LONG = (
    "The gateway keeps packets on its flash while the uplink is down and sends them oldest first once it is back up. "
    "Nothing is thrown away until the flash is ninety percent full, and then the oldest reading of each station goes."
)
OTHER = (
    "Sourdough wants patience, a warm corner of the kitchen, and flour that was milled this year by somebody who cares."
)


def pairs(found):
    return [tuple(pair) for pair in found.tolist()]


def test_an_edited_copy_shares_runs_and_another_text_none():
    texts = [LONG, LONG.replace("ninety", "eighty"), OTHER]
    made = [similarity_sketch.make_sketch(text) for text in texts]
    assert pairs(similarity_sketch.pairs_sharing_runs(made, 0.5)) == [(0, 1)]


def test_rare_words_bring_texts_together_in_any_script():
    texts = ["倉庫の家賃は月8万円", "倉庫の家賃が上がる", "定例会議は火曜日", "unrelated words here"]
    made = [similarity_sketch.make_sketch(text) for text in texts]
    assert pairs(similarity_sketch.pairs_sharing_words(made, 1.5)) == [(0, 1)]


@given(st.lists(st.sampled_from([LONG, OTHER, LONG[:120], OTHER[20:], "a b c"]), min_size=2, max_size=8))
def test_what_two_texts_share_does_not_depend_on_the_rest(texts):
    alone = similarity_sketch.word_overlap(
        [similarity_sketch.make_sketch(text) for text in texts[:2]], np.array([[0, 1]])
    )
    among = similarity_sketch.word_overlap([similarity_sketch.make_sketch(text) for text in texts], np.array([[0, 1]]))
    assert alone.tolist() == among.tolist()


def test_a_form_that_everybody_fills_in_brings_nobody_together():
    made = [similarity_sketch.make_sketch(LONG)] * (similarity_sketch.CROWD + 1)
    assert pairs(similarity_sketch.pairs_sharing_runs(made, 0.1)) == []


def test_pairs_are_ranked_by_what_they_share():
    made = [
        similarity_sketch.make_sketch(text)
        for text in ("one two three four", "one two three five", "one six seven eight", "")
    ]
    every = np.array([[0, 1], [0, 2], [0, 3], [1, 2]])
    share = similarity_sketch.word_overlap(made, every)
    assert share.tolist() == pytest.approx([0.75, 0.25, 0, 0.25])
    assert pairs(similarity_sketch.rank_pairs(every, share, 0.2)) == [(0, 1), (0, 2), (1, 2)]
    assert pairs(similarity_sketch.merge_pairs([every, every[:1], np.empty((0, 2), np.int64)])) == pairs(every)
    assert pairs(similarity_sketch.merge_pairs([])) == []
