"""Where a file names another without linking to it: in queries, diagrams, addresses and Bases, which nobody rewrites.

Law: pure, and in time linear in the text; what is found is told to a person, who knows what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote

from index.identity import fold

# A fence of one of these languages, up to its end; what plug-ins and Obsidian itself read in it.
_FENCE: Final = re.compile(
    r"^[ \t>]*(`{3,}|~{3,})[ \t]*(dataview|dataviewjs|tasks|base|mermaid|query)\b[^\n]*+\n(.*?)(?:^[ \t>]*\1|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_ADDRESS: Final = re.compile(r"obsidian://[^\s)>\]\"]++", re.IGNORECASE)
_INLINE: Final = re.compile(r"`\$?=[^`\n]++`")
_KINDS: Final = {
    "dataview": "a Dataview query",
    "dataviewjs": "a Dataview query",
    "tasks": "a Tasks query",
    "base": "a Base",
    "mermaid": "a Mermaid diagram",
    "query": "a search",
}
SHORTEST: Final = 3  # letters of a name from which finding it in an expression says something


class Names:
    """What moved files are called: by path and by name, without `.md`."""

    def __init__(self, paths: Iterable[str]) -> None:
        names = {fold(path).removesuffix(".md") for path in paths}
        names |= {name.rpartition("/")[2] for name in names}
        words = sorted((name for name in names if len(name) >= SHORTEST), key=len, reverse=True)
        self._any = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in words) or r"(?!)")

    def within(self, text: str) -> bool:
        """Whether the text says one of them, in whole words."""
        return self._any.search(fold(text)) is not None


def mentioned(path: str, text: str, names: Names) -> Iterator[str]:
    """What in this file names one of `names`, once each."""
    if path.endswith(".base"):
        if names.within(text):
            yield "an expression of the Base"
        return
    found: dict[str, None] = {}
    if "```" in text or "~~~" in text:
        for fence in _FENCE.finditer(text):
            if names.within(fence[3]):
                found[_KINDS[fence[2].lower()]] = None
    if "`=" in text or "`$=" in text:
        found |= dict.fromkeys(("a Dataview query",) if any(map(names.within, _INLINE.findall(text))) else ())
    if "obsidian://" in text:
        said = (unquote(address[0].replace("+", " ")) for address in _ADDRESS.finditer(text))
        found |= dict.fromkeys(("an obsidian:// address",) if any(map(names.within, said)) else ())
    yield from found
