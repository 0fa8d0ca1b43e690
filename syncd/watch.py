"""Hear from the kernel which paths of the vault may have changed: hints, never facts.

Law: silence proves nothing. Whenever events may have been lost or can't come, the caller is told to list the vault, and
told again every few seconds for as long as that lasts; `healthy` says why. What is heard is a path to look at: an
event's kind is not passed on, and its path may no longer be where the file is."""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from watchdog import events
from watchdog.observers.api import BaseObserver

from syncd.mount import remote

if sys.platform == "linux":
    from watchdog.observers.inotify import InotifyEmitter, InotifyWatchGroup
    from watchdog.observers.inotify_c import InotifyFD
else:
    from watchdog.observers import Observer

log = logging.getLogger(__name__)

# Without "opened" and "closed, not written": a checkout of 3,000 notes would double its 65,000 events by them.
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


class Watch:
    """The watcher of one vault. `on_paths` gets paths from the root, "/" between parts; "" is the root itself.

    A note's path means: look at it. A folder's path means: list it. Files that are no Markdown, and whatever `ignored`
    says of (`folder=True` for a folder), are dropped here, and such folders are not watched at all. `on_doubt` gets the reason to list everything.
    Both are called on the watcher's own threads and should only pass the word on. With mode "poll" no events are used
    and the vault is to be listed every `poll_s` seconds; "off" leaves it to the caller altogether."""

    def __init__(
        self,
        root: Path,
        on_paths: Callable[[Iterable[str]], None],
        on_doubt: Callable[[str], None],
        *,
        ignored: Callable[..., bool],
        mode: Literal["events", "poll", "off"] = "events",
        poll_s: float = 15.0,
    ) -> None:
        self.root = os.path.realpath(root)
        self._on_paths, self._on_doubt = on_paths, on_doubt
        self._ignored, self._mode, self._poll_s = ignored, mode, poll_s
        self._doubts: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._supervisor: threading.Thread | None = None
        self._ears: _Ears | None = None
        self._deaf = ""  # why there are no ears
        self._remote = ""
        self._recheck = False  # folders came or went since the watches were last compared with the disk

    def start(self) -> None:
        """Begin to watch. What can't be watched is no error: it is said by `healthy`, and polled."""
        if self._mode == "off":
            return
        self._doubts = queue.SimpleQueue()
        if self._mode == "events":
            self._listen()
            self._remote = remote(self.root)
        self._supervisor = threading.Thread(target=self._supervise, args=(self._doubts,), name="watch", daemon=True)
        self._supervisor.start()

    def stop(self) -> None:
        """Stop all threads; `start` may be called again."""
        if self._supervisor is not None:
            self._doubts.put(None)
            self._supervisor.join()
            self._supervisor = None
        if self._ears is not None:
            self._ears.close()
            self._ears = None

    @property
    def supervised(self) -> bool:
        """Whether somebody looks after the watcher and mends it; where nothing is watched, nobody need."""
        return self._mode == "off" or (self._supervisor is not None and self._supervisor.is_alive())

    def healthy(self) -> str:
        """Return "" while every change is heard of, else one sentence on what is not and what is done about it."""
        if self._mode == "off":
            return "watching is switched off: changes are found by the periodic listing"
        listed = f"the vault is listed every {self._poll_s:g} s"
        if self._mode == "poll":
            return f"file events are switched off: {listed}"
        if problem := self._ears.problem() if self._ears else self._deaf or "the watcher is not running":
            return f"{problem}: {listed}"
        if self._remote:
            return f"the vault lies on {self._remote}, which may not tell of changes made elsewhere: {listed}"
        return ""

    # -- threads ----------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        try:
            self._ears, self._deaf = _Ears(self.root, self._hear, self._doubts.put, self._ignored), ""
        except OSError as error:
            deaf = f"the vault can't be watched ({error.strerror})"
            if deaf != self._deaf:
                log.warning("%s", deaf)
            self._ears, self._deaf = None, deaf

    def _hear(self, event: events.FileSystemEvent) -> None:
        try:
            if event.is_directory:
                self._recheck = True
                if os.fsdecode(event.src_path) == self.root:
                    self._doubts.put("the vault's folder itself was changed or deleted")
            if paths := list(hints(event, self.root, self._ignored)):
                self._on_paths(paths)
        except Exception:  # top of the observer's loop: an error here would end it, and nobody would notice
            log.exception("a file event was lost: %r", event)
            self._doubts.put("a file event could not be handled")

    def _supervise(self, doubts: queue.SimpleQueue[str | None]) -> None:
        while True:
            try:
                reason = doubts.get(timeout=self._poll_s)
            except queue.Empty:
                reason = self._inspect()
            if reason is None:
                return
            if reason:
                try:
                    self._on_doubt(reason)
                except Exception:  # top of the supervisor's loop
                    log.exception("a listing could not be asked for: %s", reason)

    def _inspect(self) -> str:
        """What is wrong now, after trying to mend it; what was mended is a reason to list once more."""
        before = self.healthy()
        if self._mode == "events":
            if self._ears is None or self._ears.broken():
                if self._ears is not None:
                    self._ears.close()
                self._listen()
            elif self._recheck or self._ears.unwatched:
                self._recheck = False
                self._ears.compare()
        return before or self.healthy()


class _Handler(events.FileSystemEventHandler):
    """Takes every event in one place."""

    def __init__(self, hear: Callable[[events.FileSystemEvent], None]) -> None:
        self._hear = hear

    def dispatch(self, event: events.FileSystemEvent) -> None:
        self._hear(event)


class _Ears:
    """One observer over one root, as long as its threads and its root live."""

    def __init__(
        self,
        root: str,
        hear: Callable[[events.FileSystemEvent], None],
        doubt: Callable[[str], None],
        ignored: Callable[..., bool],
    ) -> None:
        self.unwatched: set[bytes] = set()
        self._root, self._doubt, self._ignored = root, doubt, ignored
        self._identity = _identity(root)
        self._observer, self._threads = self._observe()
        try:
            self._observer.schedule(_Handler(hear), root, recursive=True, event_filter=HEARD)
            self._observer.start()
        except OSError:
            self.close()
            raise
        self._threads += [self._observer, *self._observer.emitters]

    def close(self) -> None:
        """End the threads and give back the watches."""
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()
        for thread in self._threads:
            if thread.is_alive():
                thread.stop()
                thread.join()

    def broken(self) -> str:
        """Why nothing is heard any more, or ""."""
        if _identity(self._root) != self._identity:
            return "the vault's folder is gone or was replaced"
        return "" if all(thread.is_alive() for thread in self._threads) else "the watcher's threads have died"

    def problem(self) -> str:
        """Why not everything is heard, or ""."""
        if count := len(self.unwatched):
            return self.broken() or f"{count} folders can't be watched (is fs.inotify.max_user_watches too low?)"
        return self.broken()

    if sys.platform == "linux":

        def _observe(self) -> tuple[BaseObserver, list[Any]]:
            fd = InotifyFD()
            fd.start()
            return BaseObserver(_Emitter, inotify_fd=fd, ears=self), [fd]

        def compare(self) -> None:
            """Look for folders that are not watched, and try to watch them."""
            for emitter in self._observer.emitters:
                if isinstance(emitter, _Emitter) and emitter.group is not None:
                    self.unwatched = emitter.group.missing()

        def left_out(self, path: bytes) -> bool:
            """Whether this folder is none of ours."""
            relative = os.fsdecode(path)[len(self._root) + 1 :]
            return bool(relative) and self._ignored(relative, folder=True)

        def missed(self, path: bytes) -> None:
            """A folder could not be watched."""
            if not self.unwatched:
                self._doubt("a folder can't be watched")
            self.unwatched.add(path)

        def overflowed(self) -> None:
            """The kernel dropped events."""
            self._doubt("the kernel dropped file events: too many at once")
    else:

        def _observe(self) -> tuple[BaseObserver, list[Any]]:
            return Observer(), []

        def compare(self) -> None:
            """Nothing to compare: here one watch covers a whole tree."""


if sys.platform == "linux":

    class _Group(InotifyWatchGroup):
        """The watches of one tree: leaves out what is ignored, and tells of what watchdog keeps to itself."""

        def __init__(self, fd: InotifyFD, path: bytes, mask: Any, ears: _Ears) -> None:
            self._ears = ears
            super().__init__(fd, path, event_mask=mask, is_recursive=True)

        def on_queue_overflow(self) -> None:
            super().on_queue_overflow()
            self._ears.overflowed()

        def _add_callback(self, path: bytes) -> None:
            if self._ears.left_out(path):
                return
            super()._add_callback(path)  # drops every error but one at the root
            if path not in self._active_callbacks_by_path and _is_folder(path):
                self._ears.missed(path)

        def missing(self) -> set[bytes]:
            """The folders on disk that still are not watched after another try."""
            missing: set[bytes] = set()
            for folder, names, _ in os.walk(self.path):
                paths = {name: os.path.join(folder, name) for name in names}  # noqa: PTH118 - bytes
                names[:] = [n for n, path in paths.items() if not (self._ears.left_out(path) or _is_link(path))]
                with self._lock:
                    for path in [paths[name] for name in names]:
                        if path not in self._active_callbacks_by_path:
                            self._ears.missed(path)
                            super()._add_callback(path)
                            if path not in self._active_callbacks_by_path and _is_folder(path):
                                missing.add(path)
            return missing

    class _Emitter(InotifyEmitter):
        """As watchdog's own, with our group of watches."""

        group: _Group | None = None

        def __init__(self, *args: Any, ears: _Ears, **options: Any) -> None:
            super().__init__(*args, **options)
            self._ears = ears

        def on_thread_start(self) -> None:
            path, mask = os.fsencode(self.watch.path), self.get_event_mask_from_filter()
            self._inotify = self.group = _Group(self._inotify_fd, path, mask, self._ears)


def hints(event: events.FileSystemEvent, root: str, ignored: Callable[..., bool]) -> Iterator[str]:
    """The paths that an event says to look at: of a move both ends; of a name that is no Unicode, its folder."""
    for path in (os.fsdecode(event.src_path), os.fsdecode(event.dest_path)):
        if path == root:
            yield ""
        if not path.startswith(root + "/"):
            continue
        relative = path[len(root) + 1 :]
        if not (event.is_directory or relative[-3:].lower() == ".md") or ignored(relative, folder=event.is_directory):
            continue
        while relative and not _unicode(relative):
            relative = relative.rpartition("/")[0]
        yield relative


def _unicode(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _identity(root: str) -> tuple[int, int] | None:
    try:
        found = os.stat(root)  # noqa: PTH116 - a str, as watchdog needs it
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_folder(path: bytes) -> bool:
    return os.path.isdir(path) and not _is_link(path)  # noqa: PTH112 - bytes: no Path holds every name


def _is_link(path: bytes) -> bool:
    return os.path.islink(path)  # noqa: PTH114 - bytes: no Path holds every name
