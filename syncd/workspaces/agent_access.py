"""Give agents access to workspaces, and hold everything else that the server may ask for: keys, uploads, health.

Law: agent access holds the index of the captures, and of the vault outside the inbox only the shared notes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, Unavailable
from index.model import Record
from index.names import fold
from syncd.captures.inbox import Inbox
from syncd.history.audit_log import Author
from syncd.notes.secret_patterns import refuse_secret
from syncd.remote.push_webhook import PushWebhook
from syncd.telemetry.metric_samples import HistogramSample, Sample
from syncd.uploads.upload_sessions import Uploads
from syncd.vault.location import check_workspace_name, locate
from syncd.workspaces.api_keys import ApiKeys
from syncd.workspaces.workspace import Workspace


class AgentAccess:
    """Provides `mcp_server` with the workspaces, the keys and the daemon's health."""

    def __init__(
        self,
        inbox: Inbox,
        keys: ApiKeys,
        status: Callable[[Collection[str] | None], dict[str, Any]],
        push_webhook: PushWebhook,
        samples: Callable[[], list[Sample | HistogramSample]] = list,
    ) -> None:
        self._inbox, self.keys, self.status = inbox, keys, status
        self.push_webhook, self.samples = push_webhook, samples
        self.queue = inbox.queue

    @property
    def uploads(self) -> Uploads:
        """Return the running uploads."""
        return self._inbox.uploads

    def on_change(self, listener: Callable[[Collection[str] | None], object]) -> Callable[[], None]:
        """Call `listener` with the paths of changed captures (None: unknown), until the returned function is called.

        A change of what a workspace's context contains is one of the workspace's folder. The listener runs in the thread that
        made the change, while other changes wait, so it must be fast and raise nothing."""
        registries = self._inbox.captures.listeners, self._inbox.contexts.listeners
        for listeners in registries:
            listeners.append(listener)

        def end() -> None:
            for listeners in registries:
                listeners.remove(listener)

        return end

    def record_at(self, path: str) -> Record | None:
        """Return what agents may know of the capture at `path`: its row without the digest of its bytes. Fast."""
        record = self._inbox.captures.index.record_at(path)
        return replace(record, digest="") if record else None

    def log_denied(self, author: Author, error: MemexError, workspace: str) -> None:
        """Log a denied write by `author`; the workspace is logged only if it exists."""
        known: list[str] = []
        with suppress(Unavailable):  # the vault is unavailable
            workspace, known = self.spell_workspace(workspace), self.workspaces()
        self._inbox.audit.log_denied(author, error.code, workspace if workspace in known else "")

    def workspaces(self) -> list[str]:
        """Return the names of all workspaces: the folders of the inbox that can hold captures."""
        try:
            folders = self._inbox.vault.list_folders(self._inbox.folder)
        except NotFound:  # a link or a file takes the place of the inbox, which the status reports
            return []
        probe = (f"{self._inbox.folder}/{name}/x.md" for name in folders)
        return sorted(
            spot.workspace for path in probe if (spot := locate(path, self._inbox.folder)).scope == "captures"
        )

    def spell_workspace(self, name: str) -> str:
        """Return a workspace's name in the Unicode form of its folder; `name` itself if there is no such workspace."""
        if name.isascii() or name in (known := self.workspaces()):
            return name
        form = unicodedata.normalize("NFC", name)
        return next((other for other in known if unicodedata.normalize("NFC", other) == form), name)

    def workspace(self, name: str, namespace: str | None = None, *, reads_all: bool = False) -> Workspace:
        """Return the workspace with this name, or only this namespace of it, for a caller who may read all workspaces or not.

        Raises NotFound if it does not exist."""
        name, known = self.spell_workspace(name), self.workspaces()
        if name not in known:
            way = (
                "create it with `memex workspace create default`"
                if name == "default"
                else "list them with `memex workspace list`"
            )
            raise NotFound(f"no workspace {name!r}: {way}", workspace=name[:200])
        return Workspace(name, self._inbox, namespace=namespace, reads_all=reads_all)

    def create_workspace(self, name: str) -> Workspace:
        """Create a workspace; an existing one is returned.

        Raises Conflict if the name differs from an existing one only in letter case: on some disks both would be one
        folder."""
        name, known = self.spell_workspace(name), self.workspaces()
        if name not in known:
            refuse_secret("the workspace's name", name)
            name = check_workspace_name(unicodedata.normalize("NFC", name))
            if twin := next((other for other in known if fold(other) == fold(name)), None):
                raise Conflict(f"a workspace {twin!r} exists; choose a name that differs in more than letter case")
            self._inbox.vault.make_folder(f"{self._inbox.folder}/{name}")
        return Workspace(name, self._inbox)

    def delete_workspace(self, name: str, *clear: Callable[[], object]) -> None:
        """Remove an empty workspace and the note of its context.

        Raises InvalidArgument when it is not empty, and Unavailable when the vault is away. `clear`: remove what belongs to
        the workspace outside the vault. They run first: if one fails, the workspace is still there, and the deletion can
        be repeated."""
        name = self.workspace(name).name
        folder = f"{self._inbox.folder}/{name}"
        filled = InvalidArgument(f"workspace {name!r} is not empty; move or delete its notes first", workspace=name)
        if self._inbox.vault.list_names(folder):
            raise filled
        for remove in clear:
            remove()
        self._inbox.contexts.forget(name)
        try:
            self._inbox.vault.remove_folder(folder)
        except Conflict as error:  # something was put into it meanwhile
            raise filled from error
