"""Sample captures in a real vault, and chosen findings of the consolidation, for tests of the proposals."""

from __future__ import annotations

import itertools
from typing import Any

from index.model import Record
from syncd.consolidation.analysis.findings import Finding, Findings, key_of
from syncd.graph.attention_report import Report
from tests.support.world import World

DAY = "2026-03-04"  # on which every test of reports is run


class Inbox:
    """A vault under Git with captures in a workspace; the test sets the findings."""

    def __init__(self, folder: Any, **sections: Any) -> None:
        self.world = World(folder, **sections)
        self.found: dict[str, Findings[Any]] = {}
        self.world.init_git("Ada")
        self.world.write(".gitignore", ".trash\n")
        self.world.git("add", "-A")
        self.world.git("commit", "-q", "-m", "begin")
        self.say()
        self._numbers = itertools.count()

    @property
    def app(self) -> Any:
        return self.world.app

    def say(self, *findings: Finding, workspace: str = "default", **more: Any) -> None:
        """Let the consolidation find exactly these findings in the workspace."""
        named = {id: self.record(id) for one in findings for id in one.ids if one.kind != "relate"}
        lists: dict[str, Any] = {
            name: tuple(one for one in findings if one.kind == kind)
            for name, kind in (
                ("duplicates", "merge-duplicates"),
                ("relations", "relate"),
                ("unused", "archive"),
                ("synonyms", "tag-merge"),
            )
        } | {"near": (), "clusters": ()}
        graph: Report[Any] = Report((), (), (), (), None, {"stale_summaries": 0, "orphaned_nodes": 0})
        self.found[workspace] = Findings(
            workspace=workspace, documents=9, graph=graph, named=named, of={}, **(lists | more)
        )
        self.app.services.consolidation._look = lambda name: self.found.get(name) or _nothing(name)

    def reopen(self) -> None:
        """Simulate a restart."""
        self.world.reopen()
        self.app.services.consolidation._look = lambda name: self.found.get(name) or _nothing(name)

    def record(self, id: str) -> Record:
        found = self.app.opened.builds.scopes["captures"].index.record(id)
        assert found is not None, id
        return found

    def capture(self, content: str, workspace: str = "default", **metadata: Any) -> Record:
        if workspace not in self.app.agent_access.workspaces():
            self.app.agent_access.create_workspace(workspace)
        return self.app.agent_access.workspace(workspace).capture(content, metadata=metadata).record

    def finding(self, kind: Any, *ids: str, would: tuple[str, ...] = (), reason: str = "They say so.") -> Finding:
        workspace = self.record(ids[0]).workspace if ids else "default"
        hashes = tuple(self.record(id).content_hash if kind != "relate" else "" for id in ids)
        return Finding(kind, key_of(workspace, kind, ids, would), workspace, ids, would, hashes, 0.9, reason)

    def run(self, **given: Any) -> dict[str, Any]:
        return self.app.operations["consolidate"](given, lambda _: None)

    def look(self) -> dict[str, str]:
        """Read the checkboxes once, and return by key the result or the reason for a failure."""
        done = self.app.services.consolidation.carry_out_ticked()
        return {key: one.said if one.done else f"not: {one.said}" for key, one in done.items()}

    def reports(self) -> list[str]:
        return sorted(
            str(file.relative_to(self.world.vault)) for file in (self.world.vault / "Captures/Reports").glob("*.md")
        )

    def read(self, path: str) -> str:
        return (self.world.vault / path).read_bytes().decode()

    def tick(self, path: str, words: str, mark: str = "x") -> str:
        """Put a mark into the checkbox of the line that contains `words`, as a person does, and return its key."""
        file = self.world.vault / path
        lines = file.read_bytes().decode().splitlines(keepends=True)
        (at,) = [number for number, line in enumerate(lines) if words in line and line.lstrip().startswith("- [ ]")]
        lines[at] = lines[at].replace("- [ ]", f"- [{mark}]")
        file.write_bytes("".join(lines).encode())
        return lines[at].rpartition("^p-")[2].strip()


def _nothing(name: str) -> Findings[Any]:
    graph: Report[Any] = Report((), (), (), (), None, {"stale_summaries": 0, "orphaned_nodes": 0})
    return Findings(name, 0, (), (), (), (), (), (), graph, {}, {})
