"""A random vault history (renames, moves of whole folders, edits), and its replay in a live vault."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import statistics
import subprocess
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from syncd.git.hooks import HOOKS, install
from syncd.vault.location import locate
from tests.support.parsed_notes import parse
from tests.support.paths import ROOT
from tests.support.world import PROMPT, World

WITHIN = 120.0
LEFT = replace(PROMPT, adopt_s=3600.0)  # nothing is written into notes meanwhile, which would keep Git from merging
DATA = Path(os.environ.get("MEMEX_DATA") or ROOT.parent / "shared/data")
KINDS = {"edit": 45, "new": 12, "delete": 6, "rename": 16, "folder": 6, "swap": 5, "case": 3, "many": 7}
LOOKED = 40  # notes whose passages are compared after each commit
LARGE = 500  # notes of a folder, beyond which it is not renamed: that would be all that a replay does
LEAST = 20  # notes, below which none is deleted


def git(folder: Path, *words: str) -> str:
    """Run `git WORDS` as a person without Git settings."""
    name = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false", "-c", "gc.auto=0")
    command = ["git", "-C", str(folder), *name, "-c", "core.quotepath=off", *words]
    environ = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


class Author:
    """Somebody who works on a vault elsewhere, and commits."""

    def __init__(self, folder: Path, notes: Path, seed: int) -> None:
        self.folder, self.dice, self.number = folder, random.Random(seed), 0
        shutil.copytree(notes, folder, ignore=shutil.ignore_patterns(".git"))
        for path in [folder, *folder.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
        git(folder, "init", "-q", "-b", "main")
        self.commit()

    def commit(self) -> str:
        """Commit everything; the commit."""
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "--allow-empty", "-m", f"Step {self.number}")
        return git(self.folder, "rev-parse", "HEAD").strip()

    def step(self, changes: int = 4) -> str:
        """Make some typical changes as one commit."""
        self.number += 1
        for _ in range(self.dice.randint(1, changes)):
            notes = self.notes()
            self._change(self.dice.choices([*KINDS], [*KINDS.values()])[0], self.dice.choice(notes), notes)
        return self.commit()

    def even(self, moved: int) -> str:
        """Make the same number of changes in a vault of any size: five edits, a new note, a deletion, `moved` moves."""
        self.number += 1
        notes = self.dice.sample(self.notes(), 6 + moved)
        for note in notes[:5]:
            self._change("edit", note, notes)
        notes[5].unlink()
        self._change("new", notes[0], notes)
        for note in notes[6:]:
            self._move(note, note.name)
        return self.commit()

    def notes(self) -> list[Path]:
        """Return every note, in the order of their names."""
        found = (Path(folder, name) for folder, _, names in os.walk(self.folder) for name in names)
        return sorted(path for path in found if path.suffix == ".md" and "/." not in str(path))

    def _change(self, kind: str, note: Path, notes: list[Path]) -> None:
        dice, said = self.dice, f"Step {self.number} says {self.dice.randrange(10**6)}"
        if not note.exists() or (kind == "delete" and len(notes) < LEAST):
            kind = "new"
        if kind == "edit":
            note.write_bytes(note.read_bytes() + f"\n\n{said}\n".encode())
        elif kind == "new":
            (note.parent if note.parent.exists() else self.folder).joinpath(f"New {said}.md").write_text(f"# {said}\n")
        elif kind == "delete":
            note.unlink()
        elif kind == "rename":
            note.rename(note.with_name(f"{note.stem[:40]} {self.number}.md"))
            if dice.random() < 0.3:  # and changed in the same commit
                self._change("edit", note.with_name(f"{note.stem[:40]} {self.number}.md"), notes)
        elif kind == "case":
            (beside := note.with_name(f"{note.stem[:40]}.tmp")) and note.rename(beside)
            beside.rename(note.with_name(f"{note.stem[:40].swapcase()}.md"))
        elif kind == "swap":
            other = dice.choice([one for one in notes if one.exists()])
            one, two = note.read_bytes(), other.read_bytes()
            note.write_bytes(two)
            other.write_bytes(one)
        elif kind == "folder":
            top = note.parent
            if top != self.folder and sum(one.is_relative_to(top) for one in notes) <= LARGE:
                top.rename(top.with_name(f"{top.name[:40]} {self.number}"))
        else:
            for one in dice.sample(notes, min(len(notes), dice.randint(10, 40))):
                if one.exists():
                    self._move(one, one.name)

    def _move(self, note: Path, name: str) -> None:
        target = self.folder / f"Moved {self.number % 7}" / f"{self.dice.randrange(5)}"
        target.mkdir(parents=True, exist_ok=True)
        if not (target / name).exists():
            note.rename(target / name)


class Live:
    """A clone of the author's vault with all parts of a daemon."""

    def __init__(self, folder: Path, author: Author, *, hooks: bool) -> None:
        git(author.folder.parent, "clone", "-q", str(author.folder), str(folder / "vault"))
        self.world = World(folder, sync=LEFT)
        self.world.app.opened.sync.run(accept=True)
        if hooks:
            install(self.world.app.opened.repo.hooks_folder(), HOOKS, self.world.state)

    def goes(self, commit: str, how: str) -> tuple[float, float, set[str]]:
        """Go to a commit by `git HOW`. Return the seconds until the new content and until all changes were indexed, and the changes."""
        vault = self.world.vault
        git(vault, "fetch", "-q", "origin")
        touched = set(filter(None, git(vault, "diff", "-z", "--no-renames", "--name-only", "HEAD", commit).split("\0")))
        touched = {
            path for path in touched if path.lower().endswith(".md") and not self.world.app.opened.vault.ignores(path)
        }
        begun = time.monotonic()
        words = ("merge", "-q", "--ff-only", commit) if how == "merge" else ("checkout", "-q", "--detach", commit)
        git(vault, *words)
        brought = {path for path in touched if (vault / path).exists()}
        found = self._until(brought, begun)
        return found, self._until(touched, begun), touched

    def _until(self, paths: set[str], begun: float) -> float:
        """Return the seconds from then until the index matches these files."""
        wrong = paths
        while wrong := {path for path in wrong if not self.true(path)} or {
            path for path in paths if not self.true(path)
        }:
            assert time.monotonic() < begun + WITHIN, sorted(wrong)
            time.sleep(0.02)
        return time.monotonic() - begun

    def true(self, path: str) -> bool:
        """Return whether the index matches the file at this path."""
        record = self.world.app.opened.builds.scopes[locate(path, "Captures").scope].index.record_at(path)
        return (record.digest if record else "") == _sha(self.world.vault / path)

    def differences(self, touched: Collection[str]) -> list[str]:
        """Return the differences between index and files: in the list of notes, and in the passages of the changed notes."""
        known = {
            path: entry.digest
            for scope_index in self.world.app.opened.builds.scopes.values()
            for path, entry in scope_index.index.manifest.copy().items()
        }
        there = {path: _sha(self.world.vault / path) for path in self.files()}
        found = [f"digest of {path}" for path in known.keys() | there.keys() if known.get(path) != there.get(path)]
        for path in sorted(touched & there.keys())[:LOOKED]:
            index = self.world.app.opened.builds.scopes[locate(path, "Captures").scope].index
            raw, stat = self.world.app.opened.vault.read(path)
            document = parse(raw, path, mtime_ms=stat.mtime_ms)  # cut again: prepare leaves out rows that stay
            (ready,) = index._cut_and_embed(
                [(document, stat)], embedder=index._usable_embedder(), vectors=index._vectors, urgent=False
            )
            if [chunk.text for chunk in ready.chunks] != list(index.passages(index.record_at(path))):
                found.append(f"passages of {path}")
        return found

    def files(self) -> Iterator[str]:
        root = str(self.world.vault)
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                path = str(Path(folder, name).relative_to(root))
                if name.lower().endswith(".md") and not self.world.app.opened.vault.ignores(path):
                    yield path


def told(seconds: list[float], notes: int) -> str:
    """Return a sentence with the durations of the commits."""
    ordered = sorted(seconds)
    return (
        f"{notes:,} notes, {len(seconds)} commits: p50 {statistics.median(ordered):.2f} s, "
        f"p95 {ordered[int(len(ordered) * 0.95)]:.2f} s, most {ordered[-1]:.2f} s"
    )


def _sha(file: Path) -> str:
    """Return the digest of a file's content; "" = the file is missing."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""
