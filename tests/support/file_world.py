"""Upload and drop files in a test world: the real file store, with a converter that reads plain bytes, and without a queue."""

from __future__ import annotations

import secrets
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syncd.documents.file_names import why_not_imported
from syncd.files.conversion.converter import Unreadable
from syncd.files.conversion.readers.reader_result import MarkdownReading
from syncd.files.file_note_writer import FileOrder
from syncd.files.imported_files import ImportedFiles
from syncd.files.inbox_file_scanner import InboxFileScanner
from syncd.files.inbox_files import InboxFiles
from syncd.files.uploaded_files import UploadedFiles
from syncd.vault.taken_names import OtherFileNames
from tests.support.world import World


@dataclass
class FakeReader:
    """Uses a file's bytes as its text. It raises `fails` if set, and can't read files that begin with BROKEN."""

    fails: BaseException | None = None
    cut: bool = False
    read: list[str] = field(default_factory=list)

    def __call__(
        self, path: Path, media_type: str, _: threading.Event, wait_for_room: Callable[[int], object]
    ) -> MarkdownReading:
        self.read.append(media_type)
        if self.fails:
            raise self.fails
        wait_for_room(path.stat().st_size)
        raw = path.read_bytes().removeprefix(b"%PDF-")
        if raw.startswith(b"BROKEN"):
            raise Unreadable("the file is damaged")
        return MarkdownReading(raw.decode("utf-8", "replace"), pages=1, cut=self.cut)


class Filing:
    """The file store of a world; `reopen` simulates a restart."""

    def __init__(self, folder: Path, **sections: Any) -> None:
        self.world = World(folder, **sections)
        self.reader = FakeReader()
        self.queued: list[tuple[str, dict[str, Any]]] = []
        self._open()

    def _open(self, free: int = 0) -> None:
        app = self.world.app
        inbox = app.agent_access._inbox
        app.opened.vault._wanted = lambda path, size: why_not_imported(path, size, most=1_000_000, inbox="Captures")
        self.staged = self.world.state / "staged"
        self.staged.mkdir(exist_ok=True)
        self.handled = ImportedFiles(app.opened.ledger)
        self.beside: OtherFileNames = app.opened.sync.other_files
        parts = inbox, self.handled, self.beside, self.reader, app.opened.sync.has_note
        self.files, self.inplace = UploadedFiles(*parts, free=free), InboxFiles(*parts, scratch=self.staged, free=free)
        self.dropped = InboxFileScanner(
            app.opened.vault,
            app.opened.builds.scopes["captures"],
            self.handled,
            lambda workspace, given: self.queued.append((workspace, dict(given))),
            lambda: True,
            inbox="Captures",
            quiet_s=0.0,
        )
        app.opened.sync.on_listing(self.dropped.take_listing)

    def reopen(self, *, free: int = 0) -> None:
        self.world.reopen()
        self._open(free)

    def close(self) -> None:
        self.world.close()

    def order(self, name: str, data: bytes | None = None, *, workspace: str = "default", **given: Any) -> FileOrder:
        """Return the order for a staged upload, or for a file of the vault if there is no `data`."""
        id = secrets.token_hex(16)
        staged = None
        if data is not None:
            staged = self.staged / id
            staged.write_bytes(data)
        told = {"name": name, **given}
        return FileOrder(id, workspace, str(uuid.uuid4()), told, staged, lambda *_: None, threading.Event())

    def upload(self, name: str, data: bytes, **given: Any) -> str:
        """Import an upload, and return the document's id."""
        return self.files.import_file(self.order(name, data, **given))

    def drop(self, path: str, data: bytes) -> None:
        """Save a file in the vault, as a person does."""
        self.world.write(path, data)
        self.beside.add(path)

    def noticed(self) -> list[str]:
        """Run an index pass and the scan after it, and return the queued files."""
        self.queued.clear()
        self.world.run()
        self.dropped.queue_quiet_files()
        return [str(given["path"]) for _, given in self.queued]

    def take(self) -> list[str]:
        """Import all queued files, and return the ids of the documents."""
        taken, self.queued[:] = list(self.queued), []
        return [self.inplace.import_file(self.order(given.pop("name"), workspace=to, **given)) for to, given in taken]

    @property
    def workspace(self) -> Any:
        return self.world.app.agent_access.workspace("default")

    def stored(self) -> dict[str, bytes]:
        """Return the files of the inbox except notes, by path."""
        root = self.world.vault
        found = (path for path in (root / "Captures").rglob("*") if path.is_file() and path.suffix != ".md")
        return {str(path.relative_to(root)): path.read_bytes() for path in found}

    def notes(self) -> list[str]:
        """Return the notes of the inbox."""
        return sorted(str(path.relative_to(self.world.vault)) for path in (self.world.vault / "Captures").rglob("*.md"))
