"""Decide the location of a path in the vault: its scope, workspace, namespace and type.

A capture is a file below a workspace's folder; a workspace is a folder of the inbox. Files beside the workspaces
(reports, the archive, the review table) belong to the scope "vault", so no tool can reach them."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from index.errors import InvalidArgument
from index.model import Scope
from index.names import fold
from index.text.hidden_characters import remove_ignorable
from syncd.vault.path_rules import folder_name

ENTITIES, FILES = "Entities", "Files"
# Beside the workspaces, for people: reports, archived captures, and what agents get at the start of a session.
REPORTS, ARCHIVE, CONTEXT = "Reports", "Archive", "Context"
ABOUT = "About.md"  # beside the workspaces: explains the inbox to people
BESIDE = frozenset({"reports", "archive", "context"})
RESERVED = frozenset({"reports", "archive", "entities", "files"})  # casefolded names that no namespace may have


@dataclass(frozen=True, slots=True)
class NoteLocation:
    """Describes what a path says about its note; `workspace` and `namespace` are "" outside the inbox."""

    scope: Scope
    workspace: str
    namespace: str
    type: str  # "note", "entity" or "file", implied by the folder


VAULT = NoteLocation("vault", "", "", "note")


def locate(path: str, inbox: str) -> NoteLocation:
    """Return the location of `path` (relative to the vault, "/" between parts)."""
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
    # macOS may give the name of a folder in another Unicode form than people and agents type it.
    namespace = unicodedata.normalize("NFC", "/".join(folders))
    return NoteLocation("captures", workspace, namespace or "default", kind)


def is_context(path: str, inbox: str) -> bool:
    """Return whether `path` is the folder of contexts or lies in it. These notes are generated, so they are not indexed."""
    before = f"{inbox}/"
    return path.startswith(before) and path[len(before) :].partition("/")[0].casefold() == CONTEXT.casefold()


def check_workspace_name(name: str) -> str:
    """Return `name` if it can be a folder of the inbox. Raises InvalidArgument."""
    if fold(name) == CONTEXT.casefold():
        raise InvalidArgument(f"{name!r} can't be a workspace: Memex writes the contexts there", name=name)
    return _check_folder(name)


def _check_folder(name: str) -> str:
    """Return `name` if it can be a folder of a workspace. Raises InvalidArgument."""
    if (
        not remove_ignorable(name).strip()
        or name != folder_name(name)
        or fold(name) in RESERVED
        or name.startswith(".")
    ):
        raise InvalidArgument(
            f"{name!r} can't be a workspace or namespace: use letters, digits, blanks, - and _ (not Reports, Archive, Entities, Files)",
            name=name[:100],
        )
    return name


def namespace_path(namespace: str) -> str:
    """Return the folder of `namespace` below its workspace; "" for the workspace's own top level."""
    if namespace == "default":
        return ""
    parts = namespace.split("/")
    if len(parts) > 8:
        raise InvalidArgument("a namespace can have at most 8 levels", namespace=namespace[:200])
    if any(part.casefold().endswith(".md") for part in parts):
        raise InvalidArgument(
            "a namespace is a folder, and names that end in .md are for notes", namespace=namespace[:200]
        )
    return "/".join(_check_folder(part) for part in parts)
