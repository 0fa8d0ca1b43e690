"""Turn the kernel's events about one folder and everything below it into paths to check.

Law: an event is a hint. Its kind is dropped, and the file may no longer be at its path. Failures that the watch
library hides (a folder that cannot be watched, dropped events, a dead thread) are reported."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from watchdog import events
from watchdog.observers.api import BaseObserver

if sys.platform == "linux":
    from watchdog.observers.inotify import InotifyEmitter, InotifyWatchGroup
    from watchdog.observers.inotify_c import CallbackId, InotifyEvent, InotifyFD, Mask, WatchCallback, WatchDescriptor
    from watchdog.observers.inotify_move_event_grouper import (
        GroupedInotifyEvent,
        InotifyMoveEventGrouper,
        PathedInotifyEvent,
    )
    from watchdog.utils.delayed_queue import DelayedQueue
else:
    from watchdog.observers import Observer

from syncd.vault.path_rules import is_note, is_temporary, nearest_utf8_path, path_behind_placeholder

log = logging.getLogger(__name__)

GONE: Final = "the vault's folder is gone or was replaced"
# Without "opened" and "closed, not written", which would double the 65,000 events of a checkout of 3,000 notes.
HEARD: list[type[events.FileSystemEvent]] = [
    events.FileCreatedEvent,
    events.FileModifiedEvent,
    events.FileClosedEvent,
    events.FileMovedEvent,
    events.FileDeletedEvent,
    events.FileAttribEvent,
    events.DirCreatedEvent,
    events.DirMovedEvent,
    events.DirDeletedEvent,
    events.DirAttribEvent,
]


class FolderEvents(events.FileSystemEventHandler):
    """Observes one root while its threads and its root exist. Raises OSError if events are unavailable.

    `on_paths` gets paths relative to the root, `on_doubt` why events may have been lost; both on the observer's
    threads."""

    def __init__(
        self,
        root: str,
        on_paths: Callable[[Iterable[str]], None],
        on_doubt: Callable[[str], None],
        ignored: Callable[..., bool],
        wanted: Callable[[str], bool] = is_note,
    ) -> None:
        self.unwatched: set[bytes] = set()
        self.stirred = False  # folders were added or removed since the watches were last compared with the disk
        self.overflows = 0
        self._root, self._on_paths, self._doubt, self._ignored = os.path.realpath(root), on_paths, on_doubt, ignored
        self._given, self._identity, self._wanted = root, _folder_identity(root), wanted
        # Raises for a root without read access.
        os.close(os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        self._observer, self._threads = self._create_observer()
        try:
            self._observer.schedule(self, self._root, recursive=True, event_filter=HEARD)
            self._observer.start()
        except OSError:
            self.close()
            raise
        self._threads += [self._observer, *self._observer.emitters]

    def close(self) -> None:
        """Stop the threads and release the watches."""
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()
        for thread in self._threads:
            if thread.is_alive():
                thread.stop()
                thread.join()

    def problem(self) -> str:
        """Return why no events arrive any more, or ""."""
        if _folder_identity(self._given) != self._identity:
            return GONE
        if not all(thread.is_alive() for thread in self._threads):
            return "the watcher's threads have died"
        return "" if self.folder_count else "the vault's folder is no longer watched"

    def dispatch(self, event: events.FileSystemEvent) -> None:
        """Handle an event of the observer, of any kind."""
        try:
            if event.is_directory:
                self.stirred = True
                if os.fsdecode(event.src_path) == self._root:
                    self._doubt("the vault's folder itself was changed or deleted")
            if paths := list(paths_to_check(event, self._root, self._ignored, self._wanted)):
                self._on_paths(paths)
        except Exception:  # top of the observer's loop: an error here would end it silently
            log.exception("could not handle a file event: %r", event)
            self._doubt("a file event could not be handled")

    if sys.platform == "linux":

        def _create_observer(self) -> tuple[BaseObserver, list[Any]]:
            fd = _FD()
            fd.start()
            return BaseObserver(_Emitter, inotify_fd=fd, events=self), [fd]

        def _list_groups(self) -> Iterator[_Group]:
            for emitter in self._observer.emitters:
                if isinstance(emitter, _Emitter) and emitter.group is not None:
                    yield emitter.group

        @property
        def folder_count(self) -> int:
            """Return the number of watched folders; 0 when the root is not watched."""
            return sum(group.watched_count for group in self._list_groups())

        def watch_missing(self) -> None:
            """Find folders that are not watched, and try to watch them."""
            self.stirred = False
            for group in self._list_groups():
                self.unwatched = group.retry_missing()

        def is_left_out(self, path: bytes) -> bool:
            """Return whether this folder is ignored."""
            relative = os.fsdecode(path)[len(self._root) + 1 :]
            return bool(relative) and self._ignored(relative, folder=True)

        def report_unwatched(self, path: bytes) -> None:
            """Record that a folder could not be watched."""
            if not self.unwatched:
                self._doubt("a folder can't be watched")
            self.unwatched.add(path)

        def report_overflow(self) -> None:
            """Record that the kernel dropped events."""
            self.overflows += 1
            self._doubt("the kernel dropped file events: too many at once")
    else:

        def _create_observer(self) -> tuple[BaseObserver, list[Any]]:
            return Observer(), []

        @property
        def folder_count(self) -> int:
            """Return 1: on this system one watch covers a whole tree."""
            return 1

        def watch_missing(self) -> None:
            """Do nothing: there are no single watches to compare."""
            self.stirred = False


if sys.platform == "linux":

    class _FD(InotifyFD):
        """Extends watchdog's class: a folder that disappears and returns at once is watched again without a warning."""

        def _add_callback(self, path: bytes, mask: Mask, callback: WatchCallback, id_: CallbackId) -> WatchDescriptor:
            watch = self._get_or_create_watch(path, mask)
            watch.callbacks[id_] = callback
            return watch.wd

    class _LatestFirst(DelayedQueue[GroupedInotifyEvent]):
        """Searches the newest events first: the two ends of a move arrive together, behind up to half a second of other events.

        Once the second end has arrived, the wait for it ends; watchdog's class sleeps on, so about one in fifty saves by
        a rename was heard half a second late."""

        def get(self) -> GroupedInotifyEvent | None:
            with self._not_empty:
                while not self._closed:
                    if not self._queue:
                        self._not_empty.wait()
                        continue
                    event, put_at, delayed = self._queue[0]
                    left = put_at + self.delay - time.monotonic() if delayed else 0.0
                    if left <= 0:
                        self._queue.popleft()
                        return event
                    self._not_empty.wait(left)
            return None

        def _index_and_item(
            self, predicate: Callable[[GroupedInotifyEvent], bool]
        ) -> tuple[int, GroupedInotifyEvent] | None:
            for back, (event, *_) in enumerate(reversed(self._queue), 1):
                if predicate(event):
                    return len(self._queue) - back, event
            return None

    class _Grouper(InotifyMoveEventGrouper):
        """Extends watchdog's class: searches the newest events first for the other end of a move."""

        def __init__(self) -> None:
            super().__init__()
            self._queue = _LatestFirst(self.delay)

    class _Group(InotifyWatchGroup):
        """Manages the watches of one tree: skips ignored folders, drops those that leave, reports those it can't watch."""

        def __init__(self, fd: InotifyFD, path: bytes, mask: Mask, events: FolderEvents) -> None:
            self._folder_events = events
            self._leaving: dict[int, set[WatchDescriptor]] = {}  # by the cookie of a move whose other end is unknown
            super().__init__(fd, path, event_mask=mask, is_recursive=True)

        def _activate(self) -> None:
            self._move_event_grouper = _Grouper()  # before the first event
            super()._activate()

        @property
        def watched_count(self) -> int:
            """Return the number of watched folders; 0 when the root is not watched, even if its folders are."""
            return len(self._active_callbacks_by_path) if self.path in self._active_callbacks_by_path else 0

        def on_queue_overflow(self) -> None:
            self._leaving.clear()
            super().on_queue_overflow()
            self._folder_events.report_overflow()

        def on_event(self, event: InotifyEvent) -> None:
            # No name of a temporary file is a path to check, and a replaced note causes nine events, five of them only about such a
            # file. A move is needed for its other end.
            if not (event.is_directory or event.is_moved_from or event.is_moved_to) and is_temporary(
                os.fsdecode(event.name)
            ):
                return
            if event.is_moved_from and event.is_directory:
                with self._lock:
                    self._leaving[event.cookie] = self._watches_below(self._build_event_source_path(event))
            super().on_event(event)

        def read_event(self) -> GroupedInotifyEvent | None:
            event = super().read_event()
            if isinstance(event, PathedInotifyEvent):
                if event.ev.is_moved_from and (left := self._leaving.pop(event.ev.cookie, None)):
                    with self._lock:  # it left the vault, so it is no longer watched
                        self._remove_callbacks([wd for wd in left if wd in self._active_callbacks_by_watch])
            elif event is not None:
                self._leaving.pop(event[0].ev.cookie, None)
            return event

        def retry_missing(self) -> set[bytes]:
            """Try to watch the missing folders on disk; return those that still are not watched."""
            missing: set[bytes] = set()
            for folder, names, _ in os.walk(self.path):
                paths = {name: os.path.join(folder, name) for name in names}  # noqa: PTH118 - bytes
                names[:] = [
                    n for n, path in paths.items() if not (self._folder_events.is_left_out(path) or _is_link(path))
                ]
                with self._lock:
                    for path in [paths[name] for name in names]:
                        if path not in self._active_callbacks_by_path and _is_readable(path):
                            self._folder_events.report_unwatched(path)
                            self._add_callback(path)
                            if path not in self._active_callbacks_by_path and _is_folder(path):
                                missing.add(path)
            return missing

        def _watches_below(self, top: bytes | None) -> set[WatchDescriptor]:
            if top is None:
                return set()
            watched = self._active_callbacks_by_watch.items()
            return {wd for wd, path in watched if path == top or path.startswith(top + b"/")}

        def _add_callback(self, path: bytes) -> None:
            # Where permission is denied the library keeps -1 for a watch. Nothing can be read there either; when that
            # changes, the parent folder reports it.
            if self._folder_events.is_left_out(path) or not _is_readable(path):
                return
            super()._add_callback(path)  # ignores every error except one at the root
            if path in self._active_callbacks_by_path:
                for left in list(self._leaving.values()):
                    left.discard(self._active_callbacks_by_path[path])  # it has returned already
            elif _is_folder(path):
                self._folder_events.report_unwatched(path)

        def _remove_watch_internally(self, wd: WatchDescriptor) -> None:
            """Remove a watch as the library does, except for a folder whose path another folder took and left before."""
            path = self._active_callbacks_by_watch.pop(wd, None)
            if path is not None and self._active_callbacks_by_path.get(path) == wd:
                del self._active_callbacks_by_path[path]

    class _Emitter(InotifyEmitter):
        """Extends watchdog's class with Memex's group of watches."""

        group: _Group | None = None

        def __init__(self, *args: Any, events: FolderEvents, **options: Any) -> None:
            super().__init__(*args, **options)
            self._folder_events = events

        def on_thread_start(self) -> None:
            path, mask = os.fsencode(self.watch.path), self.get_event_mask_from_filter()
            self._inotify = self.group = _Group(self._inotify_fd, path, mask, self._folder_events)


def paths_to_check(
    event: events.FileSystemEvent, root: str, ignored: Callable[..., bool], wanted: Callable[[str], bool] = is_note
) -> Iterator[str]:
    """Yield the paths to check for an event: both ends of a move; for a name that is not Unicode, its folder."""
    for path in (os.fsdecode(event.src_path), os.fsdecode(event.dest_path)):
        if path == root:
            yield ""
        if not path.startswith(root + "/"):
            continue
        relative = path[len(root) + 1 :]
        if not event.is_directory:
            # iCloud removes only the placeholder of a note that was deleted elsewhere.
            relative = path_behind_placeholder(relative)
        if not (event.is_directory or wanted(relative)) or ignored(relative, folder=event.is_directory):
            continue
        yield nearest_utf8_path(relative)


def _folder_identity(root: str) -> tuple[int, int] | None:
    try:
        status = os.stat(root)  # noqa: PTH116 - a str, as watchdog needs it
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_readable(path: bytes) -> bool:
    return os.access(path, os.R_OK)


def _is_folder(path: bytes) -> bool:
    return os.path.isdir(path) and not _is_link(path)  # noqa: PTH112 - bytes: no Path holds every name


def _is_link(path: bytes) -> bool:
    return os.path.islink(path)  # noqa: PTH114 - bytes: no Path holds every name
