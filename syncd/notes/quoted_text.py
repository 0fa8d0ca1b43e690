"""Write quoted text of notes into a Markdown file for people, so that no program reads markup in it.

Law, tested: no text becomes a link, tag, heading, list item, box, fence, callout, comment, field, HTML, formula,
block id, task date or template, neither in Obsidian nor in a program that reads the file line by line."""

from __future__ import annotations

import re
from typing import Final

from index.text.sentences import shorten

LONGEST: Final = 160  # characters of a quote within a sentence

# Invisible characters, and those that change the direction of text: control, zero-width, bidirectional and tag characters.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
# Characters that are written as entities: they are shown normally, but no program finds them as markup.
_MARK: Final = re.compile(
    r"[\\`<>&\[\]|#^$*@{}=~]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # within a word it is not markup, as in `works_on`
    r"|:(?=:)|(?<=:):|%(?=%)|(?<=%)%"
    r"|(?<=:)/(?=/)|(?<=:/)/|(?<=\b[wW]{3})\."  # an address, which some programs turn into a link
    r"|\A[-+]|(?<=\A[0-9])[.)]|(?<=\A[0-9]{2})[.)]|(?<=\A[0-9]{3})[.)]|(?<=\A[0-9]{4})[.)]"
    "|[\U0001f53a\u23eb\U0001f53c\U0001f53d\u23ec\u2795\U0001f6eb\u23f3\u231b\U0001f4c5\U0001f4c6\U0001f5d3\u2705\u274c"
    "\U0001f501\U0001f3c1\U0001f194\u26d4]"  # symbols that the Tasks plug-in reads as dates and recurrence
)
_TICKS: Final = re.compile(r"`+")


def quote_inline(text: str, longest: int = LONGEST) -> str:
    """Return `text` on one line, cut at `longest`, as Markdown that shows exactly this text; a dash if it is empty."""
    flat = shorten(" ".join(_UNSEEN.sub("", " ".join(text.split())).split()), longest) or "–"
    return _MARK.sub(lambda match: f"&#{ord(match[0])};", flat)


def quote_block(text: str, language: str = "text") -> list[str]:
    """Return the lines of a code block with `text`; its fence is longer than any in the text."""
    kept = [_UNSEEN.sub("", line).replace("<%", "< %") for line in text.splitlines()]  # templates run even inside code
    fence = "`" * max(3, 1 + max((len(run) for line in kept for run in _TICKS.findall(line)), default=0))
    return [f"{fence}{language}", *kept, fence]


def link_to(path: str) -> str:
    """Return a wikilink to the file at `path`, shown by its name; only the name if no link can contain the path."""
    target = path.removesuffix(".md")
    name = target.rpartition("/")[2]
    return f"[[{target}|{name}]]" if name and quote_inline(target, len(target)) == target else f"“{quote_inline(name)}”"
