"""Manage the builds of the two indexes on disk, captures and vault, and the switch from one build to the next.

Law: the build named in `current` answers; a new build is made beside it and named only when it is complete."""

from __future__ import annotations

import contextlib
import errno
import logging
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from index.encoders.embedder import Embedder
from index.errors import IndexUnusable, Unavailable
from index.model import Scope
from index.names import pluralize
from index.scope.index import Index
from index.scope.integrity_check import store_uris
from index.scope.reader import Looks
from index.storage.crash_repair import StoreDamaged
from index.storage.store_opening import discard
from index.text.chunking import chunk_sizes
from syncd.indexes.build_inputs import BuildInputs, build_in_use, encoder_to_recall, read_made, write_made
from syncd.indexes.shared_index import SHARED, SharedIndex, SharedIndexPlace
from syncd.settings.settings import IndexSettings
from syncd.state.folder import write_private

log = logging.getLogger(__name__)

SCOPES: tuple[Scope, ...] = get_args(Scope)
DAMAGED = "index: it was damaged and is being rebuilt; until then searches miss notes"
READING = "index: the vault is being read for the first time; until then searches miss notes"
NEVER_READ = "index: the vault is not indexed yet; index it with `memex serve` or `memex index`"
MENDING = "index: it was incomplete, and Memex reads the notes again; until then searches miss some notes"
TEMPORARY = "none"  # the folder of a temporary build that only one command sees
NO_ENCODER = 384, 256  # dimensions and window of an index that is built without an encoder


@dataclass(slots=True)
class ScopeIndex:
    """Holds the current index of one scope across builds, and the callbacks for its changes."""

    index: Index
    listeners: list[Callable[[Collection[str] | None], object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.index.on_commit = self.notify

    def switch_to(self, index: Index) -> None:
        """Answer from `index` from now on; nobody is notified yet."""
        self.index.on_commit, self.index = None, index
        index.on_commit = self.notify

    def notify(self, paths: Collection[str] | None) -> None:
        """Call the callbacks with the changed paths; None if they are unknown."""
        for callback in tuple(self.listeners):
            callback(paths)


@dataclass(frozen=True, slots=True)
class Build:
    """Holds both indexes of one build."""

    folder: Path
    made: BuildInputs
    indexes: dict[Scope, Index]
    # Its files and folders as opened; None = not created yet, such as the table of observations.
    marks: dict[Path, tuple[int, int] | None] = field(default_factory=dict)

    def is_intact(self) -> bool:
        """Return whether the opened files are still in place, and searchable."""
        now = {path: _device_and_inode(path) for path in self.marks}
        kept = all(mark in (None, now[path]) for path, mark in self.marks.items())
        self.marks.update({path: now[path] for path, mark in self.marks.items() if mark is None})
        return kept and not any(index.is_damaged for index in self.indexes.values())

    def close(self) -> None:
        """Close both indexes."""
        for index in self.indexes.values():
            index.close()


class IndexBuilds:
    """Holds the build in use. `scopes` stay the same objects; the indexes in them change with `switch`."""

    def __init__(
        self, root: Path, embedder: Embedder, settings: IndexSettings, *, perspectives: Looks, later: bool = False
    ) -> None:
        """Open the build in use; with `later`, stores open at their first use, and a missing index is not begun."""
        self._root, self._embedder, self._settings, self._later = root, embedder, settings, later
        self._perspectives = perspectives
        self._switching = threading.Lock()
        self._retired: list[tuple[float, Build | Embedder]] = []
        self._making: Build | None = None
        self._former: Embedder | None = None  # encoder of the build in use, while another encoder is set
        self._recalling = threading.Lock()
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.rebuilt_because = ""
        self.live = self._open_current() or (self._open_temporary() if later else self._resume() or self._create())
        self.scopes: dict[Scope, ScopeIndex] = {scope: ScopeIndex(self.live.indexes[scope]) for scope in SCOPES}
        self.shared = SharedIndex(self._shared_place(self.live), embedder)
        if not later:
            self.shared.open_existing()
        if not self._is_temporary(self.live):
            self._name_current(self.live)

    @staticmethod
    def read_identities(root: Path) -> frozenset[str]:
        """Return the encoders of all existing builds, including unfinished ones."""
        folders = [folder for folder in root.iterdir() if folder.is_dir()] if root.is_dir() else []
        return frozenset(inputs.identity for folder in folders if (inputs := read_made(folder)))

    @property
    def can_embed(self) -> bool:
        """Return whether the build in use has its encoder, so that searches by meaning work."""
        return all(index.can_embed for index in self.indexes.values())

    def keep_previous_encoder(self) -> None:
        """Keep the encoder of the build in use loaded while another one is set, and close it afterwards."""
        with self._recalling:
            inputs, former, embedder = self.live.made, self._former, self._embedder
            if embedder.state == "ready" and embedder.identity == inputs.identity:
                self._retire_previous()
                # different settings, but the same encoder
                if inputs.encoder != embedder.chosen and self._making is None:
                    renamed = replace(self.live, made=replace(inputs, encoder=embedder.chosen))
                    write_made(renamed.folder, renamed.made)
                    self.live = renamed
            elif former is None:
                if wanted := encoder_to_recall(embedder, inputs.encoder, inputs.identity):
                    log.info("the index was built with another encoder, which answers until a new index is complete")
                    self._former = embedder.start_previous(wanted, inputs.identity)
                    self._use_embedder(self._former)
            elif former.state == "ready" and former.identity != inputs.identity:
                log.warning("the encoder of the index is now a different model; searches use full text only")
                former.close()  # it is not tried again
                self._use_embedder(embedder)

    def _use_embedder(self, embedder: Embedder) -> None:
        for index in self.indexes.values():
            index.use_embedder(embedder)
        self.shared.use_embedder(embedder)

    def _retire_previous(self) -> None:
        if self._former:
            self._use_embedder(self._embedder)
            with self._switching:
                self._retired.append((time.monotonic(), self._former))
            self._former = None

    def wait_for_encoders(self) -> None:
        """Wait until the encoders are loaded, or loading fails."""
        self._embedder.wait()
        self.keep_previous_encoder()
        if self._former:
            self._former.wait()

    def is_outdated(self) -> bool:
        """Return whether the build in use has another encoder or other sizes than are set."""
        return self._embedder.state == "ready" and self._wanted_inputs() != self.live.made

    def is_lost(self) -> bool:
        """Return whether files of the build in use were removed or damaged."""
        return not self.live.is_intact()

    def missing_encoder(self) -> str:
        """Return why a new build would lack the vectors that the current one has, or ""."""
        if self._embedder.state == "ready" or not self.live.made.identity:
            return ""
        return self._embedder.problem or "the encoder is loading"

    @property
    def indexes(self) -> dict[Scope, Index]:
        """Return the index of each scope that answers now."""
        return self.live.indexes

    @property
    def is_complete(self) -> bool:
        """Return whether the whole vault has been indexed once."""
        return not self._is_temporary(self.live) and all(index.is_complete for index in self.indexes.values())

    @property
    def generation(self) -> int:
        """Return a number that increases with each indexed change."""
        return sum(index.generation for index in self.indexes.values())

    @property
    def documents(self) -> int:
        """Return the number of indexed notes."""
        return sum(index.counts[0] for index in self.indexes.values())

    def facts(self) -> dict[str, dict[str, int]]:
        """Return the number of indexed notes and chunks, by scope."""
        return {
            scope: dict(zip(("documents", "chunks"), index.counts, strict=True))
            for scope, index in self.indexes.items()
        }

    def paths(self) -> dict[str, list[str]]:
        """Return the paths of all notes, by scope."""
        return {scope: list(index.manifest.copy()) for scope, index in self.indexes.items()}

    def defects(self) -> list[tuple[str, str]]:
        """Return the path of every defective or unindexed note, with a description."""
        return [defect for index in self.indexes.values() for defect in index.defects()]

    def degraded(self, scopes: Iterable[Scope] = SCOPES, under: Collection[str] | None = None) -> list[str]:
        """Return the reasons why searches may miss notes, as sentences; only notes in these scopes are counted.

        `under`: count only notes in these folders; without any folder, notes are not counted."""
        sentences = [because] if (because := self.rebuilt_because) else []
        if not sentences and not self.is_complete:
            sentences.append(NEVER_READ if self._later else READING)
        meanwhile = "the previous encoder answers" if self.can_embed else "searches use full text only"
        encoder = self._embedder.facts()
        if encoder["state"] not in ("ready", "unused"):
            sentences.append(f"encoder: {encoder['problem'] or 'still loading'}; {meanwhile}")
        elif self.is_outdated():
            sentences.append(f"index: built with another encoder; {meanwhile} until it is rebuilt")
        paths = {path for scope in scopes for path in self.indexes[scope].words_only_paths()}
        if under:
            paths = {path for path in paths if path.startswith(tuple(f"{folder}/" for folder in under))}
        if paths:
            many = "some notes" if under is not None and not under else pluralize(len(paths), "note")
            sentences.append(f"index: only searches by words find {many}")
        return sentences

    def mark_filled(self) -> None:
        """Record that the build in use contains everything."""
        self.rebuilt_because = ""

    def begin(self, *, fresh: bool) -> Build:
        """Return a build beside the one in use: an unfinished one with the same inputs, unless it must be `fresh`."""
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._making = None if fresh else self._resume()
        for folder in self._unused_folders():
            self._discard(folder)
        self._making = self._making or self._create()
        return self._making

    def accept_new_model(self) -> None:
        """Accept the set encoder although its model has changed: a new index is needed."""
        self._embedder.accept_new_model()
        self._embedder.wait()

    def release(self, build: Build) -> None:
        """End the work on `build`; unless it is in use now, it can be resumed later."""
        self._making = None
        if build is not self.live:
            build.close()

    def _resume(self) -> Build | None:
        """Return the unfinished build with the wanted inputs, if there is one."""
        self._embedder.wait()
        inputs = self._wanted_inputs()
        for folder in self._unused_folders():
            if read_made(folder) == inputs and (build := self._open_or_set_aside(folder, inputs)):
                return build
        return None

    def _unused_folders(self) -> list[Path]:
        """Return the folders of unused builds."""
        used = self._used_folders()
        return sorted(folder for folder in self._root.iterdir() if folder.is_dir() and folder not in used)

    def _used_folders(self) -> set[Path]:
        builds = [getattr(self, "live", None), self._making, *(retired for _, retired in self._retired)]
        return {build.folder for build in builds if isinstance(build, Build)}

    def switch(self, build: Build) -> None:
        """Replace the build in use by `build`; the old one is removed.

        If `current` can't be written, the old build stays in use, and the error is raised."""
        with self._switching:
            for scope, index in build.indexes.items():
                with contextlib.suppress(Unavailable):  # the one in use may be missing or damaged
                    index.continue_generation(self.live.indexes[scope].generation)
            self._name_current(build)  # the last step that can fail
            self._retired.append((time.monotonic(), self.live))
            self.live = build
            for scope, scope_index in self.scopes.items():
                scope_index.switch_to(build.indexes[scope])
        self.mark_filled()
        self.shared.move_to(self._shared_place(build))
        for scope_index in self.scopes.values():
            scope_index.notify(None)

    def drop_retired(self, *, grace: float = 10.0) -> None:
        """Remove builds that were replaced more than `grace` seconds ago: no search reads them any more."""
        with self._switching:
            old = [retired for since, retired in self._retired if time.monotonic() - since >= grace]
            self._retired = [(since, retired) for since, retired in self._retired if retired not in old]
        for retired in old:
            retired.close()
            if isinstance(retired, Build):
                self._discard(retired.folder)
        live = self.live
        if not self._is_temporary(live) and live.folder.is_dir() and build_in_use(self._root)[0] != live.folder:
            self._name_current(live)

    def drop_unused(self, *, older_s: float) -> list[str]:
        """Remove unused builds of this age that can't be resumed; return their names."""
        if self._embedder.state != "ready":
            return []  # it is unknown now which builds could be resumed
        with contextlib.suppress(FileNotFoundError):  # somebody removed the whole folder, which the pipeline notices
            inputs = self._wanted_inputs()
            old = [folder for folder in self._unused_folders() if time.time() - folder.stat().st_ctime > older_s]
            done = [folder for folder in old if read_made(folder) != inputs]
            for folder in done:
                self._discard(folder)
            return [folder.name for folder in done]
        return []

    def close(self) -> None:
        """Close everything."""
        self.drop_retired(grace=0)
        self.shared.close()
        self.live.close()
        if self._is_temporary(self.live):
            shutil.rmtree(self.live.folder, ignore_errors=True)
        if self._former:
            self._former.close()

    def _wanted_inputs(self) -> BuildInputs:
        ready = self._embedder.state == "ready"
        dimensions, window = (self._embedder.dimensions, self._embedder.max_tokens) if ready else NO_ENCODER
        identity = self._embedder.identity if ready else ""
        cut = chunk_sizes(window, self._settings.chunk_tokens, self._settings.chunk_overlap)
        return BuildInputs(identity, dimensions, cut, self._embedder.chosen if ready else None)

    def _open_current(self) -> Build | None:
        folder, inputs = build_in_use(self._root)
        if not folder or not inputs:
            return None
        build = self._open_or_set_aside(folder, inputs)
        if build is None:
            self.rebuilt_because = DAMAGED
            return None
        if any(index.mending for index in build.indexes.values()):
            self.rebuilt_because = MENDING
            log.warning("%s", self.rebuilt_because)
        return build

    def _open_or_set_aside(self, folder: Path, inputs: BuildInputs) -> Build | None:
        """Open the build in `folder`; None when that fails, and then rename it."""
        try:
            return self._open(folder, inputs)
        except (StoreDamaged, IndexUnusable, OSError) as error:
            elsewhere = bool(self._settings.uri) and not isinstance(error, StoreDamaged)
            if elsewhere or getattr(error, "errno", None) == errno.ENOSPC:
                raise  # for example a network error
            log.warning("the index %s can't be opened (%s); Memex reads its notes again", folder.name, error)
        if self._settings.uri:
            self._discard(folder)
        else:
            with contextlib.suppress(OSError):
                folder.chmod(0o700)  # a folder that can't be written keeps its files
            (folder / "made.json").unlink(missing_ok=True)  # so that it is not resumed
            folder.rename(_free_name(folder))  # removed later with other unused builds
        return None

    def _create(self) -> Build:
        self._embedder.wait()  # dimensions come from the encoder; without one the index is for words only
        inputs = self._wanted_inputs()
        taken = {folder.name for folder in (*self._root.iterdir(), *self._used_folders())}  # even if it was removed
        name = next(name for n in range(1, len(taken) + 2) if (name := f"{inputs.made_by[:12]}-{n}") not in taken)
        folder = self._root / name
        folder.mkdir(mode=0o700)
        build = self._open(folder, inputs)
        write_made(build.folder, build.made)
        return build

    def _open_temporary(self) -> Build:
        """Open an empty build for a command that needs no index, when none exists; it is removed when closed."""
        folder = self._root / TEMPORARY
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        return self._open(folder, self._wanted_inputs())

    @staticmethod
    def _is_temporary(build: Build) -> bool:
        return build.folder.name == TEMPORARY

    def _open(self, folder: Path, inputs: BuildInputs) -> Build:
        indexes: dict[Scope, Index] = {}
        try:
            for scope in SCOPES:
                indexes[scope] = Index(
                    scope, folder, embedder=self._embedder, later=self._later, **self._index_arguments(folder, inputs)
                )
        except BaseException:
            for index in indexes.values():
                index.close()
            raise
        paths = [folder, *(folder / f"{scope}.db" for scope in SCOPES)]
        paths += (
            []
            if self._settings.uri
            else [Path(uri) / "chunks.lance" for scope in SCOPES for uri in store_uris(str(folder), scope)]
        )
        return Build(folder, inputs, indexes, {path: _device_and_inode(path) for path in paths})

    def _index_arguments(self, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
        """Return what all indexes of a build have in common."""
        return {
            "uri": self._uri(folder),
            "options": self._settings.storage_options,
            "dimensions": inputs.dimensions,
            "sizes": inputs.sizes,
            "made_by": inputs.made_by,
            "perspectives": self._perspectives,
        }

    def _shared_place(self, build: Build) -> SharedIndexPlace:
        folder, arguments = build.folder, self._index_arguments(build.folder, build.made)

        def open_index(embedder: Embedder) -> Index:  # it holds no index
            return Index(SHARED, folder, embedder=embedder, **arguments)

        return SharedIndexPlace(folder, arguments["uri"], self._settings.storage_options, open_index)

    def _name_current(self, build: Build) -> None:
        if (self._root / "current").is_dir():
            shutil.rmtree(self._root / "current")  # not created by Memex
        write_private(self._root / "current", build.folder.name)

    def _discard(self, folder: Path) -> None:
        if self._settings.uri:
            for scope in (*SCOPES, SHARED):
                for uri in store_uris(self._uri(folder), scope):
                    discard(uri, self._settings.storage_options)
        shutil.rmtree(folder, ignore_errors=True)

    def _uri(self, folder: Path) -> str:
        return f"{self._settings.uri.rstrip('/')}/{folder.name}" if self._settings.uri else str(folder)


def _free_name(folder: Path) -> Path:
    """Return a free name for a damaged build."""
    return next(name for n in range(1, 10_000) if not (name := folder.with_name(f"damaged-{n}")).exists())


def _device_and_inode(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
