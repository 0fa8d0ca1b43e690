"""Decide which changes of a file are Memex's own to commit: those that the audit log reaches from the state in HEAD.

Law, tested: a state is Memex's own only if every step to it from HEAD's state is an entry of the log. A step that
somebody else took in between is a person's edit, and the whole file is left to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from syncd.commits.commit_message import format_message
from syncd.history.digest_chain import Entry

_STEPS = frozenset({"create", "update", "delete", "undone"})


@dataclass(frozen=True, slots=True)
class CommitBatch:
    """What one commit holds: paths, in order, each with the entries that led to it, the newest first."""

    author: str  # the name of the key; "" = Memex itself
    steps: dict[str, list[Entry]]


def trace_steps(trail: Iterable[Entry], now: str, head: Collection[str]) -> list[Entry] | None:
    """The entries by which a file came from a state that HEAD has to what it is `now`, newest first; None with a gap.

    `trail` is what the log says of its path, newest first; states are digests of sha256 in hex, "" = no file."""
    steps: list[Entry] = []
    for entry in trail:
        if now in head:
            break
        if entry.kind not in _STEPS or entry.surface == "file" or entry.after != now:
            return None
        steps.append(entry)
        now = entry.before
    return steps if now in head else None


def author_of(steps: Iterable[Entry]) -> str:
    """On whose behalf a file was changed: the last key that did, or "" when it was Memex alone."""
    return next((entry.name or entry.key for entry in steps if entry.key), "")


def group_by_author(changes: Iterable[tuple[str, list[Entry]]]) -> Iterator[CommitBatch]:
    """The commits to make of all that is ours, one for each author."""
    sorts: dict[str, dict[str, list[Entry]]] = {}
    for path, steps in changes:
        sorts.setdefault(author_of(steps), {})[path] = steps
    for name, paths in sorted(sorts.items()):
        yield CommitBatch(name, dict(sorted(paths.items())))


def batch_message(batch: CommitBatch) -> str:
    """The message of a commit: what it holds, and which keys and tools have written it."""
    did: dict[str, list[str]] = {"Capture": [], "Change": [], "Delete": []}
    for path, steps in batch.steps.items():
        did["Delete" if not steps[0].after else "Change" if steps[-1].before else "Capture"].append(path)
    parts = [f"{word} {_describe_counts(paths)}" for word, paths in did.items() if paths]
    subject = ", ".join([parts[0], *(part[0].lower() + part[1:] for part in parts[1:])])
    lines = [f"{word.lower()} {path}" for word, paths in did.items() for path in paths]
    return format_message(f"{subject} ({batch.author or 'memex'})", lines, trailers(batch.steps.values()))


def trailers(steps: Iterable[Iterable[Entry]]) -> list[tuple[str, str]]:
    """Which tools and keys have written, and which documents."""
    by_name: dict[str, dict[str, None]] = {"Memex-Tool": {}, "Memex-Key": {}, "Capture-Id": {}}
    for entries in steps:
        for entry in entries:
            by_name["Memex-Tool"][entry.tool or entry.surface] = None
            by_name["Memex-Key"][entry.name or entry.key] = None
            by_name["Capture-Id"][entry.id if entry.type != "file" else ""] = None
    return [(name, value) for name, values in by_name.items() for value in values]


def _describe_counts(paths: list[str]) -> str:
    """How many notes and other files these are."""
    notes = sum(path[-3:].lower() == ".md" for path in paths)
    counts = ((notes, "note"), (len(paths) - notes, "file"))
    return " and ".join(f"{count:,} {what}{'s' * (count != 1)}" for count, what in counts if count)
