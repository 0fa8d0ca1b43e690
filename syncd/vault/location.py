"""Decide the location of a path in the vault: its scope, workspace, namespace and type.

A capture is a file below a workspace's folder; a workspace is a folder of the inbox. Files that lie beside the
workspaces (reports, the archive, the review table) belong to the scope "vault", so no tool can reach them."""

from __future__ import annotations

from dataclasses import dataclass

from index.model import Scope

INBOX = "Captures"
ENTITIES, FILES = "Entities", "Files"
REPORTS, ARCHIVE = (
    "Reports",
    "Archive",
)  # beside the workspaces, for people: what was found, and captures that were set aside
BESIDE = frozenset({"reports", "archive"})
RESERVED = BESIDE | {"entities", "files"}  # casefolded names that no workspace or namespace may have


@dataclass(frozen=True, slots=True)
class Place:
    """What a path says about the document there; `workspace` and `namespace` are "" in the vault proper."""

    scope: Scope
    workspace: str
    namespace: str
    type: str  # "note", "entity" or "file": what the folder implies


VAULT = Place("vault", "", "", "note")


def place(path: str, inbox: str = INBOX) -> Place:
    """Where `path` (relative to the vault, "/" between parts) stands."""
    top = inbox.split("/")
    parts = path.split("/")
    if parts[: len(top)] != top or len(parts) < len(top) + 2:
        return VAULT
    workspace, *folders = parts[len(top) : -1]
    if workspace.casefold() in BESIDE:
        return VAULT
    kind = "note"
    if folders and folders[-1] in (ENTITIES, FILES):
        kind = "entity" if folders.pop() == ENTITIES else "file"
    return Place("captures", workspace, "/".join(folders) or "default", kind)
