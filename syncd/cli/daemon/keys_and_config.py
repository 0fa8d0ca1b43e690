"""Define the commands for access and configuration: `workspace`, `key` and `config`."""

from __future__ import annotations

import json
import shlex
from typing import Any

import click

from index.errors import InvalidArgument, NotFound
from index.names import did_you_mean
from index.timings import now_ms
from syncd.cli.framework.arguments import (
    UNITS,
    YES,
    check_workspace,
    confirm,
    name_argument,
    parse_time,
)
from syncd.cli.framework.commands import Command, Group, ask, has_color, load_settings, print_answer, print_message
from syncd.cli.framework.completion import keys, workspaces
from syncd.cli.terminal import result_text
from syncd.settings.effective_settings import effective_settings
from syncd.settings.settings import Settings
from syncd.state.folder import holds_key


@click.group(cls=Group)
def workspace() -> None:
    """Manage workspaces: folders of the inbox that share nothing with each other."""


@workspace.command("create")
@name_argument("workspace")
def workspace_create(name: str) -> None:
    """Create the workspace NAME."""
    made = ask("workspace.create", {"name": name})
    print_answer(made, lambda: f"created {name}" if made["created"] else f"{name} exists already")


@workspace.command("list")
@click.option("--notes", is_flag=True, help="Show how many notes each has.")
def workspace_list(*, notes: bool) -> None:
    """List the workspaces.

    With --json: [{"name"}], and with --notes [{"name", "notes"}]."""
    rows = ask("workspace.count" if notes else "workspace.list", {})
    if notes:
        cells = [(row["name"], f"{row['notes']:,}") for row in rows]
        print_answer(rows, lambda: result_text.table(cells, ("workspace", "notes"), color=has_color()))
        return
    print_answer(rows, lambda: "\n".join(row["name"] for row in rows) or "no workspaces")


@workspace.command("delete")
@click.argument("name", shell_complete=workspaces)
@YES
def workspace_delete(name: str, yes: bool) -> None:
    """Delete the workspace NAME, which must be empty."""
    if not yes:
        check_workspace(ask, name)  # first, so that nobody confirms a name that is unknown
        confirm(f"Delete the workspace {result_text.line(name)} and its perspectives?", yes=yes)
    gone = ask("workspace.delete", {"name": name})
    print_answer(gone, lambda: f"deleted {name}; to create it again, empty: memex workspace create {shlex.quote(name)}")


@click.group(cls=Group)
def key() -> None:
    """Manage the keys that agents use to connect."""


@key.command("create")
@name_argument("key")
@click.option(
    "--workspace",
    "-w",
    "names",
    multiple=True,
    shell_complete=workspaces,
    help="A workspace that the key may access; repeat for several.",
)
@click.option("--all-workspaces", is_flag=True, help="Let the key access every workspace, including later ones.")
@click.option("--namespace", help="Limit the key to this namespace of its workspaces, without the graph.")
@click.option("--scopes", default="read,write", show_default=True, help="The rights of the key: read, write, admin.")
@click.option("--expires", metavar="TIME", help="When the key expires, such as 2027-01-31, or 30d from now.")
def key_create(
    names: tuple[str, ...], all_workspaces: bool, scopes: str, expires: str | None, **fields: str | None
) -> None:
    """Create the key NAME, and print it: Memex shows it only now."""
    if bool(names) == all_workspaces:
        raise InvalidArgument("choose the workspaces that the key may access: --workspace NAME, or --all-workspaces")
    asked = {
        **fields,
        "workspaces": None if all_workspaces else list(names),
        "scopes": [scope.strip() for scope in scopes.split(",") if scope.strip()],
        "expires_at": parse_expiry(expires, now_ms()),
    }
    made = ask("key.create", asked)
    print_answer({"name": made["name"], "key": made["key"]}, lambda: str(made["key"]))


@key.command("list")
def key_list() -> None:
    """List the keys, without their secrets."""
    records = ask("key.list", {})
    print_answer(
        records,
        lambda: result_text.table(
            [_key_row(record, now_ms()) for record in records],
            ("name", "id", "scopes", "workspaces", "state", "last used"),
            color=has_color(),
        ),
    )


@key.command("revoke")
@click.argument("name", shell_complete=keys)
@YES
def key_revoke(name: str, yes: bool) -> None:
    """Revoke the key NAME (or its id) immediately and permanently."""
    if not yes:
        meant = _find_key(name)  # first, so that nobody confirms a name that is unknown
        confirm(f"Revoke the key {result_text.line(meant['name'])} ({meant['id']}) permanently?", yes=yes)
        name = meant["id"]
    gone = ask("key.revoke", {"name": name})
    command = "memex key reset" if holds_key(load_settings().state, gone["id"]) else "memex key create"
    print_answer(gone, lambda: f"revoked {result_text.line(gone['name'])} ({gone['id']}); to create another: {command}")


def _find_key(name: str) -> dict[str, Any]:
    """Return the key with this name or id; if several have the name, the live one. Raises NotFound."""
    keys = ask("key.list", {})
    named = [key for key in keys if name in (key["id"], key["name"])]
    if not named:
        near = did_you_mean(name, [key["name"] for key in keys])
        raise NotFound(f"no key {name!r}{near or ';'} `memex key list` shows all keys")
    return min(named, key=lambda key: (key["revoked_at"] is not None, -(key.get("created_at") or 0)))


@key.command("rotate")
@click.argument("name")
@click.option(
    "--overlap",
    default="24h",
    show_default=True,
    metavar="TIME",
    help="How long the old secret keeps working; 0s ends it immediately.",
)
@click.option(
    "--expires", metavar="TIME", help="When the key expires, such as 2027-01-31, or 30d from now. Default: unchanged."
)
def key_rotate(name: str, overlap: str, expires: str | None) -> None:
    """Give the key NAME a new secret, and print it: Memex shows it only now. Name and rights stay."""
    began = now_ms()
    good_until = began if overlap.strip() == "0" else parse_expiry(overlap, began)
    made = ask(
        "key.rotate",
        {"name": name, "overlap_ms": (good_until or began) - began, "expires_at": parse_expiry(expires, began)},
    )
    old = f"works until {result_text.format_time(made['old_until'], None)}" if made["old_until"] else "no longer works"
    print_message(f"memex: the old secret of {made['name']} {old}")
    print_answer(made, lambda: str(made["key"]))


@key.command("reset")
@YES
def key_reset(yes: bool) -> None:
    """Replace the owner's key: works even if no daemon runs, the vault is missing or the ledger is damaged.

    A damaged ledger is renamed and kept beside the new one, with the audit log and the queue inside it. In this case the
    daemon must not run, and agents need new keys. With --json: {"key_file", "set_aside"}."""
    from syncd.installation.vault_setup import reset_owner_key  # noqa: PLC0415 - it brings the vault's parts, which no other command here needs

    chosen = load_settings()
    confirm(
        f"Replace the owner's key of {result_text.line(str(chosen.vault.path), 300)}? The old key stops working.",
        yes=yes,
    )
    key_file, set_aside = reset_owner_key(chosen.state, now=now_ms())
    lines = [f"your new key is in {key_file}", *(f"the damaged file is kept in {path}" for path in set_aside)]
    if set_aside:
        lines.append("agents need new keys: memex key create")
    answer = {"key_file": str(key_file), "set_aside": [str(path) for path in set_aside]}
    print_answer(answer, lambda: "\n".join(lines))


@key.command("history")
def key_history() -> None:
    """List the history of the keys: created, renamed, rotated, revoked, reset."""
    events = ask("key.history", {})
    rows = [
        (result_text.format_time(event["at"], None), event["event"], event["name"], event["id"]) for event in events
    ]
    print_answer(events, lambda: result_text.table(rows, ("at", "event", "name", "id"), color=has_color()))


@click.command(cls=Command)
@click.option(
    "--open", "open_", is_flag=True, help="Open the settings file in the program that the desktop uses for it."
)
def config(*, open_: bool) -> None:
    """Show every setting with its value, its source and its meaning.

    With --json: [{"name", "value", "origin", "type", "doc"}], and with --open {"file", "opened"}."""
    chosen = load_settings()
    if open_:
        _open_settings_file(chosen)
        return
    rows = effective_settings(chosen)
    print_answer(rows, lambda: "\n".join(_format_settings(chosen, rows)))


def _open_settings_file(chosen: Settings) -> None:
    from syncd.page.web.desktop import can_open_files, open_file  # noqa: PLC0415 - no other command needs a part of the page

    if chosen.file is None:
        raise NotFound("Memex uses no settings file: write ~/.config/memex/config.toml, or name a file with --config")
    opened = can_open_files() and open_file(chosen.file)
    shown = f"opened {chosen.file}" if opened else f"no desktop to open it with; the file is {chosen.file}"
    print_answer({"file": str(chosen.file), "opened": opened}, lambda: shown)


def parse_expiry(text: str | None, now_ms: int) -> int | None:
    """Convert a date, or a span such as `30d` from now, to epoch milliseconds."""
    then = parse_time(text, now_ms)
    return 2 * now_ms - then if then is not None and text and text.strip()[-1:] in UNITS else then


def _format_settings(chosen: Settings, rows: list[dict[str, Any]]) -> list[str]:
    lines = [f"# settings file: {chosen.file or 'none'}"]
    for row in rows:
        lines += ["", f"# {row['doc']} ({row['type']}; {row['origin']})"]
        lines.append(
            f"{row['name']} = {json.dumps(row['value'], ensure_ascii=False)}"
            if row["value"] is not None
            else f"# {row['name']} is unset"
        )
    return lines


def _key_row(key: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    seen = key.get("workspaces")
    used = result_text.format_time(key["last_used_at"], None) if key.get("last_used_at") else "never"
    where = "all" if seen is None else ",".join(seen)
    where += f" (namespace {key['namespace']})" if key.get("namespace") else ""
    return key["name"], key["id"], ",".join(key["scopes"]), where, result_text.format_key_state(key, now_ms), used
