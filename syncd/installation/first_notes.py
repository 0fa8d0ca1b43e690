"""Write the first notes of a new inbox: `About.md`, which explains the folder, and a welcome capture for a first search.

Law, tested: Memex writes them once for each state folder, into an inbox that it has just created, and never again
after somebody deletes them."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Final

from index.names import base_name
from syncd.captures.automatic_values import AutomaticValues
from syncd.documents.capture_note import compose_note, properties_of
from syncd.history.audit_log import AuditLog, Author, acting_as
from syncd.history.audited_vault import AuditedVault
from syncd.notes.front_matter import encode
from syncd.settings.settings import Settings
from syncd.state import named_values
from syncd.state.ledger import Ledger
from syncd.vault.location import ABOUT

WRITTEN: Final = "first_notes"  # named value: exists when the notes were written
WORKSPACE: Final = "default"
WELCOME: Final = "Welcome to Memex"
WELCOME_TEXT: Final = """\
Welcome to Memex: agents find this capture, but none of your notes outside the folder {inbox}.

Ask an agent "what does Memex say about promoting?", and it reads: tick Promote in Review.base, or run `memex review`, and Memex moves a
capture into your vault. Only you can promote. Delete this capture whenever you like.
"""
ABOUT_TEXT: Final = """\
{inbox} is the inbox of Memex: AI agents write notes here and read notes here, and see nothing else of your vault.
Each folder in it is a workspace, which one or more agents share; nothing crosses from one workspace to another.
To keep a note, tick Promote in Review.base or run `memex review`: Memex moves it into your vault, with its links.
You may edit, move and delete everything here, in Obsidian or with any program: the search index follows.
`memex status` shows the health of Memex, and `memex --help` lists all commands.
Agents can't read this file. Delete it whenever you like: Memex does not write it again.
"""


def write_first_notes(settings: Settings, ledger: Ledger, *, now: int, welcome: bool) -> list[Path]:
    """Write the first notes unless that was done before, and return the paths of the written files.

    `welcome`: also write the welcome capture."""
    if named_values.read(ledger, WRITTEN) is not None:
        return []
    inbox = settings.vault.inbox
    notes = {f"{inbox}/{ABOUT}": ABOUT_TEXT.format(inbox=inbox)}
    welcome_id = str(uuid.uuid4())
    if welcome:
        values = properties_of(
            id=welcome_id, created_at=now, source="memex", collection="documents", metadata={}, tags=("memex",)
        )
        notes[f"{inbox}/{WORKSPACE}/{WELCOME}.md"] = compose_note(values, WELCOME_TEXT.format(inbox=inbox))
    audit = AuditLog(ledger, settings.state)
    vault = AuditedVault(settings.vault.path, audit, inbox=inbox)
    try:
        names = {base_name(path).casefold() for path in vault.list_notes().files}
        written = {path: text for path, text in notes.items() if base_name(path).casefold() not in names}
        with acting_as(Author("daemon", "init")):
            for path, text in written.items():  # only names that no note has: a second one would redirect links
                vault.create(path, encode(text))
    finally:
        vault.close()
        audit.close()
    if welcome:  # it has its tags, and its first sentence is its summary
        AutomaticValues(ledger).record_summary(WORKSPACE, welcome_id, None)
    named_values.write(ledger, {WRITTEN: "1"})
    return [settings.vault.path / path for path in written]
