"""Plan the changes between two listings: what the vault contains now, and what the catalog remembers.

Laws, tested: the plan's changes, applied to the manifest, give exactly the seen state; a path appears in at most one
change, and equal inputs give equal plans. A comparison uses only stats; a plan uses digests, so a file whose bytes
are indexed is never a change, even if its stat is new."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from index.model import Entry, Stat
from index.names import base_name
from syncd.vault.path_rules import is_below

SMALL_VAULT = 20  # notes; in a smaller vault, removing many notes at once is normal
WINDOW = 48  # notes between two commits of a bulk run: a few seconds of work
WINDOW_BYTES = 1_000_000  # most bytes of text in a window, unless one note is larger: its results are in memory at once


@dataclass(frozen=True, slots=True)
class AddedNote:
    """Describes a note that is not in the catalog."""

    path: str


@dataclass(frozen=True, slots=True)
class ModifiedNote:
    """Describes a known note with other bytes, or one that still lacks its vectors."""

    path: str


@dataclass(frozen=True, slots=True)
class MovedNote:
    """Describes a note with equal bytes at another path."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RemovedNote:
    """Describes a known note that no longer exists."""

    path: str


Change: TypeAlias = AddedNote | ModifiedNote | MovedNote | RemovedNote


@dataclass(frozen=True, slots=True)
class StatComparison:
    """Holds the result of comparing stats: `suspects` must be read, `missing` are known but not listed.

    Both are sorted."""

    suspects: list[str]
    missing: list[str]
    unchanged: int


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Holds what was read of a suspect: the digest of its bytes, the id they claim, and the stat of that read."""

    digest: str
    claimed_id: str | None
    stat: Stat


@dataclass(frozen=True, slots=True)
class Plan:
    """Lists the changes: moves first, then additions, modifications and removals, each ordered by path.

    `touched` are files whose bytes are indexed but whose stat is not; `unchanged` counts these and all other files
    without a change."""

    changes: list[Change]
    touched: dict[str, Stat]
    unchanged: int


def compare_stats(
    files: Mapping[str, Stat],
    manifest: Mapping[str, Entry],
    *,
    under: Collection[str] | None = None,
    embedded: bool = True,
) -> StatComparison:
    """Compare a listing with the manifest by stat; `under` restricts both to these paths and everything below them.

    With `embedded`, a note that was indexed without vectors is a suspect too; set it when an encoder is ready."""
    if under is not None:
        scope = frozenset(under)
        files = {path: stat for path, stat in files.items() if is_below(path, scope)}
        manifest = {path: entry for path, entry in manifest.items() if is_below(path, scope)}
    suspects = sorted(path for path, stat in files.items() if _must_read(stat, manifest.get(path), embedded=embedded))
    missing = sorted(path for path in manifest if path not in files)
    return StatComparison(suspects, missing, len(files) - len(suspects))


def plan_changes(
    seen: Mapping[str, ReadFile], missing: Collection[str], manifest: Mapping[str, Entry], *, embedded: bool = True
) -> Plan:
    """Turn the read files into changes. `missing` are known paths that no longer exist; other paths stay untouched.

    A missing path and a new one with the same bytes are a move. A note that was moved and edited is a removal and an
    addition, and keeps its identity through the id it claims."""
    added: list[str] = []
    modified: list[str] = []
    touched: dict[str, Stat] = {}
    unchanged = 0
    for path, now in sorted(seen.items()):
        entry = manifest.get(path)
        if entry is None:
            added.append(path)
        elif entry.digest != now.digest or (embedded and not entry.embedded):
            modified.append(path)
        else:
            unchanged += 1
            if entry.stat != now.stat:
                touched[path] = now.stat
    gone = sorted(path for path in set(missing) if path in manifest and path not in seen)
    moves = _pair_moves([manifest[path] for path in gone], {path: seen[path] for path in added})
    old, new = {move.old for move in moves}, {move.new for move in moves}
    changes: list[Change] = [
        *moves,
        *(AddedNote(path) for path in added if path not in new),
        *(ModifiedNote(path) for path in modified),
        *(RemovedNote(path) for path in gone if path not in old),
    ]
    return Plan(changes, touched, unchanged)


def is_mass_removal(missing: int, known: int, *, share: float) -> bool:
    """Return whether so many notes are missing that it may be an accident: at least `share` of the `known` notes.

    A vault of fewer than `SMALL_VAULT` notes never counts: there, removing many is normal."""
    return known >= SMALL_VAULT and missing > 0 and missing >= share * known


def split_into_windows(paths: Sequence[str], sizes: Sequence[int]) -> Iterator[list[str]]:
    """Split the paths into lists of at most `WINDOW` paths, and `WINDOW_BYTES` unless a single file is larger."""
    window: list[str] = []
    filled = 0
    for path, size in zip(paths, sizes, strict=True):
        if window and (len(window) == WINDOW or filled + size > WINDOW_BYTES):
            yield window
            window, filled = [], 0
        window.append(path)
        filled += size
    if window:
        yield window


def _must_read(stat: Stat, entry: Entry | None, *, embedded: bool) -> bool:
    """Return whether a listed file must be read; an entry without a digest was reset on purpose."""
    return entry is None or not entry.digest or entry.stat != stat or (embedded and not entry.embedded)


def _pair_moves(gone: Iterable[Entry], new: Mapping[str, ReadFile]) -> list[MovedNote]:
    """Pair missing and new files with equal bytes, one to one: by claimed id, then file name, then inode.

    The rounds go from the closest match to the digest alone. Each is linear, and pairs in the order of paths, so a
    moved folder of a thousand empty notes keeps the order of its notes."""
    moves: list[MovedNote] = []
    left, right = {entry.path: entry for entry in gone}, dict(new)
    rounds = [(same_id, name, ino) for same_id in (True, False) for name in (True, False) for ino in (True, False)]
    for same_id, name, ino in rounds:
        waiting: dict[tuple[str | int | None, ...], list[str]] = defaultdict(list)
        for path, entry in reversed(left.items()):
            key = (entry.digest, entry.id if same_id else None, name and base_name(path), ino and entry.stat.ino)
            waiting[key].append(path)
        for path, now in list(right.items()):
            if same_id and now.claimed_id is None:
                continue
            key = (now.digest, now.claimed_id if same_id else None, name and base_name(path), ino and now.stat.ino)
            if olds := waiting.get(key):
                old = olds.pop()
                moves.append(MovedNote(old, path))
                del left[old], right[path]
    return sorted(moves, key=lambda move: (move.new, move.old))
