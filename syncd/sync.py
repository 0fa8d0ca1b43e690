"""The one pipe: paths in, a true index out. Every change goes down it, whoever made it and however it was noticed.

Law: events are hints. A pass looks at the files themselves, so a missed, doubled or wrong event costs a look and
nothing else; and what is absent is removed only when its absence is certain."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from index.errors import Conflict, MemexError, NotFound, Unavailable
from index.index import Prepared
from index.model import Document, Stat
from syncd.capture import iso
from syncd.config import SyncSettings
from syncd.debounce import Pending, heard, settle, wake
from syncd.note import FrontmatterError, decode, edit, encode
from syncd.parse import parse
from syncd.place import place
from syncd.plan import Moved, Plan, Removed, Seen, brake, plan, survey
from syncd.repo import Repo
from syncd.shelf import Build, Shelf
from syncd.vault import Listing, Vault

log = logging.getLogger(__name__)

WINDOW = 48  # documents between two commits of a bulk run: a few seconds of work
FINAL = 2.0  # seconds for which a missing or emptied file must stay so: editors remove and make again
CERTAIN = 600.0  # seconds after which a held removal is believed
PROBLEM = frozenset({"bad-id", "conflict-copy", "bad-frontmatter", "unclosed-frontmatter"})  # notes that are never given an id

Progress = Callable[[int, int, str], None]  # done, total, stage


@dataclass(slots=True)
class Outcome:
    """What a pass did, counted."""

    added: int = 0
    modified: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: int = 0
    chunks: int = 0
    embedded: int = 0
    reused: int = 0
    seconds: float = 0.0

    @property
    def changes(self) -> int:
        """How many documents it changed."""
        return self.added + self.modified + self.moved + self.removed

    def add(self, other: Outcome) -> None:
        """Count `other` in."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


@dataclass(slots=True)
class _Held:
    """Removals that wait until they are certain."""

    since: float
    paths: set[str] = field(default_factory=set)


class Sync:
    """Keeps the indexes true to the vault. `run` is one pass; `start` makes passes as hints come in."""

    def __init__(self, vault: Vault, shelf: Shelf, repo: Repo, settings: SyncSettings, *, inbox: str, state: Path) -> None:
        self.vault, self.shelf, self.settings, self.inbox = vault, shelf, settings, inbox
        self.ready = threading.Event()  # set once a first listing has been indexed
        self._repo, self._head_file = repo, state / "head"
        self._passing = threading.RLock()  # one pass at a time
        self._hints: set[str] = set()
        self._pending: Pending = {}
        self._later: dict[str, float] = {}  # path → when to look again
        self._absent: dict[str, float] = {}  # path → when it was first found missing
        self._failed: dict[str, str] = {}  # path → why it could not be read
        self._held: _Held | None = None
        self._working = 0
        self._wake = threading.Condition()
        self._listing_wanted = True
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._trouble: dict[str, str] = {}

    # Being told

    def hint(self, paths: Iterable[str]) -> None:
        """These paths may have changed."""
        with self._wake:
            self._hints.update(paths)
            self._wake.notify()

    def want_listing(self) -> None:
        """Look at the whole vault soon."""
        with self._wake:
            self._listing_wanted = True
            self._wake.notify()

    def start(self) -> None:
        """Begin to make passes in a thread of its own; the first is over the whole vault."""
        self._thread = threading.Thread(target=self._work, name="sync", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the window in hand and make no further pass."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread:
            self._thread.join()
            self._thread = None

    # Telling

    @property
    def pending(self) -> int:
        """How many paths are known to have changed and can't be found yet."""
        with self._wake:
            return len(self._hints | self._pending.keys() | self._later.keys()) + self._working

    @property
    def failed(self) -> dict[str, str]:
        """path → why it could not be read at the last look."""
        return dict(self._failed)

    @property
    def degraded(self) -> list[str]:
        """What keeps the index from being true to the files, in sentences."""
        held = self._held
        trouble = list(self._trouble.values())
        if held:
            trouble.append(
                f"removals held: {len(held.paths)} notes vanished at once and stay searchable for now; "
                "if that was meant, run: memex index --accept-removals"
            )
        return trouble

    def taken(self, folded: str) -> bool:
        """Whether a note of the vault has this base name, in the folded form of `identity.fold`."""
        return any(folded in index.names for index in self.shelf.live.indexes.values())

    # The loop

    def _work(self) -> None:
        while True:
            with self._wake:
                while not self._stopping and not self._listing_wanted and (delay := self._delay()) > 0:
                    self._wake.wait(min(delay, 1.0))
                    if self.shelf.outdated() or self._unembedded():
                        break
                if self._stopping:
                    return
                listing, self._listing_wanted = self._listing_wanted, False
            try:
                if self.shelf.outdated():
                    self.rebuild(fresh=False)
                elif listing or self._unembedded():
                    self.run()
                elif due := self._due():
                    self.run(due)
            except MemexError as error:
                self._trouble["sync"] = f"indexing: {error}"
                log.warning("a pass failed and will be made again: %s", error)
                self._rest(5.0)
                self.want_listing()
            except Exception:  # the top of the loop: the daemon outlives a defect, and says so
                self._trouble["sync"] = "indexing: a pass failed unexpectedly; see the log"
                log.exception("a pass failed")
                self._rest(30.0)
                self.want_listing()
            else:
                self._trouble.pop("sync", None)

    def _rest(self, seconds: float) -> None:
        with self._wake:
            self._wake.wait_for(lambda: self._stopping, seconds)

    def _unembedded(self) -> bool:
        return any(index.comparable and index.wordbound for index in self.shelf.live.indexes.values())

    def _delay(self) -> float:
        now = time.monotonic()
        self._take_hints(now)
        times = [wake(self._pending, quiet=self.settings.quiet_s, patience=self.settings.patience_s), *self._later.values()]
        return min((moment - now for moment in times if moment is not None), default=60.0)

    def _take_hints(self, now: float) -> None:
        if self._hints:
            self._pending = heard(self._pending, self._hints, now)
            self._hints = set()

    def _due(self) -> list[str]:
        """The paths to look at now; they are pending no longer, but being worked on."""
        now = time.monotonic()
        with self._wake:
            self._take_hints(now)
            ready, self._pending = settle(self._pending, now, quiet=self.settings.quiet_s, patience=self.settings.patience_s)
            later = [path for path, moment in self._later.items() if moment <= now]
            for path in later:
                del self._later[path]
            paths = sorted({*ready, *later})
            self._working += len(paths)
            return paths

    def _look_again(self, path: str, after: float) -> None:
        with self._wake:
            self._later[path] = time.monotonic() + max(after, 0.05)
            self._wake.notify()

    # One pass

    def run(self, under: Collection[str] | None = None, *, accept: bool = False, progress: Progress | None = None) -> Outcome:
        """Look at `under` (None = the whole vault) and make the index true to it. `accept` believes every absence."""
        try:
            with self._passing:
                started = time.monotonic()
                outcome = self._sweep(self.shelf.live, under, accept=accept, progress=progress)
                outcome.seconds = round(time.monotonic() - started, 3)
        finally:
            if under is not None:
                with self._wake:
                    self._working -= min(self._working, len(under))
        return outcome

    def rebuild(self, *, fresh: bool, progress: Progress | None = None) -> Outcome:
        """Index the whole vault into a new build while the old one answers, then switch over.

        Meanwhile changes go to the old build; the last look, with both held still, carries them over."""
        with self._passing:
            started = time.monotonic()
            self._trouble["build"] = "index: being built anew; searches are answered from the one before"
            build = self.shelf.begin(fresh=fresh)
            try:
                outcome = self._sweep(build, None, accept=True, progress=progress)
                while not self._stopping:
                    more = self._sweep(build, None, accept=True)
                    outcome.add(replace(more, unchanged=0))
                    if not more.changes:
                        break
                if self._stopping:
                    build.close()  # it is taken up again at the next start
                    return outcome
                with ExitStack() as stack:
                    for index in self.shelf.live.indexes.values():
                        stack.enter_context(index.still())
                    self._sweep(build, None, accept=True)
                    self.shelf.switch(build)
            except BaseException:
                if self.shelf.live is not build:
                    build.close()
                raise
            finally:
                self._trouble.pop("build", None)
            self.ready.set()
            outcome.seconds = round(time.monotonic() - started, 3)
            return outcome

    def _sweep(self, build: Build, under: Collection[str] | None, *, accept: bool, progress: Progress | None = None) -> Outcome:
        outcome = Outcome()
        live = build is self.shelf.live
        if under is not None and "" in under:
            under = None  # the root itself
        if not self._rooted():
            if live:
                return outcome
            raise Unavailable("the vault is missing, so no new index can be made of it")
        head = self._repo.head() if under is None else None
        listing = self._look(under)
        if not live and (self._held or not listing.complete):
            raise Unavailable("some notes can't be seen just now, so no new index is made; memex status names them")
        for path in listing.files:
            self._absent.pop(path, None)
        embedding = all(index.comparable for index in build.indexes.values())
        suspects: list[str] = []
        missing: list[str] = []
        for scope, index in build.indexes.items():
            files = {path: stat for path, stat in listing.files.items() if place(path, self.inbox).scope == scope}
            found = survey(files, index.manifest.copy(), under=under, embedded=embedding)
            suspects += found.suspects
            missing += [path for path in found.missing if path not in listing.skipped] if listing.complete else []
            outcome.unchanged += found.unchanged
            if under is None and listing.complete:
                index.skip({path: why for path, why in listing.skipped.items() if place(path, self.inbox).scope == scope})
        if under is None and live:
            self._failed = {path: why for path, why in self._failed.items() if path in listing.files}
        gone = missing if accept else self._certain(missing, under, head, build)
        self._step(build, sorted(suspects, key=lambda path: self._urgency(path, listing)), gone, outcome, live=live, progress=progress)
        if under is None and live and not self._stopping:
            if listing.complete:
                self._trouble.pop("listing", None)
                self._remember_head(head)
            else:
                self._trouble["listing"] = "vault: some folders could not be read, so nothing is taken as removed; memex status lists them"
            self.ready.set()
        return outcome

    def _step(
        self, build: Build, suspects: Sequence[str], missing: Collection[str], outcome: Outcome, *, live: bool, progress: Progress | None
    ) -> None:
        """Read, cut, embed and commit window by window; what is gone goes last, so that its vectors can be reused."""
        left = set(missing)
        done = 0
        with self._wake:
            self._working += len(suspects)
        try:
            for start in range(0, len(suspects), WINDOW):
                window = suspects[start : start + WINDOW]
                if self._stopping:
                    return
                self._window(build, window, left, outcome, live=live)
                done += len(window)
                with self._wake:
                    self._working -= len(window)
                if progress:
                    progress(done, len(suspects), "indexing")
                if live and len(suspects) > WINDOW and (due := self._due()):
                    try:
                        outcome.add(self._sweep(build, due, accept=False))  # a save does not wait behind a bulk run
                    finally:
                        with self._wake:
                            self._working -= len(due)
        finally:
            with self._wake:
                self._working -= len(suspects) - done
        for index in build.indexes.values():
            gone = [path for path in left if path in index.manifest]
            for start in range(0, len(gone), 1000):
                index.commit([], gone[start : start + 1000], fresh=self.vault.stat)
            outcome.removed += sum(path not in index.manifest for path in gone)

    def _window(self, build: Build, window: Sequence[str], left: set[str], outcome: Outcome, *, live: bool) -> None:
        documents = dict(self._read(build, window, outcome, live=live))
        for scope, index in build.indexes.items():
            mine = {path: one for path, one in documents.items() if one[0].scope == scope}
            if not mine:
                continue
            seen = {path: Seen(document.digest, document.claimed_id, stat) for path, (document, stat) in mine.items()}
            planned = plan(seen, {path for path in left if path in index.manifest}, index.manifest, embedded=index.comparable)
            moved = {change.old: change.new for change in planned.changes if isinstance(change, Moved)}
            changed = [change.path for change in planned.changes if not isinstance(change, Moved | Removed)]
            ready = index.prepare([mine[path] for path in (*moved.values(), *changed)])
            stale = index.commit(ready, moved.keys(), fresh=self.vault.stat)
            index.touch(planned.touched)
            left -= moved.keys()
            for path in stale:
                self._look_again(path, self.settings.quiet_s)
            _count(outcome, planned, ready, set(stale))

    def _read(self, build: Build, paths: Iterable[str], outcome: Outcome, *, live: bool) -> Iterator[tuple[str, tuple[Document, Stat]]]:
        for path in paths:
            try:
                document, stat = self._one(build, path, live=live)
            except NotFound:
                self._look_again(path, FINAL)
            except Unavailable as error:
                outcome.failed += 1
                self._failed[path] = str(error)
                if error.retryable:
                    self._look_again(path, FINAL)
            except Conflict:
                self._look_again(path, self.settings.adopt_s)
            else:
                self._failed.pop(path, None)
                if document is not None:
                    yield path, (document, stat)

    def _one(self, build: Build, path: str, *, live: bool) -> tuple[Document | None, Stat]:
        """The document at `path`; None when it must be looked at again, because an editor may be in the middle of it."""
        raw, stat = self.vault.read(path)
        spot = place(path, self.inbox)
        age = time.time() - stat.mtime_ns / 1e9
        entry = build.indexes[spot.scope].manifest.get(path)
        if not raw and entry and 0 <= age < FINAL:
            self._look_again(path, FINAL - age)
            return None, stat
        document = parse(raw, path, mtime_ms=stat.mtime_ns // 1_000_000, inbox=self.inbox)
        if live and document.scope == "captures" and document.claimed_id is None and _adoptable(document):
            if 0 <= age < self.settings.adopt_s:
                self._look_again(path, self.settings.adopt_s - age)
            elif raw.strip():
                return self._adopt(document, raw, stat)
        return document, stat

    def _adopt(self, document: Document, raw: bytes, stat: Stat) -> tuple[Document, Stat]:
        """Give a note that a person dropped into the inbox its `id` and `created_at`, and touch no other byte."""
        changes: dict[str, str] = {"id": str(uuid.uuid4())}
        if document.created_at == stat.mtime_ns // 1_000_000:
            changes["created_at"] = iso(document.created_at)
        try:
            raw = encode(edit(decode(raw), changes))
        except FrontmatterError:
            return document, stat  # it has its defect already
        stat = self.vault.replace(document.path, raw, digest=document.digest)
        return parse(raw, document.path, mtime_ms=stat.mtime_ns // 1_000_000, inbox=self.inbox), stat

    # What is there

    def _rooted(self) -> bool:
        if not self.vault.present():
            try:
                self.vault.reopen()
            except Unavailable as error:
                self._trouble["vault"] = f"vault missing: {error}; the index is kept"
                return False
        self._trouble.pop("vault", None)
        return True

    def _look(self, under: Collection[str] | None) -> Listing:
        if under is None:
            return self.vault.listing()
        files: dict[str, Stat] = {}
        skipped: dict[str, str] = {}
        complete = True
        for path in under:
            if stat := self.vault.stat(path):
                files[path] = stat
                continue
            folder = path if path in ("", ".") else path.rpartition("/")[0]
            for look in {path, folder} if not path.endswith(".md") else {folder}:
                listing = self.vault.listing("" if look == "." else look)
                inside = {name: one for name, one in listing.files.items() if look == path or name == path}
                files |= inside
                skipped |= listing.skipped
                complete = complete and listing.complete
        return Listing(files, skipped, complete)

    def _urgency(self, path: str, listing: Listing) -> tuple[bool, int]:
        return place(path, self.inbox).scope == "vault", -listing.files[path].mtime_ns  # captures first, then the newest

    def _certain(self, missing: list[str], under: Collection[str] | None, head: str | None, build: Build) -> list[str]:
        """The missing paths whose absence may be believed now; the others are looked at again."""
        now = time.monotonic()
        known = sum(len(index.manifest) for index in build.indexes.values())
        if under is None:
            self._absent = {path: since for path, since in self._absent.items() if path in set(missing)}
        for path in missing:
            self._absent.setdefault(path, now)
        lost = len(self._absent)
        if brake(lost, known, share=self.settings.removal_share) and not self._meant(head):
            self._held = self._held or _Held(now)
            self._held.paths = set(self._absent)
            if now - self._held.since < CERTAIN:
                return []
        self._held = None
        first_pass = not self.ready.is_set()
        gone = []
        for path in missing:
            age = now - self._absent[path]
            if first_pass or age >= FINAL:
                gone.append(path)
                del self._absent[path]
            else:
                self._look_again(path, FINAL - age)
        return gone

    def _meant(self, head: str | None) -> bool:
        """Whether Git itself took the notes away: HEAD is not where it was at the last listing."""
        head = head or self._repo.head()
        return head is not None and head != self._last_head()

    def _last_head(self) -> str | None:
        try:
            return self._head_file.read_text("utf-8").strip() or None
        except FileNotFoundError:
            return None

    def _remember_head(self, head: str | None) -> None:
        if head and not self._held and head != self._last_head():
            self._head_file.write_text(head, "utf-8")


def _adoptable(document: Document) -> bool:
    return document.writable and not any(defect.name in PROBLEM for defect in document.defects)


def _count(outcome: Outcome, planned: Plan, ready: Sequence[Prepared], stale: Collection[str]) -> None:
    for change in planned.changes:
        path = change.new if isinstance(change, Moved) else change.path
        if path not in stale and not isinstance(change, Removed):
            name = type(change).__name__.lower()
            setattr(outcome, name, getattr(outcome, name) + 1)
    outcome.unchanged += planned.unchanged
    for one in ready:
        if one.document.path not in stale:
            outcome.chunks += len(one.chunks)
            outcome.embedded += one.embedded
            outcome.reused += one.reused

