"""Serve the notes of the inbox as MCP resources under `note://{workspace}/{+path}`, and contexts under `context://{workspace}`.

Law: a missing note, a note that the request may not see and a URI that names no note all give NOT_FOUND with identical
words. A resource is the note's text; its properties, including the person's, stay in the file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.types import Annotations, Resource, ResourceTemplate

from index.errors import NotFound, PermissionDenied, ResourceExhausted
from index.model import Record
from mcp_server.operations.caller import Caller, open_workspace, resolve_workspace, sees_workspace
from mcp_server.operations.wire_format import find_suspicious, replace_surrogates
from syncd.notes.timestamps import iso

if TYPE_CHECKING:
    from syncd.workspaces.agent_access import AgentAccess
    from syncd.workspaces.workspace import Workspace

SCHEME: Final = "note://"
CONTEXT_SCHEME: Final = "context://"
MARKDOWN: Final = "text/markdown"
LISTED: Final = 20  # notes; a search, a completion or list_recent finds the others
LONGEST_URI: Final = 4_000  # characters; a path of 1,000 bytes takes up to three characters for each byte
LONGEST_TEXT: Final = 1_000_000  # bytes, the limit of a capture

TEMPLATE: Final = ResourceTemplate(
    uri_template="note://{workspace}/{+path}",
    name="note",
    title="A captured note",
    description="The text of a note in the inbox. Use completion for workspace and path, or a URI from an answer.",
    mime_type=MARKDOWN,
)


def note_uri(workspace: str, address: str) -> str:
    """Return the URI of a note, spelled so that no client rewrites it."""
    return f"{SCHEME}{quote(workspace, safe='')}/{quote(address)}"


def find_note(agent_access: AgentAccess, caller: Caller, named: str) -> tuple[Workspace, Record]:
    """Return the workspace and the note with the URI `named`. Raises NotFound."""
    scheme, rest = named[: len(SCHEME)], named[len(SCHEME) :]
    if scheme == SCHEME and len(named) <= LONGEST_URI:
        folder, _, address = rest.partition("/")
        name = unquote(folder)
        if sees_workspace(agent_access, caller, name):
            workspace = open_workspace(agent_access, caller, name)
            try:
                return workspace, workspace.document_at(unquote(address))
            except NotFound:
                pass
    raise _not_found()


def find_watched(agent_access: AgentAccess, caller: Caller, named: Iterable[str]) -> dict[str, str]:
    """Return for each URI the path whose changes it follows: of a note its file, of a context the folder of its workspace.

    The path of a folder ends with a slash. Raises NotFound when a URI names nothing, and PermissionDenied when a key of
    one namespace would learn of changes in others."""
    paths = {}
    for address in named:
        if not address.startswith(CONTEXT_SCHEME):
            paths[address] = find_note(agent_access, caller, address)[1].path
        elif (workspace := _workspace_of_context(agent_access, caller, address)).namespace is None:
            paths[address] = workspace.root
        else:
            raise PermissionDenied("a key that is bound to a namespace can't watch the context of the whole workspace")
    return paths


def read(agent_access: AgentAccess, caller: Caller, named: str) -> ReadResourceContents:
    """Return the text of a note or a context. Raises NotFound, and ResourceExhausted for more than `LONGEST_TEXT` bytes."""
    if named.startswith(CONTEXT_SCHEME):
        return _read_context(agent_access, caller, named)
    workspace, record = find_note(agent_access, caller, named)
    try:
        text = replace_surrogates(workspace.read_content(record))
        workspace.log_reads([record.id])
    except NotFound:
        raise _not_found() from None  # its file disappeared a moment ago
    if len(text.encode()) > LONGEST_TEXT:
        raise ResourceExhausted(
            f"the note exceeds the limit of {LONGEST_TEXT:,} bytes for a resource; read it with get_thought",
            limit=LONGEST_TEXT,
        )
    meta = {"dev.memex/id": record.id} | suspicious_meta(text)
    return ReadResourceContents(content=text, mime_type=MARKDOWN, meta=meta)


def list_recent(agent_access: AgentAccess, caller: Caller) -> list[Resource]:
    """List the context and the latest notes of the tools' workspace, which a host offers to a person as attachments."""
    try:
        workspace = resolve_workspace(agent_access, caller)
    except NotFound:
        return []
    records = workspace.recent(LISTED)
    addresses = workspace.addresses(records)
    workspace.log_reads(list(addresses))
    notes = [
        _describe_note(workspace.name, addresses[record.id], record) for record in records if record.id in addresses
    ]
    context = [_describe_context(workspace.name)] if workspace.context().text else []
    # First, so that a person sees it; not for a key that can't watch it, as some clients watch the first one.
    return context + notes if workspace.namespace is None else notes + context


def context_uri(workspace: str) -> str:
    """Return the URI of a workspace's context."""
    return f"{CONTEXT_SCHEME}{quote(workspace, safe='')}"


def _read_context(agent_access: AgentAccess, caller: Caller, named: str) -> ReadResourceContents:
    workspace = _workspace_of_context(agent_access, caller, named)
    context = workspace.context()
    workspace.log_reads([line.id for line in context.lines if line.id])
    return ReadResourceContents(content=context.text, mime_type=MARKDOWN, meta=suspicious_meta(context.text))


def _workspace_of_context(agent_access: AgentAccess, caller: Caller, named: str) -> Workspace:
    """Return the workspace whose context has the URI `named`. Raises NotFound."""
    name = unquote(named[len(CONTEXT_SCHEME) :]) if len(named) <= LONGEST_URI else ""
    if not sees_workspace(agent_access, caller, name):
        raise _not_found()
    return open_workspace(agent_access, caller, name)


def _describe_context(workspace: str) -> Resource:
    return Resource(
        uri=context_uri(workspace),
        name="context",
        title=f"Context of {replace_surrogates(workspace)}",
        description="Facts from the captured notes of the workspace, for the start of a session.",
        mime_type=MARKDOWN,
    )


def suspicious_meta(*texts: str) -> dict[str, list[str]]:
    """Return the kinds of hidden characters in `texts` as an entry of `_meta`, for answers without our field `suspicious`."""
    return {"dev.memex/suspicious": find_suspicious(texts)}


def _describe_note(workspace: str, address: str, record: Record) -> Resource:
    summary = record.summary or ""
    return Resource(
        uri=note_uri(workspace, address),
        name=replace_surrogates(address),
        title=replace_surrogates(record.title),
        description=replace_surrogates(summary) or None,
        mime_type=MARKDOWN,
        annotations=Annotations(last_modified=iso(record.updated_at or record.created_at)),
        _meta=suspicious_meta(address, record.title, summary),
    )


def _not_found() -> NotFound:
    return NotFound(
        "no such note, or the key may not see it; find notes with a search or with completion of the template"
    )
