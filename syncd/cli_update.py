"""The command updatenote: another text, title, tags or collection for a capture, given on the line, by a pipe or in an editor.

Law, tested: what a person has typed is not lost when the note can't take it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from index.errors import InvalidArgument, MemexError
from syncd import render
from syncd.cli_arguments import stdin
from syncd.cli_complete import captures, collections, workspaces
from syncd.cli_frame import Command, answer, as_json, ask, talk


@click.command(cls=Command)
@click.argument("id", metavar="ID|PATH", shell_complete=captures)
@click.argument("text", required=False)
@click.option("--workspace", "-w", shell_complete=workspaces, help="Only if it lies there.")
@click.option("--title", help="Another title.")
@click.option("--tag", "-t", "tags", multiple=True, help="A tag, in place of those there are; repeat for several.")
@click.option("--collection", shell_complete=collections, help="Another collection.")
@click.option("--version", type=click.IntRange(1), help="Only if it still has this version.")
def updatenote(
    id: str, text: str | None, workspace: str | None, tags: tuple[str, ...], version: int | None, **given: Any
) -> None:
    """Give a note another TEXT, title, tags or collection; its id, its file and when it was made stay.

    TEXT in place of all there is, - for what stdin gives. Without TEXT and options it opens in $EDITOR, or is read from a pipe."""
    wish = {**given, "id": id, "workspace": workspace, "tags": list(tags) or None, "version": version}
    only = text is None and any(wish[name] is not None for name in ("title", "tags", "collection"))
    if text is None and not only and sys.stdin.isatty() and not as_json():
        _edited(wish)
        return
    if text in (None, "-") and not only:
        text = stdin()
    _tell(ask("updatenote", {**wish, "text": text}))


def _edited(wish: dict[str, Any]) -> None:
    """Let a person write; what an agent writes meanwhile is not overwritten."""
    kept = ask("get", {"id": wish["id"], "workspace": wish["workspace"]})
    before = kept["content"].encode("utf-8", "surrogateescape")
    file, name = tempfile.mkstemp(prefix="memex-", suffix=".md")
    with os.fdopen(file, "wb") as opened:
        opened.write(before)
    draft = Path(name)
    try:
        click.edit(filename=name)
        raw = draft.read_bytes()
        if raw == before:
            talk("memex: nothing was changed")
        else:
            _tell(ask("updatenote", {**wish, "text": _text(raw), "version": wish["version"] or kept["version"]}))
    except (MemexError, click.ClickException):
        talk(f"memex: the note was not changed; your text is in {render.plain(name)}")
        raise
    draft.unlink()


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"what the editor wrote is not UTF-8 (byte {error.start})") from None


def _tell(done: dict[str, Any]) -> None:
    version = f"  version {done['version']}" + ("" if done["changed"] else "  (it was so already)")
    answer(done, lambda: f"{done['id']}  {render.plain(done['path'])}{version}")
