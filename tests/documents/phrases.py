"""List phrases that no text for people uses, each with the words to use instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

BANNED: Final[Mapping[str, str]] = {
    r"\b(?:is|are|was|were|be|been|being|gets?) told\b|\btold why\b": "name the actor: Memex reports, prints, shows",
    r"\btells\b": "shows, says, reports",
    r"\bsays? so\b": "reports it",
    r"\bmend(?:s|ed|ing)?\b": "fix, repair",
    r"\banew\b": "again",
    r"\bgo(?:ne|es)? on from\b": "resumes",
    r"\bcomes? about\b": "happens",
    r"\bwhat there is\b": "name it",
    r"\bat hand\b": "name it",
    r"\bas was said\b": "leave it out",
    r"\bby hand\b": "manually",
    r"\bin the way of\b": "conflicts with",
    r"\b(?:is|are|be) owed\b|\bowed\b": "missing, outdated",
    r"\bwants? (?:attention|mending|looking)\b": "needs attention",
    r"\bfor want of\b": "without",
    r"\bof (?:an agent|a person|its own|Memex)'s making\b": "made by",
    r"\bhangs? together\b": "are connected",
    r"\bwhom you\b": "name the person",
    r"\bwhoever\b": "the caller, the person who",
    r"\bwho (?:asks|writes|gives|captures|sends)\b(?!\?)": "the caller, the writer, the person who",
    r"\bbrought together\b": "merged",
    r"\bvault proper\b": "the vault",
    r"\bafresh\b|\bbetimes\b|\bhenceforth\b|\bthereof\b|\bwhereupon\b": "plain words",
    r"\bthe same of\b|\bthe like of\b": "repeat the noun",
    r"\bit is done\b": "success",
    r"\bis no time\b|\bno JSON at\b": "say what is wrong",
    r"\b(?:has|have) (?:other|another) .{1,20} than are set\b": "differs from the setting",
}
_ANY: Final = re.compile("|".join(f"(?:{phrase})" for phrase in BANNED), re.IGNORECASE)
_CODE: Final = re.compile(r"^( *)(```|~~~).*?^\1\2 *$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def banned_phrases(text: str) -> Iterator[str]:
    """Yield the banned phrases that a text uses, outside of its code; whitespace and line ends count as one blank."""
    for match in _ANY.finditer(re.sub(r"\s+", " ", _CODE.sub(" ", text))):
        yield match[0]
