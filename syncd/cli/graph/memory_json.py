"""Define the commands `import` and `export`, which read and write a workspace's graph as `memory.json`."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import click

from index.errors import Conflict, InvalidArgument, NotFound
from index.names import pluralize
from syncd.cli.framework.arguments import refuse_idle
from syncd.cli.framework.commands import Command, open_session, print_answer, print_message, show_progress
from syncd.cli.graph.nodes import GRAPH_WORKSPACE
from syncd.cli.terminal import result_text
from syncd.state.folder import expand_home

# ruff: noqa: PLC0415 - the reader imports the parsers of notes, which no other command needs

MANY = 500  # entities per request
SPOOLED = 16 * 1024 * 1024  # bytes of stdin that are kept in memory; more goes to a temporary file


@click.command("import", cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Show what would be imported, and change nothing.")
@click.option("--skip-mistakes", is_flag=True, help="Skip lines with mistakes, and import the rest.")
@GRAPH_WORKSPACE
def import_(file: str, dry_run: bool, skip_mistakes: bool, workspace: str) -> None:
    """Import the entities and relations of FILE into the graph; - reads stdin.

    FILE is a memory.json of the public MCP reference server for knowledge graphs (one JSON object per line, or the older form:
    one object with entities and relations), or the output of `memex export`. A file with mistakes is refused, and each
    mistake is listed with its line. If an entity exists already, new facts and tags are added, and a summary if it had none;
    a second import changes nothing. A relation whose entities are not both present is left out and listed."""
    from syncd.graph.memory_json_reader import import_graph, summarize_file

    name = "stdin" if file == "-" else Path(file).name
    with _open_seekable(file) as source, show_progress() as progress, open_session(current=True) as ask:
        summary = summarize_file(source)
        for mistake in summary.mistakes:
            print_message(f"{name}: {result_text.line(str(mistake), 400)}")
        if summary.wrong and not skip_mistakes:
            many = "a mistake" if summary.wrong == 1 else f"{summary.wrong:,} mistakes"
            raise InvalidArgument(
                f"{name} has {many}, so nothing was imported: fix the file, or import the rest with --skip-mistakes",
                mistakes=[str(mistake) for mistake in summary.mistakes[:100]],
            )
        result = import_graph(source, summary, ask, progress, {"workspace": workspace, "dry_run": dry_run})
    for line in result["dangling"]:
        print_message(f"{name}: {result_text.line(line, 400)}")
    if dry_run:
        print_message("memex: dry run: nothing was written")
    print_answer(result | {"mistakes": summary.wrong}, lambda: _format_counts(result))


@click.command("export", cls=Command)
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False), metavar="FILE", help="Write to FILE instead of stdout."
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@GRAPH_WORKSPACE
def export(output: str | None, force: bool, workspace: str) -> None:
    """Export the graph of a workspace as memory.json, one JSON object per line: entities first, then relations.

    The file also has summaries, tags, aliases, ordinals, times and other properties, which `memex import` restores and
    other programs ignore. The rest of the notes' text is not exported."""
    if output:
        _require_free(expand_home(output).absolute(), force=force)  # before the work
    else:
        refuse_idle("force", "needs --output")
    with (
        tempfile.TemporaryFile() as lines,
        tempfile.TemporaryFile() as edges,
        show_progress() as progress,
        open_session(current=True) as ask,
    ):
        names = [node["name"] for node in ask("node.names", {"workspace": workspace, "limit": sys.maxsize})]
        for first in range(0, len(names), MANY):
            part = ask("graph.export", {"workspace": workspace, "names": names[first : first + MANY]})
            lines.write("".join(f"{line}\n" for line in part["entities"]).encode())
            edges.write("".join(f"{line}\n" for line in part["relations"]).encode())
            progress({"done": min(first + MANY, len(names)), "total": len(names), "stage": "exporting"})
        edges.seek(0)
        shutil.copyfileobj(edges, lines)
        lines.seek(0)
        if output:
            file = write_file(Path(output), lines, force=force)
            print_answer(
                {"file": str(file), "entities": len(names)}, lambda: f"{file}  ({pluralize(len(names), 'entity')})"
            )
        else:
            shutil.copyfileobj(lines, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def write_file(file: Path, content: str | IO[bytes], *, force: bool) -> Path:
    """Write a file atomically. Raises Conflict when it exists, unless `force` replaces it, and NotFound without its folder."""
    target = expand_home(file).absolute()
    _require_free(target, force=force)
    handle, made = tempfile.mkstemp(dir=target.parent, prefix=".memex-")
    try:
        with os.fdopen(handle, "wb") as written:
            if isinstance(content, str):
                written.write(content.encode("utf-8", "backslashreplace"))
            else:
                shutil.copyfileobj(content, written)
            written.flush()
            os.fsync(written.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(made).chmod(0o666 & ~mask)
        if force:
            Path(made).replace(target)
        else:
            _move_new(Path(made), target)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise
    return target


def _require_free(target: Path, *, force: bool) -> None:
    """Raise Conflict if a file exists that `force` does not replace, and NotFound if its folder is missing."""
    if target.exists() and not force:
        raise Conflict(f"{target} exists: choose another name, or pass --force")
    if not target.parent.is_dir():
        raise NotFound(f"no such folder: {target.parent}; make it, or choose another folder")


def _move_new(made: Path, target: Path) -> None:
    """Give a file its name. Raises Conflict if another program has created a file of this name since."""
    try:
        target.hardlink_to(made)
    except FileExistsError as error:
        raise Conflict(f"{target} exists: choose another name, or pass --force") from error
    except OSError:  # a file system without hard links
        made.replace(target)
    else:
        made.unlink()


@contextlib.contextmanager
def _open_seekable(file: str) -> Iterator[IO[bytes]]:
    """Open a file that can be read more than once; stdin is copied to a temporary file."""
    if file != "-":
        with Path(file).open("rb") as source:
            yield source
        return
    with tempfile.SpooledTemporaryFile(SPOOLED) as source:
        shutil.copyfileobj(sys.stdin.buffer, source)
        yield source


def _format_counts(result: Mapping[str, Any]) -> str:
    return (
        f"entities: {result['created']:,} created, {result['changed']:,} extended, {result['unchanged']:,} unchanged\n"
        f"facts: {result['observations']:,} written\n"
        f"relations: {result['related']:,} created, {result['existed']:,} existed already, {result['left_out']:,} left out"
    )
