"""Generate the manual page memex(1) from the help of the commands: python -m syncd.cli.manual_page > memex.1."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import click

from syncd.cli.framework.help_text import sections
from syncd.cli.main import memex
from syncd.version import installed


def render_manual(version: str) -> str:
    """Render the page in the language of man(7)."""
    lines = [
        f'.TH MEMEX 1 "" "Memex {_escape_troff(version)}" "Memex"',
        ".SH NAME",
        "memex \\- " + _escape_troff(NAME),
        ".SH SYNOPSIS",
    ]
    lines += [
        ".B memex",
        r"\fICOMMAND\fR [\fIOPTION\fR]... [\fIARGUMENT\fR]...",
        ".SH DESCRIPTION",
        *_format_prose(memex),
    ]
    root = click.Context(memex, info_name="memex")
    lines += [*_format_options(memex, root), ".SH COMMANDS"]
    for path, command, ctx in _list_commands(memex, root):
        lines += [
            f'.SS "memex {path}"',
            _escape_troff(" ".join(ctx.command.collect_usage_pieces(ctx))),
            ".PP",
            *_format_prose(command),
        ]
        lines += _format_options(command, ctx)
        lines += _format_rows(dict(sections(path)).get("Examples", ()))
    for title, rows in sections(""):
        lines += [f".SH {title.upper()}", *_format_rows(rows)]
    return "\n".join(lines) + "\n"


NAME = "keep an Obsidian vault searchable, and let AI agents capture into it over MCP"


def _list_commands(group: click.Group, above: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(above):
        command = group.commands[name]
        ctx = click.Context(command, info_name=name, parent=above)
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", child, below) for inner, child, below in _list_commands(command, ctx))
        else:
            yield name, command, ctx


def _format_prose(command: click.Command) -> list[str]:
    paragraphs = [" ".join(paragraph.split()) for paragraph in (command.help or "").split("\n\n")]
    return [line for paragraph in paragraphs for line in (".PP", _escape_troff(paragraph))][1:]


def _format_options(command: click.Command, ctx: click.Context) -> list[str]:
    root = command if command is memex else None
    records = [
        record
        for param in command.get_params(ctx)
        if (root or not (param.name or "").startswith(("shared_", "help"))) and (record := param.get_help_record(ctx))
    ]
    return _format_rows(records)


def _format_rows(rows: tuple[tuple[str, str], ...] | list[tuple[str, str]]) -> list[str]:
    return [line for name, does in rows for line in (".TP", rf"\fB{_escape_troff(name)}\fR", _escape_troff(does))]


def _escape_troff(text: str) -> str:
    """Escape text so that troff prints it unchanged."""
    escaped = re.sub(r"[\\\-]", lambda match: r"\e" if match[0] == "\\" else r"\-", text)
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.stdout.write(render_manual(installed()))
