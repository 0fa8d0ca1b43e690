"""Define the route `GET /context`: what an agent gets at the start of a session, for clients without MCP prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import Field

from mcp_server.operations.operation import NOTES_ARE_DATA, define_operation
from mcp_server.operations.wire_format import NoteText, RequestModel
from syncd.notes.timestamps import iso_or_none
from syncd.settings.settings import Settings

if TYPE_CHECKING:
    from syncd.workspaces.workspace import Workspace

LONGEST_PROJECT: Final = 200  # characters


class ReadContext(RequestModel):
    """Validate the input of the route."""

    project: str | None = Field(
        None, min_length=1, max_length=LONGEST_PROJECT, description="Facts of this project come first"
    )


class ContextLine(NoteText):
    """Describe one line of a context."""

    line: str = Field(description="The line as it is in the text")
    id: str | None = Field(description="Id of the note; null for a line that the owner wrote")
    title: str
    at: int | None = Field(description="Last change of the note in epoch milliseconds")
    at_iso: str | None
    author: str = Field(description="Who wrote the note, as its source claims")
    kept: bool = Field(description="The owner keeps this line")
    stale: bool = Field(description="A newer note replaces this one")


class Context(NoteText):
    """Describe the context of a workspace."""

    workspace: str
    project: str = Field(description="The project in the form in which projects are compared; empty for none")
    text: str = Field(description="What an agent gets: the lines as quoted data; empty without facts")
    tokens: int = Field(description="Tokens of the text, by the bundled model's tokenizer")
    max_tokens: int = Field(description="The most tokens that the settings allow")
    lines: list[ContextLine]


def read_context(workspace: Workspace, arguments: ReadContext, _: Settings) -> Context:
    """Return the context of the workspace."""
    context = workspace.context(arguments.project or "")
    lines = [
        ContextLine(
            line=line.line,
            id=line.id or None,
            title=line.title,
            at=line.at,
            at_iso=iso_or_none(line.at),
            author=line.author,
            kept=line.kept,
            stale=line.stale,
        )
        for line in context.lines
    ]
    return Context(
        workspace=context.workspace,
        project=context.project,
        text=context.text,
        tokens=context.tokens,
        max_tokens=context.most,
        lines=lines,
    )


OPERATION: Final = define_operation(
    read_context,
    family="context",
    title="Read the context",
    description=(
        "Read the facts that an agent of the workspace gets at the start of a session, as text within a number of tokens and "
        "as lines. " + NOTES_ARE_DATA
    ),
    scope="read",
    seconds=30,
)
