"""Define the commands for access and configuration: `workspace`, `key` and `config`."""

from __future__ import annotations

import json
from typing import Any

import click

from index.errors import InvalidArgument
from syncd.cli.framework.arguments import UNITS, YES, confirm, parse_time
from syncd.cli.framework.commands import Command, Group, ask, has_color, load_settings, now, print_answer, print_message
from syncd.cli.framework.completion import keys, workspaces
from syncd.cli.terminal import result_text
from syncd.settings.settings import FIELDS, SECTIONS, Settings, all_settings


@click.group(cls=Group)
def workspace() -> None:
    """The workspaces of the inbox: folders that nothing crosses."""


@workspace.command("create")
@click.argument("name")
def workspace_create(name: str) -> None:
    """Make the workspace NAME."""
    made = ask("workspace.create", {"name": name})
    print_answer(made, lambda: f"created {name}")


@workspace.command("list")
def workspace_list() -> None:
    """List the workspaces."""
    rows = ask("workspace.list", {})
    print_answer(
        rows, lambda: "\n".join(row["name"] if isinstance(row, dict) else str(row) for row in rows) or "no workspaces"
    )


@workspace.command("delete")
@click.argument("name", shell_complete=workspaces)
@YES
def workspace_delete(name: str, yes: bool) -> None:
    """Remove the workspace NAME, which must be empty."""
    confirm(f"Delete the workspace {result_text.line(name)}, with its perspectives?", yes=yes)
    gone = ask("workspace.delete", {"name": name})
    print_answer(gone, lambda: f"deleted {name}; `memex workspace create` makes it again, empty")


@click.group(cls=Group)
def key() -> None:
    """The keys with which agents come in."""


@key.command("create")
@click.option("--name", required=True, help="What you know it by, such as the agent's name.")
@click.option(
    "--workspace",
    "-w",
    "names",
    multiple=True,
    shell_complete=workspaces,
    help="A workspace it may see; repeat for several.",
)
@click.option("--all-workspaces", is_flag=True, help="It may see every workspace, also those made later.")
@click.option("--namespace", help="It sees this namespace of its workspaces alone, and no graph.")
@click.option("--scopes", default="read,write", show_default=True, help="Of read, write and admin.")
@click.option("--expires", metavar="TIME", help="When it ends: 2027-01-31, or 30d from now.")
def key_create(
    names: tuple[str, ...], all_workspaces: bool, scopes: str, expires: str | None, **fields: str | None
) -> None:
    """Make a key; it is shown this once."""
    if bool(names) == all_workspaces:
        raise InvalidArgument("say which workspaces the key may see: --workspace NAME, or --all-workspaces")
    asked = {
        **fields,
        "workspaces": None if all_workspaces else list(names),
        "scopes": [scope.strip() for scope in scopes.split(",") if scope.strip()],
        "expires_at": parse_expiry(expires, now()),
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
            [_key_row(record, now()) for record in records],
            ("name", "id", "scopes", "workspaces", "state", "last used"),
            color=has_color(),
        ),
    )


@key.command("revoke")
@click.argument("name", shell_complete=keys)
@YES
def key_revoke(name: str, yes: bool) -> None:
    """End the key NAME (or its id), at once and for good."""
    confirm(f"End the key {result_text.line(name)} for good?", yes=yes)
    gone = ask("key.revoke", {"name": name})
    print_answer(
        gone, lambda: f"revoked {result_text.line(gone['name'])} ({gone['id']}); `memex key create` makes another"
    )


@key.command("rotate")
@click.argument("name")
@click.option(
    "--overlap",
    default="24h",
    show_default=True,
    metavar="TIME",
    help="How long the old secret stays good; 0s ends it at once.",
)
@click.option("--expires", metavar="TIME", help="When the key ends: 2027-01-31, or 30d from now; else as before.")
def key_rotate(name: str, overlap: str, expires: str | None) -> None:
    """Give the key NAME a new secret, which is shown this once; its name and rights stay."""
    began = now()
    good_until = began if overlap.strip() == "0" else parse_expiry(overlap, began)
    made = ask(
        "key.rotate",
        {"name": name, "overlap_ms": (good_until or began) - began, "expires_at": parse_expiry(expires, began)},
    )
    old = f"good until {result_text.format_time(made['old_until'], None)}" if made["old_until"] else "no longer good"
    print_message(f"memex: the old secret of {made['name']} is {old}")
    print_answer(made, lambda: str(made["key"]))


@key.command("reset")
@YES
def key_reset(yes: bool) -> None:
    """Make a new owner's key and end the old one, also when no daemon runs, the vault is away or the ledger is damaged.

    A damaged ledger is set aside beside the new one, with the audit log and the queue that it holds; the daemon must not
    run then, and agents need new keys. With --json: {"key_file", "set_aside"}."""
    from syncd.installation.vault_setup import reset_owner_key  # noqa: PLC0415 - it brings the vault's parts, which no other command here needs

    chosen = load_settings()
    confirm(f"End the owner's key of {result_text.line(str(chosen.vault.path), 300)}, and make another?", yes=yes)
    done = reset_owner_key(chosen.state, now=now())
    lines = [f"your new key is in {done.key_file}", *(f"what was damaged is kept in {path}" for path in done.set_aside)]
    if done.set_aside:
        lines.append("agents need new keys: memex key create")
    answer = {"key_file": str(done.key_file), "set_aside": [str(path) for path in done.set_aside]}
    print_answer(answer, lambda: "\n".join(lines))


@key.command("history")
def key_history() -> None:
    """List what became of keys: created, rotated, revoked, reset."""
    events = ask("key.history", {})
    rows = [
        (result_text.format_time(event["at"], None), event["event"], event["name"], event["id"]) for event in events
    ]
    print_answer(events, lambda: result_text.table(rows, ("at", "what", "name", "id"), color=has_color()))


@click.command(cls=Command)
def config() -> None:
    """Show every setting: its value, where it was set, and what it means."""
    chosen = load_settings()
    rows = effective_settings(chosen)
    print_answer(rows, lambda: "\n".join(_format_settings(chosen, rows)))


def parse_expiry(text: str | None, now_ms: int) -> int | None:
    """Epoch milliseconds of a date, or of `30d` from now."""
    then = parse_time(text, now_ms)
    return 2 * now_ms - then if then is not None and text and text.strip()[-1:] in UNITS else then


def effective_settings(chosen: Settings) -> list[dict[str, Any]]:
    """Every setting with its value in force and its origin; secrets are left out."""
    rows = []
    for name, setting in all_settings().items():
        section, _, field = name.rpartition(".")
        value = getattr(getattr(chosen, FIELDS.get(section, section)), field) if section in SECTIONS else chosen.state
        shown = "…" if setting.secret and value else value
        rows.append(
            {
                "name": name,
                "value": json.loads(json.dumps(shown, default=str)),
                "origin": chosen.origins.get(name, "default"),
                "type": setting.type,
                "doc": setting.doc,
            }
        )
    return rows


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
