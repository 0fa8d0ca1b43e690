"""Answer owner commands in place of a daemon, with handwritten answers."""

from __future__ import annotations

from index.errors import NotFound
from syncd.daemon.control_socket import ControlServer

HIT = {
    "id": "i1",
    "path": "Projects/A.md",
    "title": "A",
    "heading": "Top",
    "chunk": "some text",
    "score": 0.5,
    "weak": False,
    "scope": "vault",
    "workspace": "",
    "stale": False,
    "superseded_by": None,
    "successor": None,
    "url": "obsidian://open?vault=v&file=Projects%2FA.md",
}
RECORD = {"id": "i1", "path": "Captures/default/A.md", "created_at": 0, "content_hash": "h", "chunks": 1}
STATUS = {
    "ready": True,
    "pending": 0,
    "generation": 3,
    "captures": {"documents": 1, "chunks": 1},
    "vault": {"documents": 2, "chunks": 2},
    "defects": [],
    "degraded": [],
}
REPORT = {
    "added": 1,
    "modified": 0,
    "moved": 0,
    "removed": 0,
    "unchanged": 2,
    "failed": 0,
    "chunks": 3,
    "embedded": 1,
    "reused": 2,
    "seconds": 0.5,
}


class Daemon:
    """Answers as a daemon's control socket with handwritten answers, and keeps the requests. `more` replaces answers."""

    def __init__(self, state, **more):
        self.state, self.asked = state, []
        answers = {
            "search": {"hits": [HIT | {"extra": 1}], "degraded": ["encoder: loading"], "mode": "text"},
            "capture": RECORD | {"created": True},
            "get": RECORD | {"content": "héllo\r\nno newline at the end"},
            "recent": [RECORD],
            "delete": RECORD | {"deleted": True, "undo": "0123456789abcdef"},
            "undo": {"undo": None, "done": [], "skipped": []},
            "status": STATUS | {"git": "ok"},
            "index": REPORT,
            "enrich": {"path": "Captures/default/A.md", "summary": "S.", "tags": ["a", "b"], "changed": ["summary"]},
            "enrich.backfill": {
                "enriched": 1,
                "unchanged": 0,
                "skipped": [{"path": "B.md", "reason": "it was changed a moment ago"}],
                "dry_run": True,
                "notes": [{"path": "A.md", "summary": "S."}],
            },
            "check": {"checked": 1200, "mended": 2, "failed": 1},
            "node.open": {"entities": [{"name": "Heron", "path": "Captures/default/Entities/Heron.md"}]},
            "workspace.create": {"name": "work", "created": True},
            "workspace.list": [{"name": "default"}, {"name": "work"}],
            "workspace.delete": {"name": "work", "deleted": True},
            "key.create": {"name": "bot", "key": "mx_1_2"},
            "key.list": [
                {
                    "id": "1",
                    "name": "bot",
                    "scopes": ["read"],
                    "workspaces": None,
                    "revoked_at": None,
                    "expires_at": None,
                }
            ],
            "key.revoke": {"id": "1", "name": "bot"},
            **more,
        }
        self.server = ControlServer(state, {name: self._answer(name, value) for name, value in answers.items()})

    def _answer(self, name, value):
        def answer(arguments, progress):
            self.asked.append((name, arguments))
            if arguments.get("id") == "missing":
                raise NotFound("no note 'missing'")
            return value

        return answer
