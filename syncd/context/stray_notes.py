"""Stray notes lie in the folder of contexts, and Memex did not write them: no search finds them, and one may be in the way.

This happens to a workspace that was called Context before the name was reserved, and to a note of the owner there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from index.errors import MemexError, NotFound
from index.names import base_name
from syncd.context.generated_note import has_callout
from syncd.notes.front_matter import decode
from syncd.vault.location import CONTEXT, is_context
from syncd.vault.path_rules import is_note
from syncd.vault.vault import Vault


def find_stray_notes(vault: Vault, inbox: str, is_written: Callable[[str], bool] = lambda _: False) -> list[str]:
    """Return the paths of stray notes and folders, sorted; a folder ends in a slash. Without an inbox there are none.

    `is_written`: whether Memex has written the context of a workspace, so that the note is one whatever it contains."""
    try:
        names = vault.list_names(inbox)
    except NotFound:  # a link or a file takes the place of the inbox, which the status reports
        return []
    folders = [name for name in names if is_context(f"{inbox}/{name}", inbox)]
    return sorted(path for name in folders for path in _find_in(vault, f"{inbox}/{name}", is_written))


def _find_in(vault: Vault, folder: str, is_written: Callable[[str], bool]) -> Iterator[str]:
    if base_name(folder) != CONTEXT:
        yield f"{folder}/"
        return
    for name in vault.list_names(folder):
        path = f"{folder}/{name}"
        if name.startswith("."):
            continue
        with suppress(MemexError):  # it is a file of another kind, or was just removed
            if is_note(name):
                if not is_written(name[:-3]) and not has_callout(decode(vault.read(path)[0])):
                    yield path
            elif vault.list_names(path):
                yield f"{path}/"
