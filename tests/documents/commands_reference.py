"""Write the reference pages of the commands: the help of each command, grouped by purpose."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import click

from syncd.cli.framework import help_text, help_topics
from syncd.cli.main import memex
from tests.documents.markdown_text import cell, code, prose, table

PAGES: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {  # a page: its title, what it is for, its commands
    "notes": ("Notes and search", "search, capture, read, change and delete notes, and add files", ("search", "capture", "get", "recent", "updatenote", "delete", "context", "addfile", "enrich")),
    "review": ("Review and consolidation", "decide about captures, take decisions back, and carry out proposals", ("review", "promote", "unpromote", "unarchive", "consolidate")),
    "entities": ("Entities and relations", "read and edit entities, their facts and their relations", ("node",)),
    "graph": ("The graph", "relate entities, draw the graph, and take one over from another program", ("relation", "graph", "import", "export")),
    "perspectives": ("Perspectives", "change the prompts under which facts are embedded and searched", ("perspective",)),
    "vaults": ("Vaults and settings", "set up a vault, choose one, and see the settings", ("init", "demo", "vaults", "use", "config", "completion")),
    "models": ("Models and measurements", "choose the model for search by meaning, and measure it and settings on your notes", ("model", "eval", "searches")),
    "daemon": ("The daemon", "run the daemon, see its health, and connect clients", ()),
    "keys": ("Workspaces and keys", "give each agent a key of its own, limit what the key opens, and share notes of the vault", ("workspace", "key", "share")),
    "history": ("History and Git", "see who wrote what, take it back, and work with Git", ("log", "undo", "audit", "commit", "sync", "hook")),
    "upkeep": ("Service, jobs and backup", "keep the daemon running, look after its jobs, and back it up", ("service", "job", "backup", "restore")),
}  # fmt: skip
REST: Final = "daemon"  # the page of commands that no other page names


def render_pages() -> dict[str, str]:
    """Return a page for each group, and the index of all commands."""
    root = click.Context(memex, info_name="memex")
    named = {name for _, _, names in PAGES.values() for name in names}
    rest = tuple(name for name in memex.list_commands(root) if name not in named)
    pages = {}
    for page, (title, purpose, names) in PAGES.items():
        mine = [name for name in (names or rest) if name in memex.commands]
        lines = [f"# {title}\n\nLook up here how to {purpose}. The [index](index.md) lists all commands.\n\n"]
        lines += [_describe(path, command, ctx) for path, command, ctx in _list(mine, root)]
        pages[f"commands/{page}.md"] = "".join(lines)
    return {"commands/index.md": _index(root, rest)} | pages


def _index(root: click.Context, rest: Sequence[str]) -> str:
    lines = [
        "# Commands\n\nFind the command that you need, and follow its link to the options. Every command has `--help`, which says the same.\n\n"
    ]
    for page, (title, _, names) in PAGES.items():
        mine = [name for name in (names or rest) if name in memex.commands]
        rows = [
            (f"[`memex {path}`]({page}.md#memex-{path.replace(' ', '-')})", cell(help_text.first_sentence(command)))
            for path, command, _ in _list(mine, root)
        ]
        lines.append(f"## {title}\n\n" + table(("command", "what it does"), rows))
    lines.append(_shared(root))
    return "".join(lines)


def _shared(root: click.Context) -> str:
    shared = [
        record for param in memex.get_params(root) if _is_shared(param) and (record := param.get_help_record(root))
    ]
    text = "## Options of every command\n\n" + table(
        ("option", "meaning"), [(code(name), cell(does)) for name, does in shared]
    )
    for title, rows in (
        ("Exit codes", help_topics.EXIT_CODES),
        ("Exit codes of `memex serve`", help_topics.OWN_EXIT_CODES["serve"]),
        ("Environment", help_topics.ENVIRONMENT),
        ("Files", help_topics.FILES),
    ):
        text += f"## {title}\n\n" + table(
            (title.split()[0].lower().rstrip("s"), "meaning"), [(code(name), cell(does)) for name, does in rows]
        )
    return text


def _list(names: Sequence[str], above: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in names:
        command = memex.commands[name]
        ctx = click.Context(command, info_name=name, parent=above)
        if isinstance(command, click.Group):
            if command.invoke_without_command:
                yield name, command, ctx
            for inner in command.list_commands(ctx):
                child = command.commands[inner]
                yield f"{name} {inner}", child, click.Context(child, info_name=inner, parent=ctx)
        else:
            yield name, command, ctx


def _describe(path: str, command: click.Command, ctx: click.Context) -> str:
    usage = " ".join(["memex", path, *command.collect_usage_pieces(ctx)])
    paragraphs = [" ".join(part.split()) for part in inspect.cleandoc(command.help or "").split("\n\n")]
    arguments = [
        (code(label), cell(help_topics.explain_argument(path, label)))
        for param in command.get_params(ctx)
        if isinstance(param, click.Argument)
        for label in [param.make_metavar(ctx)]
    ]
    options = [
        (code(record[0]), cell(record[1]))
        for param in command.get_params(ctx)
        if not isinstance(param, click.Argument)
        and not _is_shared(param)
        and "--help" not in param.opts
        and (record := param.get_help_record(ctx))
    ]
    examples = "".join(f"{line}   # {does}\n" for line, does in help_text.EXAMPLES.get(path, ()))
    codes = [(code(name), cell(does)) for name, does in help_topics.OWN_EXIT_CODES.get(path, ())]
    return "".join(
        (
            f"## memex {path}\n\n`{usage}`\n\n",
            "".join(f"{prose(part)}\n\n" for part in paragraphs),
            table(("argument", "meaning"), arguments),
            table(("option", "meaning"), options),
            f"```sh\n{examples}```\n\n" if examples else "",
            table(("exit code", "meaning"), codes) if path != "serve" else "",
        )
    )


def _is_shared(param: click.Parameter) -> bool:
    return (param.name or "").startswith("shared_")
