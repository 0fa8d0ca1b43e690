"""Load the tokenizer of the bundled model, and count tokens with it, whichever encoder is in use."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from index.encoders import bundled_files

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@functools.cache
def load_tokenizer() -> Tokenizer:
    """Load the tokenizer once for the whole process; threads share it. Raises Unavailable for a damaged installation."""
    from tokenizers import Tokenizer  # noqa: PLC0415 - commands that count nothing open the same parts

    tokenizer = Tokenizer.from_str(bundled_files.read_tokenizer())
    tokenizer.no_truncation()  # the file's own settings cut and pad at 128
    tokenizer.no_padding()
    return tokenizer


def count_tokens(texts: Sequence[str]) -> list[int]:
    """Count the tokens of each text without special tokens."""
    return [len(encoding) for encoding in load_tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)]
