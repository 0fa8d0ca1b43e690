"""Set up file import: connect the converter, the import of uploads and of inbox files, and the inbox file scanner.

Law: only the owner's jobs name a file of the vault; Memex uses a path from an agent only as a name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from syncd.documents.file_names import why_not_imported
from syncd.files.conversion.converter import Limits, convert
from syncd.files.conversion.sandbox_report import SandboxReport
from syncd.files.file_note_writer import FileOrder
from syncd.files.imported_files import ImportedFiles
from syncd.files.inbox_file_scanner import InboxFileScanner
from syncd.files.inbox_files import InboxFiles
from syncd.files.uploaded_files import UploadedFiles
from syncd.jobs.queue import Queue
from syncd.jobs.worker import Handler, RunningJob
from syncd.vault.listing import Wanted

if TYPE_CHECKING:
    from syncd.captures.inbox import Inbox
    from syncd.settings.knowledge_base import KbSettings
    from syncd.settings.settings import Settings
    from syncd.sync.pipeline import Sync


OWNER: Final = ""  # in place of a key's id


@dataclass(frozen=True, slots=True)
class FileImport:
    """Holds the handler of the queue's `file` jobs, the scanner that queues inbox files, and the sandbox report."""

    handler: Handler
    dropped: InboxFileScanner
    sandbox: SandboxReport


def file_filter(settings: Settings) -> Wanted:
    """Return the filter that decides which files of the vault are listed besides its notes."""
    return partial(why_not_imported, most=settings.kb.max_file, inbox=settings.vault.inbox)


def build_file_import(inbox: Inbox, sync: Sync, queue: Queue, handled: ImportedFiles, settings: Settings) -> FileImport:
    """Set up the file import of one vault."""
    limits, staged = _conversion_limits(settings.kb), queue.staged.folder
    staged.mkdir(mode=0o700, exist_ok=True)
    parts = inbox, handled, sync.other_files, partial(convert, limits), sync.has_note
    files = UploadedFiles(*parts, free=settings.kb.free)
    inplace = InboxFiles(*parts, scratch=staged, free=settings.kb.free)
    scanner = InboxFileScanner(
        inbox.vault,
        inbox.captures,
        handled,
        lambda workspace, arguments: queue.add_file(OWNER, workspace, arguments, None),
        # A note may arrive with its file, so all known changes must be indexed.
        calm=lambda: sync.ready.is_set() and sync.progress is None and not sync.pending_paths,
        inbox=inbox.folder,
        quiet_s=inbox.quiet_s,
    )
    sync.on_listing(scanner.take_listing)

    def handle(work: RunningJob) -> str:
        job = work.job
        order = FileOrder(job.id, job.workspace, job.planned, job.given, work.staged, work.progress, work.stopping)
        lies = job.key == OWNER and work.staged is None and "path" in job.given
        return inplace.import_file(order) if lies else files.import_file(order)

    return FileImport(handle, scanner, SandboxReport(required=settings.kb.confined == "required"))


def _conversion_limits(kb: KbSettings) -> Limits:
    return Limits(
        kb.convert_s,
        kb.convert_mb << 20,
        kb.pages,
        kb.inflated_mb << 20,
        kb.text_kb * 1000,
        unconfined=kb.confined == "preferred",
    )
