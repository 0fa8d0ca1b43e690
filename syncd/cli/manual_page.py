"""Generate the manual page memex(1) from the help of the commands: python -m syncd.cli.manual_page > memex.1."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import click

from syncd.cli.framework.help_text import sections
from syncd.cli.main import memex
from syncd.version import installed


def manual(version: str) -> str:
    """The page in the language of man(7)."""
    lines = [
        f'.TH MEMEX 1 "" "Memex {_plain(version)}" "Memex"',
        ".SH NAME",
        "memex \\- " + _plain(NAME),
        ".SH SYNOPSIS",
    ]
    lines += [".B memex", r"\fICOMMAND\fR [\fIOPTION\fR]... [\fIARGUMENT\fR]...", ".SH DESCRIPTION", *_prose(memex)]
    root = click.Context(memex, info_name="memex")
    lines += [*_options(memex, root), ".SH COMMANDS"]
    for path, command, ctx in _commands(memex, root):
        lines += [
            f'.SS "memex {path}"',
            _plain(" ".join(ctx.command.collect_usage_pieces(ctx))),
            ".PP",
            *_prose(command),
        ]
        lines += _options(command, ctx)
        lines += _rows(dict(sections(path, group=False)).get("Examples", ()))
    for title, rows in sections("", group=True):
        lines += [f".SH {title.upper()}", *_rows(rows)]
    return "\n".join(lines) + "\n"


NAME = "keep an Obsidian vault searchable, and let AI agents capture into it over MCP"


def _commands(group: click.Group, above: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(above):
        command = group.commands[name]
        ctx = click.Context(command, info_name=name, parent=above)
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", child, below) for inner, child, below in _commands(command, ctx))
        else:
            yield name, command, ctx


def _prose(command: click.Command) -> list[str]:
    paragraphs = [" ".join(paragraph.split()) for paragraph in (command.help or "").split("\n\n")]
    return [line for paragraph in paragraphs for line in (".PP", _plain(paragraph))][1:]


def _options(command: click.Command, ctx: click.Context) -> list[str]:
    root = command if command is memex else None
    records = [
        record
        for param in command.get_params(ctx)
        if (root or not (param.name or "").startswith(("shared_", "help"))) and (record := param.get_help_record(ctx))
    ]
    return _rows(records)


def _rows(rows: tuple[tuple[str, str], ...] | list[tuple[str, str]]) -> list[str]:
    return [line for name, does in rows for line in (".TP", rf"\fB{_plain(name)}\fR", _plain(does))]


def _plain(text: str) -> str:
    """Text that troff takes as it stands: no escape, no request at the start of a line."""
    escaped = re.sub(r"[\\\-]", lambda match: r"\e" if match[0] == "\\" else r"\-", text)
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.stdout.write(manual(installed()))
