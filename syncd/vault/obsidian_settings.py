"""Read from the vault's own settings which notes Obsidian keeps apart: templates, daily notes, and excluded files.

The settings are read when they are asked for, so that a change is in force at once. What is missing, unreadable or of
another type names nothing."""

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
_EXCLUDED: Final = (".obsidian/app.json", "userIgnoreFilters")
_LONGEST: Final = 500  # characters of a filter; nobody writes more by purpose


class ObsidianSettings:
    """What the settings of one vault say."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def special_folders(self) -> list[str]:
        """The folders for daily notes and templates."""
        return [folder for place in ((_DAILY, "folder"), *_TEMPLATE_FOLDERS) if (folder := self._read_text(*place))]

    def template_test(self) -> PathTest:
        """Whether a path is that of a template."""
        folders = [self._read_text(*place) for place in _TEMPLATE_FOLDERS]
        notes = [self._read_text(*place) for place in _TEMPLATE_NOTES]
        # The root as the folder for templates would make one of every note.
        starts = tuple(f"{fold(folder.strip('/'))}/" for folder in folders if folder.strip("/"))
        named = {fold(note.strip("/").removesuffix(".md") + ".md") for note in notes if note}
        return lambda path: fold(path).startswith(starts) or fold(path) in named

    def exclusion_test(self) -> PathTest:
        """Whether a path is among the files that Obsidian's own search leaves out."""
        filters = self._read_filters()
        patterns: list[re.Pattern[str]] = []
        for text in filters:
            if len(text) > 2 and text.startswith("/") and text.endswith("/"):
                with suppress(re.error):  # what JavaScript alone knows leaves out nothing
                    patterns.append(re.compile(text[1:-1]))
        starts = tuple(fold(text) for text in filters if not text.startswith("/"))
        return lambda path: fold(path).startswith(starts) or any(pattern.search(path) for pattern in patterns)

    def _read_filters(self) -> list[str]:
        filters = self._read(*_EXCLUDED)
        texts = [text for text in filters if isinstance(text, str)] if isinstance(filters, list) else []
        return [text for text in texts if 0 < len(text) <= _LONGEST]

    def _read_text(self, path: str, key: str) -> str:
        value: object = self._read(path, key)
        return value if isinstance(value, str) else ""

    def _read(self, path: str, key: str) -> object:
        with suppress(MemexError, ValueError, RecursionError):  # not there, or no JSON
            settings: object = json.loads(self._vault.read(path)[0])
            return settings.get(key) if isinstance(settings, dict) else None
        return None
