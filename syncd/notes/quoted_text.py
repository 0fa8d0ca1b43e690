"""Write quoted text of notes into a Markdown file for people, so that no program reads markup in it.

Law, tested: whatever a text holds, it becomes no link, tag, heading, list item, box, fence, callout, comment, field,
HTML, formula, block id, date of a task or template, neither to Obsidian nor to a program that reads the file line by
line."""

from __future__ import annotations

import re
from typing import Final

from index.text.sentences import shorten

LONGEST: Final = 160  # characters of a text that stands in a sentence

# What is not shown, or turns the writing round: control characters, zero-width and bidirectional signs, tags of Unicode.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
# Written as an entity, a character is seen only once it is shown: no program that looks for marks in a line meets it.
_MARK: Final = re.compile(
    r"[\\`<>&\[\]|#^$*@{}=~]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # within a word it is no markup, as in `works_on`
    r"|:(?=:)|(?<=:):|%(?=%)|(?<=%)%"
    r"|(?<=:)/(?=/)|(?<=:/)/|(?<=\b[wW]{3})\."  # an address, which some make a link of
    r"|\A[-+]|(?<=\A[0-9])[.)]|(?<=\A[0-9]{2})[.)]|(?<=\A[0-9]{3})[.)]|(?<=\A[0-9]{4})[.)]"
    "|[\U0001f53a\u23eb\U0001f53c\U0001f53d\u23ec\u2795\U0001f6eb\u23f3\u231b\U0001f4c5\U0001f4c6\U0001f5d3\u2705\u274c"
    "\U0001f501\U0001f3c1\U0001f194\u26d4]"  # what the plug-in Tasks reads as dates, and as what is to be repeated
)
_TICKS: Final = re.compile(r"`+")


def quote_inline(text: str, longest: int = LONGEST) -> str:
    """`text` on one line, cut at `longest`, as Markdown that shows just that; a dash where it says nothing."""
    flat = shorten(" ".join(_UNSEEN.sub("", " ".join(text.split())).split()), longest) or "–"
    return _MARK.sub(lambda match: f"&#{ord(match[0])};", flat)


def quote_block(text: str, language: str = "text") -> list[str]:
    """The lines of a code block that holds `text`; its fence is longer than any in the text."""
    kept = [_UNSEEN.sub("", line).replace("<%", "< %") for line in text.splitlines()]  # a template runs in code, too
    fence = "`" * max(3, 1 + max((len(run) for line in kept for run in _TICKS.findall(line)), default=0))
    return [f"{fence}{language}", *kept, fence]


def link_to(path: str) -> str:
    """A wikilink to the file at `path`, shown by its name; where no link can hold that path, its name alone."""
    target = path.removesuffix(".md")
    name = target.rpartition("/")[2]
    return f"[[{target}|{name}]]" if name and quote_inline(target, len(target)) == target else f"“{quote_inline(name)}”"
