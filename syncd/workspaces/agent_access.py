"""Give agents access to workspaces, and hold all else that the server may ask for: keys, uploads, health.

Law: agent access holds the index of the captures, and nothing of the vault outside the inbox."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from functools import partial
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
    """What `mcp_server` gets: the workspaces, the keys, and how the daemon is doing."""

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
        """The files on their way in."""
        return self._inbox.uploads

    def on_change(self, listener: Callable[[Collection[str] | None], object]) -> Callable[[], None]:
        """Have `listener` called with the paths of captures that changed (None: nobody knows which), until what is returned is called.

        It is called in the thread that changed them, while other changes wait, so it must be quick and raise nothing."""
        listeners = self._inbox.captures.told
        listeners.append(listener)
        return partial(listeners.remove, listener)

    def record_at(self, path: str) -> Record | None:
        """All that agents can know of the capture at `path`: its row but for the digest of its bytes. Quick."""
        record = self._inbox.captures.index.record_at(path)
        return replace(record, digest="") if record else None

    def log_denied(self, author: Author, error: MemexError, workspace: str) -> None:
        """Log a write that `author` was not allowed; what was asked for is told only where it is the name of something."""
        known: list[str] = []
        with suppress(Unavailable):  # the vault is away
            known = self.workspaces()
        self._inbox.audit.log_denied(author, error.code, workspace if workspace in known else "")

    def workspaces(self) -> list[str]:
        """The names of all workspaces: the folders of the inbox that can hold captures."""
        probe = (f"{self._inbox.folder}/{name}/x.md" for name in self._inbox.vault.list_folders(self._inbox.folder))
        return sorted(
            spot.workspace for path in probe if (spot := locate(path, self._inbox.folder)).scope == "captures"
        )

    def workspace(self, name: str, namespace: str | None = None) -> Workspace:
        """The workspace of that name, or only this namespace of it. It must exist."""
        if name not in self.workspaces():
            way = (
                "`memex workspace create default` makes it"
                if name == "default"
                else "`memex workspace list` names them"
            )
            raise NotFound(f"no workspace {name!r}: {way}", workspace=name[:200])
        return Workspace(name, self._inbox, namespace=namespace)

    def create_workspace(self, name: str) -> Workspace:
        """Make a workspace; one that exists is returned as it is.

        Raises Conflict for the twin of one: where letter case does not count, both would be one folder."""
        known = self.workspaces()
        if name not in known:
            refuse_secret("the workspace's name", name)
        twin = next((other for other in known if fold(other) == fold(name)), None)
        if twin and name not in known:
            raise Conflict(f"there is a workspace {twin!r}: choose a name that differs in more than letter case")
        self._inbox.vault.make_folder(f"{self._inbox.folder}/{check_workspace_name(name)}")
        return Workspace(name, self._inbox)

    def delete_workspace(self, name: str) -> None:
        """Remove a workspace that holds no file. Raises InvalidArgument when it does."""
        self.workspace(name)
        try:
            self._inbox.vault.remove_folder(f"{self._inbox.folder}/{name}")
        except MemexError as error:
            raise InvalidArgument(
                f"workspace {name!r} is not empty; move or delete its notes first", workspace=name
            ) from error
