"""Decide which changes of a file are Memex's own to commit: those that the audit log reaches from the state in HEAD.

Law, tested: a state is Memex's own only if every step to it from HEAD's state is an entry of the log. A step that
somebody else took in between is a person's edit, and the whole file is left to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from syncd.commits.commit_message import format_message
from syncd.history.digest_chain import Entry

NAMED: Final = 3  # agents that a subject names; of more it tells the number
_STEPS = frozenset({"create", "update", "delete", "undone"})


@dataclass(frozen=True, slots=True)
class CommitBatch:
    """What one commit holds: paths, in order, each with the entries that led to it, the newest first."""

    steps: dict[str, list[Entry]]

    @property
    def agents(self) -> list[str]:
        """The names of the keys that wrote any of it, in alphabetical order."""
        return sorted({name for steps in self.steps.values() for name in _agents_of(steps)})

    @property
    def author(self) -> str:
        """In whose name it is committed: the agent's where there is one, else that of Memex."""
        return self.agents[0] if len(self.agents) == 1 else "Memex"

    @property
    def message(self) -> str:
        """The message: who did what, a line for each file, and a trailer for each agent."""
        agents, did = self.agents, self._paths_by_deed()
        who = ", ".join(agents) if 0 < len(agents) <= NAMED else f"{len(agents)} agents" if agents else "Memex"
        parts = [f"{_describe_counts(paths)} {deed}" for deed, paths in did.items() if paths]
        lines = [f"{deed} {path}{self._describe_agents(path)}" for deed, paths in did.items() for path in paths]
        return format_message(f"{who}: {', '.join(parts)}", lines, [("Memex-Agent", name) for name in agents])

    def _paths_by_deed(self) -> dict[str, list[str]]:
        did: dict[str, list[str]] = {"added": [], "changed": [], "deleted": []}
        for path, steps in self.steps.items():
            did[
                "deleted" if steps and not steps[0].after else "changed" if steps and steps[-1].before else "added"
            ].append(path)
        return did

    def _describe_agents(self, path: str) -> str:
        """Who wrote a file, where that is not the same for all."""
        names = _agents_of(self.steps[path])
        return f" ({', '.join(names)})" if len(self.agents) > 1 and names else ""


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


def _agents_of(steps: Iterable[Entry]) -> list[str]:
    """The names of the keys that changed a file, in alphabetical order."""
    return sorted({entry.name or entry.key for entry in steps if entry.key})


def _describe_counts(paths: list[str]) -> str:
    """How many notes and other files these are."""
    notes = sum(path[-3:].lower() == ".md" for path in paths)
    counts = ((notes, "note"), (len(paths) - notes, "file"))
    return " and ".join(f"{count:,} {what}{'s' * (count != 1)}" for count, what in counts if count)
