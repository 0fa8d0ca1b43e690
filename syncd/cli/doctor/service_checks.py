"""Check the service for the doctor: the vault's unit is up to date, running, and starts at boot."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from syncd.cli.doctor.doctor import DoctorContext, Finding
from syncd.installation import unit_files
from syncd.installation.service_manager import USUAL, Systemd, agent_vault, find_manager, read_unit, serve_command


def check_service(context: DoctorContext) -> Iterator[Finding]:
    """Check the service that runs the daemon of this vault."""
    manager = find_manager("", sys.platform, context.environ)
    if not isinstance(manager, Systemd):
        agents = manager.folder.glob(f"{USUAL}*.plist")
        if not any(agent_vault(file) == str(context.vault) for file in agents):
            says = "not installed for this vault; the daemon stops when its terminal closes"
            yield Finding("service", "advice", says, "memex service install --now")
        return
    units = {file: text for file in sorted(manager.folder.glob(f"{USUAL}*.service")) if (text := read_unit(file))}
    mine = unit_files.vault_line(unit_files.systemd_unit(USUAL, ["/memex"], vault=str(context.vault)))
    for file, text in units.items():
        if unit_files.vault_line(text) == mine:
            yield from _check_unit(context, Systemd(file.stem, manager.folder), text)
            return
    if not manager.unavailable_reason():
        says = "not installed for this vault; the daemon stops when its terminal closes"
        yield Finding("service", "advice", says, "memex service install --now")


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
        yield Finding("service", "wrong", f"{manager.file.name} starts {program}, which does not exist", again)
        return
    wanted = unit_files.systemd_unit(manager.name, serve_command(context.settings), vault=str(context.vault))
    if _instructions(text) != _instructions(wanted):
        yield Finding(
            "service",
            "advice",
            f"{manager.file} differs from the file that this version of Memex writes for these settings",
            again,
        )
    if manager.unavailable_reason():
        yield Finding(
            "service", "ok", f"{manager.file.name} is installed, but this process can't reach its service manager"
        )
        return
    status = manager.state()
    if not status["active"]:
        says = f"{manager.file.name} is {status['state']}" + (f", {status['result']}" if status["result"] else "")
        yield Finding("service", "wrong", says, f"systemctl --user restart {manager.file.name}; memex service logs")
    elif not status["enabled"]:
        yield Finding("service", "advice", f"{manager.file.name} runs, but does not start automatically", again)
    elif status["lingers"] is False:
        says = f"{manager.file.name} runs only while you are logged in, and does not start at boot"
        yield Finding("service", "advice", says, "loginctl enable-linger")
    else:
        yield Finding("service", "ok", f"{manager.file.name} runs, restarted {status['restarts']} times")


SERVICE_CHECKS = (check_service,)
