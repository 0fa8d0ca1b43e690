"""Find unlinked mentions of moved notes in queries, diagrams, addresses and Bases, which Memex does not rewrite.

Law: pure, and in time linear in the text; Memex shows the mentions to a person, who decides."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from index.names import base_name, fold

# A code block in one of the languages that plug-ins or Obsidian run, up to its end.
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


class Names:
    """Matches the old names of moved files (old path → new path), without `.md`: paths, and base names that changed."""

    def __init__(self, moved: Mapping[str, str]) -> None:
        paths = {fold(old).removesuffix(".md"): fold(new).removesuffix(".md") for old, new in moved.items()}
        names = {base_name(old) for old, new in paths.items() if base_name(old) != base_name(new)}
        # A base name may be any word: it counts only where a query or an address names a file.
        patterns = [rf"(?<!\w){re.escape(path)}(?!\w)" for path in sorted(paths, key=len, reverse=True)]
        patterns += [rf"(?<=[\[\"'/(=]){re.escape(name)}(?!\w)" for name in sorted(names, key=len, reverse=True)]
        patterns += [rf"(?<=includes ){re.escape(name)}(?!\w)" for name in names]
        self._any = re.compile("|".join(patterns) or r"(?!)")

    def occur_in(self, text: str) -> bool:
        """Return whether the text contains one of them as whole words."""
        return self._any.search(fold(text)) is not None


def find_mentions(path: str, text: str, names: Names) -> Iterator[str]:
    """Yield descriptions of the places in this file that name one of `names`, each once."""
    if path.endswith(".base"):
        if names.occur_in(text):
            yield "an expression of the Base"
        return
    mentions: dict[str, None] = {}
    if "```" in text or "~~~" in text:
        for fence in _FENCE.finditer(text):
            if names.occur_in(fence[3]):
                mentions[_KINDS[fence[2].lower()]] = None
    if "`=" in text or "`$=" in text:
        mentions |= dict.fromkeys(("a Dataview query",) if any(map(names.occur_in, _INLINE.findall(text))) else ())
    if "obsidian://" in text:
        addresses = (unquote(address[0].replace("+", " ")) for address in _ADDRESS.finditer(text))
        mentions |= dict.fromkeys(("an obsidian:// address",) if any(map(names.occur_in, addresses)) else ())
    yield from mentions
