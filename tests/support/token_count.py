"""Count the tokens of a text with a tokenizer."""

from __future__ import annotations

import functools
import json
import re
from typing import Final

from mcp.types import Tool
from tokenizers import Tokenizer

from index.encoders import bundled_files

MARKS: Final = re.compile(r"[!-/:-@\[-`{-~]+")


@functools.cache
def tokenizer() -> Tokenizer:
    """Return the tokenizer of the bundled model."""
    found = Tokenizer.from_str(bundled_files.read_tokenizer())
    found.no_truncation()
    found.no_padding()
    return found


def counted(text: str) -> int:
    """Return the number of tokens. Each punctuation mark is one token; chat models have one token for up to four marks."""
    one, at, total = tokenizer(), 0, 0
    for marks in MARKS.finditer(text):
        total += len(one.encode(text[at : marks.start()], add_special_tokens=False).ids) + -(-len(marks[0]) // 4)
        at = marks.end()
    return total + len(one.encode(text[at:], add_special_tokens=False).ids)


def seen_by_a_model(tool: Tool) -> str:
    """Return what a model reads of a listed tool."""
    shown = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
