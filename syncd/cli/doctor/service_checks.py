"""Check the settings for the doctor, who can change them and whether the daemon runs with them, and the service that runs it."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from index.errors import MemexError
from syncd.cli.doctor.doctor import ASKED_S, DoctorContext, Finding, quote_path, restrict_mode
from syncd.daemon import control_socket
from syncd.installation import unit_files
from syncd.installation.service_manager import USUAL, Systemd, agent_vault, find_manager, read_unit, serve_command
from syncd.settings.effective_settings import effective_settings

NOT_INSTALLED: Final = Finding(
    "advice", "not installed for this vault; the daemon stops when its terminal closes", "memex service install --now"
)


def check_settings(context: DoctorContext) -> Iterator[Finding]:
    """Check that other users can't write the settings file."""
    file = context.settings.file
    if file is None:
        yield Finding("ok", "no settings file; flags, environment variables and defaults apply")
        return
    info = file.stat()
    if info.st_mode & 0o022:
        fix = partial(restrict_mode, file, stat.S_IMODE(info.st_mode) & ~0o022) if info.st_uid == os.geteuid() else None
        yield Finding("wrong", f"other users can write {file}", f"chmod go-w {quote_path(file)}", fix)
    else:
        yield Finding("ok", str(file))


def check_settings_in_use(context: DoctorContext) -> Iterator[Finding]:
    """Check that the daemon runs with the settings of the file, which it reads only when it starts."""
    if context.daemon is None:
        return
    with suppress(MemexError):  # `check_daemon` reports a daemon that does not answer
        answer = control_socket.call(context.state, "settings.list", {}, timeout=ASKED_S)
        theirs = {row["name"]: row for row in answer["settings"] if _is_comparable(row)}
        ours = {row["name"]: row for row in effective_settings(context.settings) if _is_comparable(row)}
        names = [name for name in ours if name in theirs and ours[name]["value"] != theirs[name]["value"]]
        if names:
            says = f"the daemon runs with other values of {', '.join(names)}, because these settings changed after its start"
            yield Finding("advice", says, "memex stop; memex serve", check="settings")


def _is_comparable(setting: Mapping[str, Any]) -> bool:
    """Return whether a setting is the daemon's, and from the file or a default: a command may have other flags and variables."""
    return not setting["name"].startswith("page.") and not setting["origin"].startswith(("--", "MEMEX_"))


def check_service(context: DoctorContext) -> Iterator[Finding]:
    """Check the service that runs the daemon of this vault."""
    manager = find_manager("", sys.platform, context.environ)
    if not isinstance(manager, Systemd):
        agents = manager.folder.glob(f"{USUAL}*.plist")
        if not any(agent_vault(file) == str(context.vault) for file in agents):
            yield NOT_INSTALLED
        return
    units = {file: text for file in sorted(manager.folder.glob(f"{USUAL}*.service")) if (text := read_unit(file))}
    mine = unit_files.vault_line(unit_files.systemd_unit(USUAL, ["/memex"], vault=str(context.vault)))
    for file, text in units.items():
        if unit_files.vault_line(text) == mine:
            yield from _check_unit(context, Systemd(file.stem, manager.folder), text)
            return
    if not manager.unavailable_reason():
        yield NOT_INSTALLED


def _instructions(unit: str) -> list[str]:
    """Return the lines of a unit file without its comments and description, whose words differ between versions of Memex."""
    described = (line for line in unit.split("\n") if line and not line.startswith(("#", ";")))
    return [line for line in described if not line.startswith("Description=") or line.endswith("\\")]


def _check_unit(context: DoctorContext, manager: Systemd, text: str) -> Iterator[Finding]:
    name = manager.name.removeprefix(f"{USUAL}-")
    again = "memex service install --now" + ("" if name == USUAL else f" --name {name}")
    start = next((line for line in text.splitlines() if line.startswith("ExecStart=")), "ExecStart=nothing")
    program = Path(shlex.split(start.removeprefix("ExecStart="))[0].replace("%%", "%"))
    if not program.exists():
        yield Finding("wrong", f"{manager.file.name} starts {program}, which does not exist", again)
        return
    wanted = unit_files.systemd_unit(manager.name, serve_command(context.settings), vault=str(context.vault))
    if _instructions(text) != _instructions(wanted):
        yield Finding(
            "advice",
            f"{manager.file} differs from the file that this version of Memex writes for these settings",
            again,
        )
    if manager.unavailable_reason():
        yield Finding("ok", f"{manager.file.name} is installed, but this process can't reach its service manager")
        return
    status = manager.state()
    if not status["active"]:
        says = f"{manager.file.name} is {status['state']}" + (f", {status['result']}" if status["result"] else "")
        yield Finding("wrong", says, f"systemctl --user restart {manager.file.name}; memex service logs")
    elif not status["enabled"]:
        yield Finding("advice", f"{manager.file.name} runs, but does not start automatically", again)
    elif status["lingers"] is False:
        says = f"{manager.file.name} runs only while you are logged in, and does not start at boot"
        yield Finding("advice", says, "loginctl enable-linger")
    else:
        yield Finding("ok", f"{manager.file.name} runs, restarted {status['restarts']} times")


SETTINGS_CHECKS = (check_settings, check_settings_in_use)
SERVICE_CHECKS = (check_service,)
