"""Serve notes as MCP resources under `note://{workspace}/{+path}`, captures alone.

Law: a missing note, one that the request may not see and a URI that names none give one NOT_FOUND, in identical
words. A resource is the note's text; its properties, the person's among them, stay in the file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote

from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.types import Annotations, Resource, ResourceTemplate

from index.errors import NotFound, ResourceExhausted
from index.model import Record
from mcp_server.operations.caller import Caller, open_workspace, resolve_workspace, visible_workspaces
from mcp_server.operations.wire_format import find_suspicious, replace_surrogates
from syncd.notes.timestamps import iso

if TYPE_CHECKING:
    from syncd.workspaces.agent_access import AgentAccess
    from syncd.workspaces.workspace import Workspace

SCHEME: Final = "note://"
MARKDOWN: Final = "text/markdown"
LISTED: Final = 20  # notes; a search, a completion or list_recent leads to the others
LONGEST_URI: Final = 4_000  # characters; a path of 1,000 bytes takes three for each
LONGEST_TEXT: Final = 1_000_000  # bytes, as much as a capture may have

TEMPLATE: Final = ResourceTemplate(
    uri_template="note://{workspace}/{+path}",
    name="note",
    title="A captured note",
    description="The text of a note in the captures inbox. Complete workspace and path, or take a URI that was given.",
    mime_type=MARKDOWN,
)


class ResourceNote(NamedTuple):
    """A note that a URI names."""

    workspace: Workspace
    record: Record


def note_uri(workspace: str, address: str) -> str:
    """The URI of a note, in the one spelling that every client leaves as it is."""
    return f"{SCHEME}{quote(workspace, safe='')}/{quote(address)}"


def find_note(agent_access: AgentAccess, caller: Caller, named: str) -> ResourceNote:
    """The note that `named` is the URI of. Raises NotFound."""
    scheme, rest = named[: len(SCHEME)], named[len(SCHEME) :]
    if scheme == SCHEME and len(named) <= LONGEST_URI:
        folder, _, address = rest.partition("/")
        name = unquote(folder)
        if name in visible_workspaces(agent_access, caller):
            workspace = open_workspace(agent_access, caller, name)
            try:
                return ResourceNote(workspace, workspace.document_at(unquote(address)))
            except NotFound:
                pass
    raise _not_found()


def find_notes(agent_access: AgentAccess, caller: Caller, named: Iterable[str]) -> dict[str, ResourceNote]:
    """The note of each URI. Raises NotFound when one of them names none."""
    return {address: find_note(agent_access, caller, address) for address in named}


def read(agent_access: AgentAccess, caller: Caller, named: str) -> ReadResourceContents:
    """The text of a note. Raises NotFound, and ResourceExhausted for more than `LONGEST_TEXT`."""
    workspace, record = find_note(agent_access, caller, named)
    try:
        text = replace_surrogates(workspace.read_content(record))
        workspace.log_reads([record.id])
    except NotFound:
        raise _not_found() from None  # its file went a moment ago
    if len(text.encode()) > LONGEST_TEXT:
        raise ResourceExhausted(
            f"the note is larger than the {LONGEST_TEXT:,} bytes that can be read as a resource; get_thought reads it whole",
            limit=LONGEST_TEXT,
        )
    meta = {"dev.memex/id": record.id} | suspicious_meta(text)
    return ReadResourceContents(content=text, mime_type=MARKDOWN, meta=meta)


def list_recent(agent_access: AgentAccess, caller: Caller) -> list[Resource]:
    """The latest notes of the workspace that the tools work in: what a host offers to a person for attaching."""
    try:
        workspace = resolve_workspace(agent_access, caller)
    except NotFound:
        return []
    records = workspace.recent(LISTED)
    addresses = workspace.addresses(records)
    workspace.log_reads(list(addresses))
    return [
        _describe_note(workspace.name, addresses[record.id], record) for record in records if record.id in addresses
    ]


def suspicious_meta(*texts: str) -> dict[str, list[str]]:
    """The kinds of hidden characters in `texts`, where the protocol has no field of ours: in `_meta`."""
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
    return NotFound("no such note, or the key may not see it; a search or the completion of the template finds notes")
