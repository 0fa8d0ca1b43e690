"""Run the sync pipeline: read the changed paths, and bring the index up to date with the files.

Law: events are hints. A pass reads the files themselves, so a missed, duplicate or wrong event costs one check and
nothing else."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from index.errors import MemexError, Unavailable
from syncd.git.ignored_paths import SparseFiles
from syncd.git.repository import Repository
from syncd.history.audit_log import ADOPTION, acting_as
from syncd.indexes.index_builds import Build, IndexBuilds
from syncd.settings.settings import SyncSettings
from syncd.sync.hand_edits import HandEdits
from syncd.sync.index_pass import IndexPass, PassOutcome, PassRequest, Progress
from syncd.sync.pending_paths import PendingPaths
from syncd.sync.removal_rules import RemovalRules
from syncd.sync.shared_notes import SharedNotes
from syncd.vault.listing import Listing
from syncd.vault.taken_names import OtherFileNames
from syncd.vault.vault import Vault

log = logging.getLogger(__name__)

BUILDING = "index: being rebuilt; the previous index answers searches meanwhile"
LOST = "index: its files were removed or damaged, and it is being rebuilt; until then searches fail or miss notes"
ROUNDS, FEW = 5, 10  # most rounds over changes made during a build, until at most this many notes change
HELD = (
    "removals held: many notes disappeared at once and stay searchable for now; "
    "if you removed them on purpose, run: memex index --accept-removals"
)
FIRST_S = 10.0  # seconds after which the first pass starts in any case
PAUSE = 5.0, 30.0  # seconds before a failed pass is repeated: after an expected failure, after a bug
AGAIN = {"build": 30.0, "embed": 30.0, "root": 1.0}  # seconds between two tries of a failed step


class Sync:
    """Keeps the indexes up to date with the vault. `run` is one pass; `start` makes passes as hints arrive."""

    def __init__(
        self,
        vault: Vault,
        builds: IndexBuilds,
        repo: Repository,
        edits: HandEdits,
        settings: SyncSettings,
        *,
        inbox: str,
        state: Path,
        collections: Sequence[str],
        shared_notes: SharedNotes,
    ) -> None:
        self.vault, self.builds, self.edits = vault, builds, edits
        self.other_files = OtherFileNames(vault)
        self.sparse_files = SparseFiles(repo)
        self.ready = threading.Event()  # set once the first listing has been indexed
        self._pending_paths = PendingPaths(quiet=settings.quiet_s, patience=settings.patience_s)
        self._removal_rules = RemovalRules(repo, state / "head", share=settings.removal_share)
        self._index_pass = IndexPass(
            vault,
            self._pending_paths,
            self._removal_rules,
            edits,
            inbox=inbox,
            adopt_s=settings.adopt_s,
            collections=collections,
            shared_notes=shared_notes,
        )
        self._passing = threading.RLock()  # one pass at a time
        self._thread: threading.Thread | None = None
        self._trouble: dict[str, str] = {}
        self.passes = {"done": 0, "failed": 0}
        self._tried = dict.fromkeys(AGAIN, -AGAIN["build"])  # when each step last failed
        self._moved: float | None = None  # when the current pass last made progress
        self.progress: tuple[int, int] | None = None  # of the current pass: finished notes, all notes

    def hint(self, paths: Iterable[str]) -> None:
        """Add paths that may have changed."""
        self._pending_paths.hint(paths)

    def request_listing(self) -> None:
        """Request a pass over the whole vault."""
        self._pending_paths.request_listing()

    def list_now(self) -> None:
        """Run a pass over the whole vault; a failure is raised, and the pipeline's thread tries again."""
        try:
            self.run()
        except MemexError:
            self.request_listing()
            raise

    def start(self, after: threading.Event | None = None) -> None:
        """Start making passes in a thread; the first covers the whole vault, once `after` is set or soon."""
        self._pending_paths.resume()
        self._pending_paths.request_listing()
        self._thread = threading.Thread(target=self._run_loop, args=(after,), name="sync", daemon=True)
        self._thread.start()

    def interrupt(self) -> None:
        """Make no further pass; the current one ends with its current window."""
        self._pending_paths.stop()

    def stop(self) -> None:
        """Finish the current window and make no further pass."""
        self.interrupt()
        if self._thread:
            self._thread.join()
            self._thread = None

    @property
    def pending_paths(self) -> set[str]:
        """Return the changed paths that are not indexed yet."""
        return self._pending_paths.paths

    @property
    def stalled_s(self) -> float:
        """Return the seconds since the current pass made progress; 0 without a pass, infinity if the thread has died."""
        if self._thread is not None and not self._thread.is_alive() and not self._pending_paths.stopped:
            return float("inf")
        moved = self._moved
        return 0.0 if moved is None else time.monotonic() - moved

    @contextmanager
    def _track_pass(self, progress: Progress | None) -> Iterator[Progress]:
        """Run one pass at a time, and record its progress through the yielded function."""

        def report(done: int, total: int, stage: str) -> None:
            self.progress, self._moved = (done, total), time.monotonic()
            if progress:
                progress(done, total, stage)

        with self._passing, acting_as(ADOPTION):  # the author of all writes of a pass
            self._moved = time.monotonic()
            try:
                yield report
            finally:
                self._moved = self.progress = None

    @property
    def failures(self) -> dict[str, str]:
        """Return why each path could not be read last time."""
        return dict(self._index_pass.failed)

    @property
    def held_paths(self) -> tuple[str, ...]:
        """Return the paths of the notes whose removals are held."""
        return self._removal_rules.held_paths

    @property
    def problems(self) -> list[str]:
        """Return the reasons why the index may differ from the files, as sentences."""
        trouble = list(self._trouble.values())
        if self.held_paths:
            trouble.append(HELD)
        if self._index_pass.unseen:
            trouble.append(
                "vault: some folders can't be read, so their indexed notes are kept; memex status names them"
            )
        return trouble

    @property
    def activity(self) -> str:
        """Return the pipeline's current activity in a few words; "" when the vault was read and no long pass is running."""
        if (progress := self.progress) and progress[1] > 1:
            return f"indexing {progress[0]:,}/{progress[1]:,}"
        return "" if self.ready.is_set() else "reading the vault for the first time"

    def has_note(self, folded: str) -> bool:
        """Return whether a note of the vault has this base name, in the form of `names.fold`."""
        return any(index.paths_named((f"{folded}.md",)) for index in self.builds.indexes.values())

    def is_name_taken(self, folded: str) -> bool:
        """Return whether a note or another file of the vault has this base name, also one that is only in Git."""
        is_left_out = self.sparse_files.has_name(folded) or self.sparse_files.has_name(f"{folded}.md")
        return is_left_out or self.has_note(folded) or self.other_files.is_taken(folded)

    def on_listing(self, callback: Callable[[Listing, Collection[str] | None], object]) -> None:
        """Set the callback that gets each pass's listing, and the paths it covers (None: everything)."""
        self._index_pass.on_look = callback

    def run(
        self, under: Collection[str] | None = None, *, accept: bool = False, progress: Progress | None = None
    ) -> PassOutcome:
        """Index the changes of `under` (None = the whole vault). `accept` accepts every absence."""
        with self._track_pass(progress) as tell:
            started = time.monotonic()
            paths = None if under is None or "" in under else frozenset(under)
            if not self._check_vault():
                return PassOutcome()
            request = PassRequest(
                self.builds.live, live=True, under=paths, accept=accept, at_once=not self.ready.is_set()
            )
            outcome = self._index_pass.run(request, tell)
            if paths is None and not self._pending_paths.stopped:
                self._mark_listed(self.builds.live)
            outcome.seconds = round(time.monotonic() - started, 3)
            self.passes["done"] += 1
            return outcome

    def rebuild(self, *, fresh: bool, progress: Progress | None = None) -> PassOutcome:
        """Index the whole vault into a new build while the old one answers, then switch to it.

        Meanwhile changes go to the old build; a last pass, with commits held back, carries them over."""
        with self._track_pass(progress) as tell:
            started = time.monotonic()
            if not self._check_vault():
                raise Unavailable("the vault is missing, so Memex can't build a new index")
            if not self.builds.is_lost() and (problem := self.builds.missing_encoder()):
                raise Unavailable(f"a new index would have no vectors now, so the current index stays: {problem}")
            self._trouble["build"] = LOST if self.builds.is_lost() else BUILDING
            try:
                build = self.builds.begin(fresh=fresh)
                done = sum(len(index.manifest) for index in build.indexes.values())
                log.info("rebuilding the index in %s: %d notes are in it already", build.folder.name, done)
                try:
                    outcome = self._fill_build(build, tell)
                finally:
                    self.builds.release(build)
            finally:
                self._trouble.pop("build", None)
            outcome.seconds = round(time.monotonic() - started, 3)
            answers, resumes = "the new index answers", "the new index is not complete; the build resumes later"
            end = answers if build is self.builds.live else resumes
            log.info("%s: %s passages embedded in %.1f s", end, outcome.embedded, outcome.seconds)
            return outcome

    def _fill_build(self, build: Build, progress: Progress) -> PassOutcome:
        request = PassRequest(build, live=False, beside=None if self.builds.is_lost() else self.builds.live)
        outcome = self._index_pass.run(request, progress)
        for _ in range(ROUNDS):  # changes made meanwhile; the last ones are indexed while commits are held back
            if self._pending_paths.stopped:
                break
            more = self._index_pass.run(request)
            outcome.add(replace(more, unchanged=0))
            if more.changes <= FEW:
                break
        if self._pending_paths.stopped:
            return outcome
        with ExitStack() as stack:
            for index in self.builds.indexes.values():
                stack.enter_context(index.lock)
            self._index_pass.run(replace(request, beside=None))  # captures wait for it, so saves wait as well
            self.builds.switch(build)
        self._mark_listed(build)
        self._pending_paths.request_listing()  # a pass over a build that does not answer yet writes no ids into notes
        return outcome

    def _mark_listed(self, build: Build) -> None:
        for index in build.indexes.values():
            index.is_complete = True
        self.builds.mark_filled()
        self.ready.set()

    def _run_loop(self, after: threading.Event | None) -> None:
        """Run the thread: wait for work, and do it."""
        if after is not None:
            after.wait(FIRST_S)
        while not self._pending_paths.stopped:
            due: list[str] = []
            try:
                listing = self._pending_paths.wait(lambda: bool(self._reason_for_pass()))
                if self._pending_paths.stopped:
                    return
                wanted = self._reason_for_pass()
                if wanted == "build":
                    self._rebuild()
                elif listing or wanted:
                    self.run()
                    self._record_try("embed", self._has_unembedded())
                else:
                    with self._pending_paths.processing_due() as due:
                        if due:
                            self.run(due)
            except MemexError as error:
                log.warning("a pass failed and will be repeated: %s", error)
                self._record_failure(f"indexing: {error.message}", PAUSE[0], due)
            except Exception:  # top of the loop: the daemon survives a bug, and reports it
                log.exception("a pass failed")
                self._record_failure("indexing: a pass failed unexpectedly; see the log", PAUSE[1], due)
            else:
                self._trouble.pop("sync", None)

    def _reason_for_pass(self) -> str:
        """Return another reason for a pass over everything: a key of `AGAIN`, "held", or "" for none."""
        self.builds.keep_previous_encoder()
        if "vault" in self._trouble:
            return "root" if self._may_try("root") and os.path.isdir(self.vault.root) else ""  # noqa: PTH112 - never raises
        if self._may_try("build") and (self.builds.is_lost() or (self.ready.is_set() and self.builds.is_outdated())):
            return "build"
        if self._may_try("embed") and self._has_unembedded():
            return "embed"
        return "held" if self._removal_rules.is_due() else ""

    def _may_try(self, what: str) -> bool:
        return time.monotonic() - self._tried[what] >= AGAIN[what]

    def _record_try(self, what: str, vain: bool) -> None:
        self._tried[what] = time.monotonic() if vain else -AGAIN[what]

    def _rebuild(self) -> None:
        """Rebuild the index; if that fails, the current index is kept up to date."""
        self._record_try("build", True)
        self.rebuild(fresh=self.builds.is_lost())
        self._record_try("build", False)

    def _record_failure(self, sentence: str, pause: float, due: Iterable[str]) -> None:
        self._trouble["sync"] = sentence
        self.passes["failed"] += 1
        for path in due:
            self._pending_paths.recheck(path, pause)  # still pending
        self._pending_paths.pause(pause)
        self._pending_paths.request_listing()

    def _has_unembedded(self) -> bool:
        return any(index.can_embed and index.words_only_paths() for index in self.builds.indexes.values())

    def _check_vault(self) -> bool:
        """Return whether the vault is present, after reopening it if necessary."""
        if not self.vault.is_present():
            try:
                self.vault.reopen()
            except MemexError as error:
                if "vault" not in self._trouble:
                    log.warning("%s", error)
                # Without the path, because agents read it too.
                self._trouble["vault"] = (
                    "vault missing: its folder is gone, empty or can't be opened; the index is kept"
                )
                self._record_try("root", True)
                return False
        self._trouble.pop("vault", None)
        return True
