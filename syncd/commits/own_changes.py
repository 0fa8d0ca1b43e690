"""Decide which changes of a file are Memex's own to commit: those that the audit log reaches from the state in HEAD.

Law, tested: a state is Memex's own only if every step to it from HEAD's state is an entry of the log. A step that
somebody else made in between is a person's edit, and then the whole file is left to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from syncd.commits.commit_message import format_message
from syncd.history.digest_chain import Entry

NAMED: Final = 3  # agents named in a subject; for more, only their number
COMMANDS: Final = "command line"  # the writer of what the owner's commands changed
_STEPS = frozenset({"create", "update", "delete", "undone"})


@dataclass(frozen=True, slots=True)
class CommitBatch:
    """Holds the content of one commit: paths in order, each with its log entries, newest first."""

    steps: dict[str, list[Entry]]

    @property
    def agents(self) -> list[str]:
        """Return the names of the keys that wrote any of the files, in alphabetical order."""
        return sorted({name for steps in self.steps.values() for name in _agents_of(steps)})

    @property
    def writers(self) -> list[str]:
        """Return the agents and, if there are any, the command line for files that only commands of the owner wrote."""
        by_command = any(_writers_of(steps) == [COMMANDS] for steps in self.steps.values())
        return [*self.agents, *([COMMANDS] if self.agents and by_command else [])]

    @property
    def author(self) -> str:
        """Return the author of the commit: the agent if there is no other writer, else Memex."""
        return self.agents[0] if len(self.agents) == len(self.writers) == 1 else "Memex"

    @property
    def message(self) -> str:
        """Return the message: who did what, a line for each file, and a trailer for each agent."""
        agents, did = self.agents, self._paths_by_deed()
        who = ", ".join(self.writers) if 0 < len(agents) <= NAMED else f"{len(agents)} agents" if agents else "Memex"
        parts = [f"{_describe_counts(paths)} {deed}" for deed, paths in did.items() if paths]
        lines = [f"{deed} {path}{self._describe_writers(path)}" for deed, paths in did.items() for path in paths]
        return format_message(f"{who}: {', '.join(parts)}", lines, [("Memex-Agent", name) for name in agents])

    def _paths_by_deed(self) -> dict[str, list[str]]:
        did: dict[str, list[str]] = {"added": [], "changed": [], "deleted": []}
        for path, steps in self.steps.items():
            did[
                "deleted" if steps and not steps[0].after else "changed" if steps and steps[-1].before else "added"
            ].append(path)
        return did

    def _describe_writers(self, path: str) -> str:
        """Return who wrote a file, if there are several writers."""
        names = _writers_of(self.steps[path])
        return f" ({', '.join(names)})" if len(self.writers) > 1 and names else ""


def trace_steps(trail: Iterable[Entry], now: str, head: Collection[str]) -> list[Entry] | None:
    """Return the entries that lead from a state in HEAD to the state `now`, newest first; None if there is a gap.

    `trail` is the log of the path, newest first; states are SHA-256 digests in hex, "" = no file."""
    steps: list[Entry] = []
    for entry in trail:
        if now in head:
            break
        if entry.kind not in _STEPS or entry.surface == "file" or entry.after != now:
            return None
        steps.append(entry)
        now = entry.before
    return steps if now in head else None


def _agents_of(steps: Iterable[Entry]) -> list[str]:
    """Return the names of the keys that changed a file, in alphabetical order."""
    return sorted({entry.name or entry.key for entry in steps if entry.key})


def _writers_of(steps: Iterable[Entry]) -> list[str]:
    """Return the agents that changed a file, or the command line if only commands did; none if Memex did it by itself."""
    return _agents_of(steps) or [COMMANDS] * any(entry.surface == "cli" for entry in steps)


def _describe_counts(paths: list[str]) -> str:
    """Return the number of notes and other files as text."""
    notes = sum(path[-3:].lower() == ".md" for path in paths)
    counts = ((notes, "note"), (len(paths) - notes, "file"))
    return " and ".join(f"{count:,} {what}{'s' * (count != 1)}" for count, what in counts if count)
