"""Read from the vault's own settings which notes Obsidian treats separately (templates, daily notes, excluded files), and how it writes links.

The settings are read at each call, so a change applies at once. Missing, unreadable or invalid settings name
nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from index.errors import MemexError
from index.names import fold
from syncd.vault.vault import Vault

PathTest: TypeAlias = Callable[[str], bool]

_DAILY: Final = ".obsidian/daily-notes.json"
_TEMPLATE_FOLDERS: Final = (
    (".obsidian/templates.json", "folder"),
    (".obsidian/plugins/templater-obsidian/data.json", "templates_folder"),
)
_TEMPLATE_NOTES: Final = ((_DAILY, "template"), (".obsidian/zk-prefixer.json", "template"))
_APP: Final = ".obsidian/app.json"
_LONGEST: Final = 500  # longest filter in characters


class ObsidianSettings:
    """Reads the settings of one vault."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def special_folders(self) -> list[str]:
        """Return the folders for daily notes and templates."""
        return [folder for place in ((_DAILY, "folder"), *_TEMPLATE_FOLDERS) if (folder := self._read_text(*place))]

    def uses_relative_links(self) -> bool:
        """Return whether new links are relative to their note."""
        return self._read(_APP, "newLinkFormat") == "relative"

    def template_test(self) -> PathTest:
        """Return a test whether a path is a template."""
        folders = [self._read_text(*place) for place in _TEMPLATE_FOLDERS]
        notes = [self._read_text(*place) for place in _TEMPLATE_NOTES]
        # The root as template folder would make every note a template.
        starts = tuple(f"{fold(folder.strip('/'))}/" for folder in folders if folder.strip("/"))
        named = {fold(note.strip("/")).removesuffix(".md") + ".md" for note in notes if note}
        return lambda path: fold(path).startswith(starts) or fold(path) in named

    def exclusion_test(self) -> PathTest:
        """Return a test whether a path is excluded from Obsidian's own search."""
        filters = self._read_filters()
        patterns: list[re.Pattern[str]] = []
        for text in filters:
            if len(text) > 2 and text.startswith("/") and text.endswith("/"):
                with suppress(re.error):  # a pattern that only JavaScript supports excludes nothing
                    patterns.append(re.compile(text[1:-1]))
        starts = tuple(fold(text) for text in filters if not text.startswith("/"))
        return lambda path: fold(path).startswith(starts) or any(pattern.search(path) for pattern in patterns)

    def _read_filters(self) -> list[str]:
        filters = self._read(_APP, "userIgnoreFilters")
        texts = [text for text in filters if isinstance(text, str)] if isinstance(filters, list) else []
        return [text for text in texts if 0 < len(text) <= _LONGEST]

    def _read_text(self, path: str, key: str) -> str:
        value: object = self._read(path, key)
        return value if isinstance(value, str) else ""

    def _read(self, path: str, key: str) -> object:
        with suppress(MemexError, ValueError, RecursionError):  # missing, or not JSON
            settings: object = json.loads(self._vault.read(path)[0])
            return settings.get(key) if isinstance(settings, dict) else None
        return None
