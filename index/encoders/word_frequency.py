"""Look up the frequency of an English word: its rank in the word list of the bundled model."""

from __future__ import annotations

import functools

FIRST = 1_996  # the line of the most frequent word; special tokens and single characters stand before it


@functools.cache
def word_ranks() -> dict[str, int]:
    """The words of the list, the most frequent at 0. About 3 MB, read at the first call."""
    from index.encoders import onnx_export  # noqa: PLC0415 - it imports the runtime of the models, for a path

    lines = (onnx_export.model_folder() / "vocab.txt").read_text("utf-8").splitlines()
    return {word: place for place, word in enumerate(lines[FIRST:]) if word.isalpha() and len(word) > 1}
