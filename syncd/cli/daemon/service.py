"""Define the command `service`: install the daemon as a systemd unit or launchd agent, show its state and log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from index.errors import NotFound, Unavailable
from syncd.cli.framework.commands import (
    Group,
    flags,
    load_settings,
    print_answer,
    print_message,
    require_set_up,
    set_flag,
)
from syncd.settings.known_vaults import default_settings_file

if TYPE_CHECKING:
    from syncd.installation.service_manager import Launchd, Systemd

# ruff: noqa: PLC0415 - only these commands import the code for service managers, so that all others start quickly
LINGER = "the service runs while you are logged in; to start it at boot: loginctl enable-linger"
NAME = click.option("--name", default="", help="The service, if several vaults have one each: work means memex-work.")
Facts = dict[str, Any]


@click.group(cls=Group)
def service() -> None:
    """Run the daemon as a service of systemd or launchd, which starts it at login and restarts it after a crash."""


@service.command("install")
@click.argument("vault", required=False, type=click.Path(file_okay=False))
@NAME
@click.option("--now", is_flag=True, help="Also start the service now, or restart it with the new file.")
@click.option(
    "--harden",
    is_flag=True,
    help="Also limit the service to the vault, its Git repository and the state folder, if the system can; starts it.",
)
@click.option("--file-only", is_flag=True, help="Only write the file, and print the commands to run.")
def service_install(vault: str | None, name: str, now: bool, harden: bool, file_only: bool) -> None:
    """Install the service for the vault, so that the daemon starts at every login."""
    from syncd.installation.service_manager import Systemd, find_manager, serve_command, wait_until_active

    set_flag("vault.path", vault)
    chosen = load_settings()
    require_set_up(chosen)
    manager = find_manager(name, sys.platform, os.environ)
    if not file_only and (why := manager.unavailable_reason()):
        raise Unavailable(why, retryable=False)
    manager.write(serve_command(chosen), chosen.vault.path)
    file = chosen.file or default_settings_file(os.environ)
    for variable in sorted({text for text in chosen.origins.values() if text.startswith("MEMEX_") and "__" in text}):
        print_message(f"memex: the service does not see {variable} of this shell: set it in {file}")
    if file_only:
        run = manager.manual_commands()
        written = {"file": str(manager.file), "run": run}
        print_answer(written, lambda: "\n".join([f"wrote {manager.file}", "now run:", *(f"  {text}" for text in run)]))
        return
    manager.enable(start=now or harden)
    status: Facts = {"file": str(manager.file)}
    if harden:
        status["hardened"] = isinstance(manager, Systemd) and manager.harden(chosen.vault.path, chosen.state)
        if not status["hardened"]:
            print_message("memex: this system does not support the hardening options, so the service runs without them")
    status |= wait_until_active(manager, 30.0) if now or harden else manager.state()
    if status.get("lingers") is False:
        print_message(f"memex: {LINGER}")
    print_answer(status, lambda: _format_status(status))


@service.command("uninstall")
@NAME
def service_uninstall(name: str) -> None:
    """Stop the service and remove its file; the vault, the index and the keys stay.

    The command refuses a file that Memex did not write and, with --vault, the service of another vault."""
    from syncd.installation.service_manager import require_own_file

    manager = _installed_manager(name)
    require_own_file(manager, load_settings().vault.path if "vault.path" in flags() else None)
    manager.remove()
    print_answer(
        {"file": str(manager.file), "removed": True}, lambda: f"removed {manager.file}; notes, index and keys stay"
    )


@service.command("status")
@NAME
def service_status(name: str) -> int:
    """Show the state of the service, as its manager reports it; exit with 7 if it does not run."""
    manager = _installed_manager(name)
    if why := manager.unavailable_reason():
        raise Unavailable(why, retryable=False)
    status = {"file": str(manager.file), **manager.state()}
    print_answer(status, lambda: _format_status(status))
    return 0 if status["active"] else 7


@service.command("logs")
@NAME
@click.option(
    "--lines", "-n", type=click.IntRange(1), default=50, show_default=True, help="The number of newest lines to show."
)
@click.option("--follow", "-f", is_flag=True, help="Keep printing new lines.")
def service_logs(name: str, lines: int, follow: bool) -> int:
    """Show the log of the service."""
    import subprocess

    words = _installed_manager(name).log_command(lines, follow=follow)
    try:
        return subprocess.run(words, check=False).returncode
    except FileNotFoundError:
        raise NotFound(f"the command {words[0]} is not installed") from None


def _installed_manager(name: str) -> Systemd | Launchd:
    from syncd.installation.service_manager import find_manager

    manager = find_manager(name, sys.platform, os.environ)
    if not manager.file.exists():
        raise NotFound(f"no service is installed ({manager.file} is missing); to install it: memex service install")
    return manager


def _format_status(status: Facts) -> str:
    lines: list[tuple[str, Callable[[Any], str]]] = [
        ("file", str),
        ("state", str),
        ("says", str),
        ("pid", str),
        ("restarts", lambda count: str(count) if count else ""),
        ("result", lambda how: "" if how in ("success", "0") else str(how)),
        ("enabled", lambda yes: "at every login" if yes else "no, it starts only manually"),
        ("hardened", lambda yes: "vault, its repository and state folder only" if yes else ""),
    ]
    rows = [(name, text(status[name])) for name, text in lines if status.get(name) is not None]
    return "\n".join(f"{name:9} {text}" for name, text in rows if text)
