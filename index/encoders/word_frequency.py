"""Look up the frequency of an English word: its rank in the word list of the bundled model."""

from __future__ import annotations

import functools

from index.encoders.bundled_tokenizer import load_vocabulary

FIRST = 1_996  # the token of the most frequent word; special tokens and single characters stand before it


@functools.cache
def word_ranks() -> dict[str, int]:
    """Return the words of the list, the most frequent at 0. About 3 MB, read at the first call."""
    places = load_vocabulary()
    words = sorted(places, key=places.__getitem__)[FIRST:]
    return {word: place for place, word in enumerate(words) if word.isalpha() and len(word) > 1}
