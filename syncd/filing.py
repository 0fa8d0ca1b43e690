"""Put together what makes documents of files: the converter, the two ways in, and who notices what people drop.

Law: only the owner's jobs name a file of the vault; a path that an agent gives is a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from syncd.convert import Limits, converted, kind_of
from syncd.dropped import Dropped
from syncd.file_names import droppable
from syncd.file_text import Converter, Order
from syncd.files import Files
from syncd.handled import Handled
from syncd.inplace import InPlace
from syncd.kinds import KNOWN
from syncd.listing import Wanted
from syncd.queue import Queue
from syncd.worker import Handler, Work

if TYPE_CHECKING:
    from syncd.config import Settings
    from syncd.knowledge_base_settings import KbSettings
    from syncd.sync import Sync
    from syncd.tools import Tools


OWNER: Final = ""  # in place of a key


@dataclass(frozen=True, slots=True)
class Filing:
    """The handler of the queue's jobs of kind `file`, and who queues those of the inbox."""

    handler: Handler
    dropped: Dropped


def wanted(settings: Settings) -> Wanted:
    """Which files of the vault are listed beside its notes."""
    return partial(droppable, known=KNOWN, most=settings.kb.max_file, inbox=settings.vault.inbox)


def filing(tools: Tools, sync: Sync, queue: Queue, handled: Handled, settings: Settings) -> Filing:
    """All of it, for one vault."""
    limits, staged = _limits(settings.kb), queue.staged.folder
    converter = Converter(KNOWN, kind_of, lambda path, kind, stopping: converted(path, kind, limits, stopping))
    staged.mkdir(mode=0o700, exist_ok=True)
    parts = tools, handled, sync.beside, converter, sync.noted
    files = Files(*parts, free=settings.kb.free)
    inplace = InPlace(*parts, scratch=staged, free=settings.kb.free)
    dropped = Dropped(
        tools.vault,
        tools.captures,
        handled,
        lambda workspace, given: queue.add_file(OWNER, workspace, given, None),
        calm=_calm(sync),
        inbox=tools.inbox,
        quiet_s=tools.quiet_s,
    )
    sync.on_listing(dropped.seen)

    def handler(work: Work) -> str:
        job = work.job
        order = Order(job.id, job.workspace, job.planned, job.given, work.staged, work.progress, work.stopping)
        lies = job.key == OWNER and work.staged is None and "path" in job.given
        return inplace.read(order) if lies else files.store(order)

    return Filing(handler, dropped)


def _calm(sync: Sync) -> Callable[[], bool]:
    """Whether the notes of all that has been heard of are known: a note may be on its way with its file."""
    return lambda: sync.ready.is_set() and sync.progress is None and sync.pending == 0


def _limits(kb: KbSettings) -> Limits:
    return Limits(kb.convert_s, kb.convert_mb << 20, kb.pages, kb.inflated_mb << 20, kb.text_kb * 1000)
