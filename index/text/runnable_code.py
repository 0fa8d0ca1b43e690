"""Find the code in a note that a plugin of Obsidian may run when somebody opens the note, and turn it into plain code.

Laws, tested: nothing is found in a text whose code is plain; a text without such code stays as it is. More is found
than runs: whether a plugin is there, and runs code by itself, is a matter of the vault."""

from __future__ import annotations

import html
import re
from typing import Final

from index.model import Defect

DEFECT: Final = "runnable-code"

# Language of a code block -> the plugin that runs it, and the language in which it is plain code. By the documentation
# of the plugins: Dataview ("JavaScript API"), JS Engine ("Usage"), Meta Bind ("JS View Fields", "Buttons"), Datacore
# (its four code blocks), Buttons (its `button` block), Tasks ("Custom Filters": `filter by function`).
_LANGUAGES: Final = {
    "dataviewjs": ("Dataview", "js"),
    "js-engine": ("JS Engine", "js"),
    "meta-bind-js-view": ("Meta Bind", "js"),
    "meta-bind-button": ("Meta Bind", "yaml"),
    "datacorejs": ("Datacore", "js"),
    "datacorejsx": ("Datacore", "jsx"),
    "datacorets": ("Datacore", "ts"),
    "datacoretsx": ("Datacore", "tsx"),
    "button": ("Buttons", "text"),
    "tasks": ("Tasks", "text"),
    "templater": ("Templater", "text"),
}
_EXECUTE_CODE: Final = "run-"  # Execute Code's prefix of a language, as in `run-python`
_FENCE: Final = re.compile(
    r"(?:^|(?<=\r))((?:\[\^[^\]\s]{1,200}+\]:)?[ \t>*+\-.)\d]*+(?:`{3,}+|~{3,}+)[^\S\r\n]*+[{.]*+[^\S\r\n]*+)"
    r"([^\s`~{}.]{1,200}+)",
    re.MULTILINE,
)
_BY_FUNCTION: Final = re.compile(r"\bby\s+function\b", re.IGNORECASE)
_INLINE: Final = re.compile(r"(`\s*\$)(?==)")  # Dataview ("Inline DataviewJS")
_TEMPLATE: Final = "<%"  # Templater: also in code, and at once where it is set to look through each new file


def find_runnable(text: str) -> tuple[str, ...]:
    """Return the plugins that may run code of `text`, in alphabetical order."""
    plugins = {plugin for match in _FENCE.finditer(text) if (plugin := _find_plugin(match[2], text)[0])}
    if _INLINE.search(text):
        plugins.add("Dataview")
    if _TEMPLATE in text:
        plugins.add("Templater")
    return tuple(sorted(plugins))


def runnable_defects(text: str) -> tuple[Defect, ...]:
    """Return the defects to report to the owner of an agent's note with this text."""
    if not (plugins := find_runnable(text)):
        return ()
    advice = "the note holds code that Obsidian may run: read it before you open the note there"
    return (Defect(DEFECT, f"{', '.join(plugins)}: {advice}"),)


def make_plain(text: str) -> str:
    """`text` with all such code as plain code: in another language, or with a blank where a plugin looks for its mark."""
    plain = _FENCE.sub(lambda match: match[1] + _find_plugin(match[2], text)[1], text)
    return _INLINE.sub(r"\1 ", plain).replace(_TEMPLATE, "< %")


def _find_plugin(language: str, text: str) -> tuple[str, str]:
    """Return the plugin that runs a block of this language in `text` ("": none does), and the language of plain code."""
    name = html.unescape(language).replace("\\", "").casefold()
    if name == "tasks" and not _BY_FUNCTION.search(text):
        return "", language
    if name.startswith(_EXECUTE_CODE):
        return "Execute Code", "text"
    return _LANGUAGES.get(name, ("", language))
