"""Register the daemon with the user's service manager: the systemd user manager, or launchd.

Law: this module writes and removes only the files that define the service, never the vault, its index or its keys."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from syncd.git.repository_folder import find_common_folder, find_git_folder, find_repository_around
from syncd.installation import unit_files
from syncd.settings.settings import Settings
from syncd.state.folder import expand_home, write_private

PATIENCE_S = 180.0  # timeout of a manager's command: `restart` returns only when the daemon is ready or has failed
# Longest wait for a hardened daemon: it may take OPENING_S of `syncd/daemon/service_watchdog.py` to start.
STARTING_S = 1_860.0
SHOWN = ("LoadState", "ActiveState", "SubState", "UnitFileState", "StatusText", "MainPID", "NRestarts", "Result")
USUAL = "memex"


class CommandSlow(Unavailable):
    """Reports that a manager's command has not returned in time; what it asked for may still happen."""


@dataclass(frozen=True, slots=True)
class Systemd:
    """Manages a unit of the systemd user manager."""

    name: str
    folder: Path  # of the user's units

    @property
    def file(self) -> Path:
        """Return the path of the unit file."""
        return self.folder / f"{self.name}.service"

    @property
    def drop_in(self) -> Path:
        """Return the path of the drop-in file with stricter sandboxing."""
        return self.folder / f"{self.name}.service.d" / "hardening.conf"

    def unavailable_reason(self) -> str:
        """Return why the systemd user manager can't be reached; "" when it answers."""
        if not shutil.which("systemctl"):
            return "this system has no systemd: start `memex serve` with the tools of this system"
        done = _run("systemctl", "--user", "show", "--property=Version")
        if done.returncode == 0:
            return ""
        return (
            f"the systemd of this user can't be reached ({_error_line(done)}): log in as this user itself, or turn it on with "
            f"`loginctl enable-linger`; to only write the unit: --file-only"
        )

    def is_of_memex(self, vault: Path | None) -> bool:
        """Return whether Memex wrote the unit, for this vault (None: for any)."""
        line = unit_files.vault_line(read_unit(self.file))
        return bool(line) if vault is None else line == f"{unit_files.VAULT}{unit_files.quote(str(vault))}"

    def write(self, command: Sequence[str], vault: Path) -> None:
        """Write the unit, which runs this command. Raises Conflict when its file belongs to another vault."""
        text = unit_files.systemd_unit(self.name, command, vault=str(vault))
        if self.file.exists():
            require_own_file(self, vault)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_private(self.file, text)

    def enable(self, *, start: bool) -> None:
        """Reload the units and enable this one; with `start`, also restart it now."""
        self._run_checked("daemon-reload")
        self._run_checked("enable", self.file.name)
        if start:
            self._restart()

    def harden(self, vault: Path, state: Path) -> bool:
        """Add the hardening drop-in and restart; remove it again if the restart fails. Return whether it was kept."""
        self.drop_in.parent.mkdir(parents=True, exist_ok=True)
        write_private(self.drop_in, unit_files.hardening_drop_in(_writable_folders(vault, state)))
        self._run_checked("daemon-reload")
        with suppress(CommandSlow):
            if _run("systemctl", "--user", "restart", self.file.name, within_s=STARTING_S).returncode == 0:
                return True
        self._remove_drop_in()
        self._run_checked("daemon-reload")
        self._restart()
        return False

    def remove(self) -> None:
        """Stop the unit, disable it and remove its files; works without a running manager too."""
        if not self.unavailable_reason():
            self._run_checked("disable", "--now", self.file.name)
        (self.folder / "default.target.wants" / self.file.name).unlink(missing_ok=True)
        self._remove_drop_in()
        self.file.unlink(missing_ok=True)
        if not self.unavailable_reason():
            self._run_checked("daemon-reload")

    def state(self) -> dict[str, Any]:
        """Return the unit's state as `systemctl show` reports it: at least `state` and `active`, as for launchd."""
        done = _run("systemctl", "--user", "show", f"--property={','.join(SHOWN)}", self.file.name)
        properties = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        return {
            "state": f"{properties.get('ActiveState', 'unknown')} ({properties.get('SubState', '?')})",
            "active": properties.get("ActiveState") == "active",
            "enabled": properties.get("UnitFileState") == "enabled",
            "says": properties.get("StatusText", ""),
            "pid": int(properties.get("MainPID") or 0) or None,
            "restarts": int(properties.get("NRestarts") or 0),
            "result": properties.get("Result", ""),
            "hardened": self.drop_in.exists(),
            "lingers": self.is_lingering(),
        }

    def is_lingering(self) -> bool | None:
        """Return whether the user's services run while the user is not logged in; None when that is unknown."""
        if not shutil.which("loginctl"):
            return None
        done = _run("loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value")
        return done.stdout.strip() == "yes" if done.returncode == 0 else None

    def log_command(self, lines: int, *, follow: bool) -> list[str]:
        """Return the command that shows the journal of the unit."""
        words = ["journalctl", "--user", "--unit", self.file.name, "--lines", str(lines)]
        return [*words, "--follow"] if follow else [*words, "--no-pager"]

    def manual_commands(self) -> list[str]:
        """Return the systemctl commands that enable and start the unit."""
        return ["systemctl --user daemon-reload", f"systemctl --user enable --now {self.file.name}"]

    def _restart(self) -> None:
        with suppress(CommandSlow):  # a long start is no failure: systemd goes on with it, and `state` reports it
            self._run_checked("restart", self.file.name)

    def _remove_drop_in(self) -> None:
        self.drop_in.unlink(missing_ok=True)
        if self.drop_in.parent.is_dir() and not any(self.drop_in.parent.iterdir()):
            self.drop_in.parent.rmdir()

    def _run_checked(self, *words: str) -> None:
        done = _run("systemctl", "--user", *words)
        if done.returncode:
            raise Unavailable(
                f"systemctl {' '.join(words)} failed: {_error_line(done)}; for details: memex service logs"
            )


@dataclass(frozen=True, slots=True)
class Launchd:
    """Manages a launchd agent of macOS."""

    name: str
    folder: Path  # of the user's agents
    log: Path

    @property
    def file(self) -> Path:
        """Return the path of the property list."""
        return self.folder / f"{self.name}.plist"

    def unavailable_reason(self) -> str:
        """Return why launchd is unavailable; "" when its command is installed."""
        return "" if shutil.which("launchctl") else "this system has no launchd; to only write the file: --file-only"

    def is_of_memex(self, vault: Path | None) -> bool:
        """Return whether Memex wrote the agent, for this vault (None: for any)."""
        theirs = agent_vault(self.file)
        return bool(theirs) if vault is None else theirs == str(vault)

    def write(self, command: Sequence[str], vault: Path) -> None:
        """Write the agent, which runs this command. Raises Conflict when its file belongs to another vault."""
        kept = {"PATH": os.environ["PATH"]} if "PATH" in os.environ else {}  # Git may be installed by Homebrew
        text = unit_files.launchd_agent(
            self.name, command, log=str(self.log), environment=kept | {"MEMEX_VAULT": str(vault)}
        )
        if self.file.exists():
            require_own_file(self, vault)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        write_private(self.file, text.decode())

    def enable(self, *, start: bool) -> None:
        """Load the agent with `start`, which also starts it; otherwise launchd loads it at the next login."""
        if start:
            _run("launchctl", "bootout", f"{_domain()}/{self.name}")  # the loaded agent, if any
            self._run_checked("bootstrap", _domain(), str(self.file))

    def remove(self) -> None:
        """Unload the agent and remove its file."""
        if not self.unavailable_reason():
            _run("launchctl", "bootout", f"{_domain()}/{self.name}")  # fails if it is not loaded, which is fine
        self.file.unlink(missing_ok=True)

    def state(self) -> dict[str, Any]:
        """Return the agent's state as `launchctl print` reports it."""
        done = _run("launchctl", "print", f"{_domain()}/{self.name}")
        fields = dict(line.strip().split(" = ", 1) for line in done.stdout.splitlines() if " = " in line)
        return {
            "state": fields.get("state", "not loaded"),
            "active": fields.get("state") == "running",
            "pid": int(fields.get("pid") or 0) or None,
            "result": fields.get("last exit code", ""),
        }

    def log_command(self, lines: int, *, follow: bool) -> list[str]:
        """Return the command that shows the log file."""
        return ["tail", "-n", str(lines), *(["-F"] if follow else []), str(self.log)]

    def manual_commands(self) -> list[str]:
        """Return the launchctl command that loads and starts the agent."""
        return [f"launchctl bootstrap {_domain()} {shlex.quote(str(self.file))}"]

    def _run_checked(self, *words: str) -> None:
        done = _run("launchctl", *words)
        if done.returncode:
            raise Unavailable(f"launchctl {words[0]} failed: {_error_line(done)}")


def require_own_file(manager: Systemd | Launchd, vault: Path | None) -> None:
    """Raise Conflict unless Memex wrote the file, for this vault (None: for any)."""
    if not manager.is_of_memex(vault):
        whose = "" if vault is None else f" for {vault}"
        raise Conflict(
            f"{manager.file} is not a service of Memex{whose}: choose another --name, or remove the file yourself"
        )


def serve_command(chosen: Settings) -> list[str]:
    """Return the command that the service runs.

    Its paths are absolute, so neither environment variables nor the working folder affect it."""
    script = Path(sys.executable).with_name("memex")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "syncd.cli"]
    named = ["--config", str(chosen.file)] if chosen.file else []
    return [*program, "serve", "--vault", str(chosen.vault.path), "--state", str(chosen.state), *named]


def find_manager(name: str, platform: str, environ: Mapping[str, str]) -> Systemd | Launchd:
    """Return the service manager of this platform for the service `name`; "" is the default name, `memex`.

    Raises InvalidArgument for a name with other characters than letters, digits and hyphens."""
    if name and not (name.isascii() and name.replace("-", "").isalnum() and len(name) <= 40 and name[0].isalpha()):
        raise InvalidArgument(f"a service's name has letters, digits and hyphens, not {name!r}")
    full = f"{USUAL}-{name}" if name else USUAL
    if platform == "darwin":
        home = Path("~").expanduser()
        return Launchd(full, home / "Library/LaunchAgents", home / "Library/Logs" / f"{full}.log")
    config = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Systemd(full, Path(config).expanduser() / "systemd/user")


def wait_until_active(manager: Systemd | Launchd, within_s: float) -> dict[str, Any]:
    """Wait at most `within_s` seconds for the service to become active, and return its last state."""
    end = time.monotonic() + within_s
    while not (state := manager.state())["active"] and time.monotonic() < end:
        time.sleep(0.2)
    return state


def _writable_folders(vault: Path, state: Path) -> list[str]:
    """Return the folders that the daemon writes: the vault, its state, and its repository's folders where they are outside the vault."""
    work_tree = vault
    if not os.path.lexists(vault / ".git"):
        work_tree = find_repository_around(vault) or vault  # a merge changes files beside the vault too
    folders = [vault, state]
    if (git := find_git_folder(work_tree)) is not None:
        home = Path(os.path.realpath(expand_home("~")))
        # A repository of settings files may have the home folder as its work tree.
        if not home.is_relative_to(os.path.realpath(work_tree)):
            folders.append(work_tree)
        folders.append(Path(os.path.realpath(find_common_folder(git))))
    kept: list[Path] = []
    for folder in folders:
        if not any(folder.is_relative_to(other) for other in kept):
            kept.append(folder)
    return [str(folder) for folder in kept]


def read_unit(file: Path) -> str:
    """Return the text of a unit; "" when it can't be read, or is not UTF-8 as the units of Memex are."""
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def agent_vault(file: Path) -> str:
    """Return the vault of a launchd agent; "" when the file can't be read or is not an agent of Memex."""
    import plistlib  # noqa: PLC0415 - only macOS needs it

    try:
        return str(plistlib.loads(file.read_bytes())["EnvironmentVariables"]["MEMEX_VAULT"])
    except (OSError, plistlib.InvalidFileException, KeyError, TypeError, ValueError):
        return ""


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _run(*words: str, within_s: float | None = None) -> subprocess.CompletedProcess[str]:
    patience_s = PATIENCE_S if within_s is None else within_s
    try:
        return subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=patience_s, check=False)
    except FileNotFoundError:
        raise NotFound(f"the command {words[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise CommandSlow(f"{json.dumps(words)} took longer than {patience_s:g} s") from None


def _error_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
    return lines[0]
