"""Find the code in a note that an Obsidian plugin may run when somebody opens the note, and turn it into plain code.

Laws, tested: nothing is found in a text after `make_plain`; a text without such code stays unchanged. Not all code
that is found really runs: that depends on the plugins of the vault and their settings."""

from __future__ import annotations

import html
import re
from typing import Final

from index.deferred_patterns import compile_later
from index.model import Defect

DEFECT: Final = "runnable-code"

# Language of a code block → the plugin that runs it, and the language that makes it plain code. Source: the plugins'
# documentation: Dataview ("JavaScript API"), JS Engine ("Usage"), Meta Bind ("JS View Fields", "Buttons"), Datacore
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
_EXECUTE_CODE: Final = "run-"  # the prefix of languages of the plugin Execute Code, as in `run-python`
_FENCE: Final = compile_later(
    r"(?:^|(?<=\r))((?:\[\^[^\]\s]{1,200}+\]:)?[ \t>*+\-.)\d]*+(?:`{3,}+|~{3,}+)[^\S\r\n]*+[{.]*+[^\S\r\n]*+)"
    r"([^\s`~{}.]{1,200}+)",
    re.MULTILINE,
)
_BY_FUNCTION: Final = compile_later(r"\bby\s+function\b", re.IGNORECASE)
_INLINE: Final = compile_later(r"(`\s*\$)(?==)")  # Dataview ("Inline DataviewJS")
_TEMPLATE: Final = "<%"  # Templater: also inside code, and immediately if it is set to process each new file


def find_runnable(text: str) -> tuple[str, ...]:
    """Return the plugins that may run code of `text`, in alphabetical order."""
    filters = bool(_BY_FUNCTION.search(text))
    plugins = {plugin for match in _FENCE.finditer(text) if (plugin := _find_plugin(match[2], filters=filters)[0])}
    if _INLINE.search(text):
        plugins.add("Dataview")
    if _TEMPLATE in text:
        plugins.add("Templater")
    return tuple(sorted(plugins))


def runnable_defects(text: str) -> tuple[Defect, ...]:
    """Return the defects to report to the owner of an agent's note with this text."""
    if not (plugins := find_runnable(text)):
        return ()
    advice = "the note contains code that Obsidian may run: read the code before you open the note in Obsidian"
    return (Defect(DEFECT, f"{', '.join(plugins)}: {advice}"),)


def make_plain(text: str) -> str:
    """Turn all such code in `text` into plain code: change its language, or put a blank into the plugin's mark."""
    filters = bool(_BY_FUNCTION.search(text))
    plain = _FENCE.sub(lambda match: match[1] + _find_plugin(match[2], filters=filters)[1], text)
    return _INLINE.sub(r"\1 ", plain).replace(_TEMPLATE, "< %")


def _find_plugin(language: str, *, filters: bool) -> tuple[str, str]:
    """Return the plugin that runs a block of this language ("" = none), and the language with which no plugin runs it.

    `filters` says whether its text has a filter that blocks of Tasks run."""
    name = html.unescape(language).replace("\\", "").casefold()
    if name == "tasks" and not filters:
        return "", language
    if name.startswith(_EXECUTE_CODE):
        return "Execute Code", "text"
    return _LANGUAGES.get(name, ("", language))
