"""Offer shell completion: names of captures, workspaces, keys, jobs and more, as the daemon knows them.

Law: completion never opens a store, starts a daemon or waits long, and a failure gives no words."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from index.errors import MemexError
from index.model import COLLECTIONS
from index.names import base_name, fold
from syncd.cli.framework.commands import Command, print_answer
from syncd.cli.framework.printed_commands import FLAGS
from syncd.cli.terminal import result_text
from syncd.daemon import control_socket
from syncd.jobs.job_names import shell_word
from syncd.settings.known_vaults import known_vaults, vault_name
from syncd.settings.settings import Settings, load

PATIENCE_S = 1.0
NEWEST = 50  # captures whose names are offered


class Bash(BashComplete):
    """Completion for Bash, which inserts words unquoted, so names with spaces or `$` are quoted here."""

    source_template = BashComplete.source_template.replace("COMPREPLY+=($value)", 'COMPREPLY+=("$value")')

    def format_completion(self, item: CompletionItem) -> str:
        """Format one word for the completion script."""
        return f"{item.type},{shlex.quote(item.value) if item.type == 'plain' else item.value}"


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": ZshComplete, "fish": FishComplete}
# The folder and the file from which a shell loads completions, and what else it needs.
KEEP = {
    "bash": ("~/.local/share/bash-completion/completions", "memex", "   (bash 4.4 or newer)"),
    "zsh": ("~/.zfunc", "_memex", "\n# Then in ~/.zshrc: fpath=(~/.zfunc $fpath); autoload -Uz compinit; compinit"),
    "fish": ("~/.config/fish/completions", "memex.fish", ""),
}
add_completion_class(Bash)


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> None:
    """Print a completion script for a shell: commands, options, and names from the daemon.

    For one session, run: eval "$(memex completion bash)", or zsh instead of bash, which first needs: autoload -Uz compinit; compinit.
    In fish: memex completion fish | source. To keep it, run the command that the end of the script names. With --json: {"shell", "script"}."""
    root = click.get_current_context().find_root().command
    source = SHELLS[shell](root, {}, "memex", "_MEMEX_COMPLETE")
    script = source.source_template % source.source_vars()  # source() would start bash to ask for its version
    folder, file, more = KEEP[shell]
    text = f"{script.strip()}\n\n# To keep it: mkdir -p {folder} && memex completion {shell} > {folder}/{file}{more}"
    print_answer({"shell": shell, "script": text}, lambda: text)


def workspaces(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of workspaces; without a daemon, the names of the folders in the inbox."""
    rows = _ask_daemon(ctx, "workspace.list", {})
    names = _workspace_folders(_load_settings(ctx)) if rows is None else (row["name"] for row in rows)
    return _matching_items(((name, "") for name in names), typed)


def vaults(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of the known vaults with their folders."""
    known = known_vaults(os.environ)
    return _matching_items(((vault_name(vault, known), str(vault.path)) for vault in known), typed)


def models(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of the models that Memex knows, with their languages."""
    from index.encoders.model_presets import PRESETS  # noqa: PLC0415 - only this completion needs it

    return _matching_items(((preset.name, preset.languages) for preset in PRESETS), typed)


def keys(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of keys that are not revoked."""
    rows = _ask_daemon(ctx, "key.list", {}) or []
    return _matching_items(((row["name"], ",".join(row["scopes"])) for row in rows if not row.get("revoked_at")), typed)


def collections(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of collections."""
    chosen = _load_settings(ctx)
    return _matching_items(((name, "") for name in (chosen.kb.all_collections if chosen else COLLECTIONS)), typed)


def files(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Files and folders, which the shell itself completes."""
    return [CompletionItem(typed, type="file")]


def jobs(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of scheduled jobs, as one word each."""
    rows = _ask_daemon(ctx, "job.list", {}) or []
    return _matching_items(((shell_word(row["name"]), "") for row in rows), typed)


def queued_jobs(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Ids of the newest queued jobs that the command applies to, with their titles."""
    asked = {"limit": NEWEST, "status": {"retry": "failed", "cancel": "queued"}.get(str(ctx.info_name))}
    rows = (_ask_daemon(ctx, "queue.list", asked) or {}).get("jobs", ())
    return _matching_items(
        ((row["id"], result_text.line(f"{row['status']}: {row['title']}", 60)) for row in rows), typed
    )


def captures(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of the newest captures, or their ids if the typed text begins an id."""
    rows = _ask_daemon(ctx, "recent", {"limit": NEWEST}) or []
    return _note_items([(row["id"], row["path"]) for row in rows], typed)


def promoted_notes(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of the latest promoted notes."""
    rows = _ask_daemon(ctx, "promoted", {"limit": NEWEST}) or []
    return _note_items([(row["id"], row["target"]) for row in rows], typed)


def waiting_captures(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of the captures that wait for a decision."""
    rows = (_ask_daemon(ctx, "review.list", {"limit": NEWEST}) or {}).get("waiting", ())
    return _note_items([(row["id"], row["path"]) for row in rows], typed)


def archived_captures(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of archived captures."""
    rows = _ask_daemon(ctx, "archived", {"limit": NEWEST}) or []
    return _note_items([(row["id"], row["path"]) for row in rows], typed)


def _note_items(notes: Sequence[tuple[str, str]], typed: str) -> list[CompletionItem]:
    """Complete notes (id, path) by name; a name that is ambiguous or unsafe in a shell is replaced by the id.

    If the typed text begins an id, offer ids with the names as descriptions."""
    named = [(id, base_name(path).removesuffix(".md")) for id, path in notes]
    counts = Counter(fold(name) for _, name in named)
    items = []
    for id, name in named:
        is_usable = counts[fold(name)] == 1 and result_text.sanitize(name) == name and not name.startswith("-")
        if is_usable and fold(name).startswith(fold(typed)):
            items.append(CompletionItem(name, help=id))
        elif id.startswith(typed) and (typed or not is_usable):
            items.append(CompletionItem(id, help=result_text.line(name, 60)))
    return sorted(items, key=lambda item: fold(item.value))


def folders(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Folders of the vault, one level at a time."""
    chosen = _load_settings(ctx)
    above, slash, begun = typed.rpartition("/")
    if chosen is None or any(part in ("", ".", "..") for part in above.split("/") if slash):
        return []
    try:
        names = sorted(
            folder.name for folder in os.scandir(chosen.vault.path / above) if folder.is_dir(follow_symlinks=False)
        )
    except OSError:
        return []
    return [
        CompletionItem(f"{above}{slash}{folder}") for folder in names if folder.startswith(begun) and folder[0] != "."
    ]


def folders_outside_inbox(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Folders of the vault without the inbox, one level at a time."""
    chosen = _load_settings(ctx)
    inbox = "" if chosen is None else chosen.vault.inbox
    return [item for item in folders(ctx, parameter, typed) if not f"{item.value}/".startswith(f"{inbox}/")]


def nodes(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of entities of the named workspace, without names that contain hidden characters; letter case is ignored."""
    asked = {"typed": typed, "limit": NEWEST, "workspace": ctx.params.get("workspace")}
    rows = _ask_daemon(ctx, "node.names", asked) or []
    return [
        CompletionItem(row["name"], help=result_text.line(row["entity_type"], 60))
        for row in rows
        if result_text.sanitize(row["name"]) == row["name"]  # a shell prints the name as it is
    ]


def perspectives(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return the names of the perspectives of the named workspace with their prompts."""
    result = _ask_daemon(ctx, "perspective.list", {"workspace": ctx.params.get("workspace") or "default"}) or {}
    return _matching_items(((row["name"], row["prompt"]) for row in result.get("perspectives", ())), typed)


def _matching_items(words: Iterable[tuple[str, str]], typed: str) -> list[CompletionItem]:
    return [CompletionItem(word, help=about or None) for word, about in sorted(words) if word.startswith(typed)]


def _load_settings(ctx: click.Context) -> Settings | None:
    try:
        return load(ctx.find_root().meta.get(FLAGS, {}), os.environ)
    except MemexError:
        return None


def _ask_daemon(ctx: click.Context, operation: str, arguments: dict[str, Any]) -> Any:
    """Ask the daemon; None if there is no answer."""
    chosen = _load_settings(ctx)
    try:
        return None if chosen is None else control_socket.call(chosen.state, operation, arguments, timeout=PATIENCE_S)
    except MemexError:
        return None


def _workspace_folders(chosen: Settings | None) -> list[str]:
    if chosen is None:
        return []
    try:
        inbox = os.scandir(chosen.vault.path / chosen.vault.inbox)
    except OSError:
        return []
    with inbox:
        return [entry.name for entry in inbox if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")]
