"""Compose the unit files for a service manager, as text: a systemd user unit, its hardening drop-in, a launchd agent.

Law, tested: the manager reads back every path unchanged, whatever characters it has."""

from __future__ import annotations

import plistlib
from collections.abc import Mapping, Sequence

from index.errors import InvalidArgument

ENVIRONMENT = {"PYTHONUNBUFFERED": "1", "GIT_TERMINAL_PROMPT": "0"}  # of a daemon that a service manager starts
# Each thread of glibc keeps freed memory for itself, seven blocks of each small size, and a daemon has some 60 threads; no call
# gives this memory back. Source: https://sourceware.org/glibc/manual/latest/html_node/Memory-Allocation-Tunables.html
LINUX_ENVIRONMENT = ENVIRONMENT | {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
VAULT = "X-MemexVault="  # begins the line of a unit that names its vault
UNIT = """\
# `memex service install` writes this file and overwrites changes to it. Put your own changes into a drop-in:
#   systemctl --user edit {unit}
[Unit]
Description={description}
X-MemexVault={vault}
# The vault may be on a disk that is mounted later, so systemd keeps retrying the start.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
Environment={environment}
SyslogIdentifier={identifier}
Restart=on-failure
RestartSec=10s
# Do not restart after errors that persist: usage, data, permissions, settings.
RestartPreventExitStatus=64 65 77 78
# Without a sign of life from the daemon, systemd aborts and restarts it, and the log shows where the daemon hung.
WatchdogSec=60s
TimeoutStartSec=120s
TimeoutStopSec=45s
KillMode=mixed
LimitCORE=0

# A user's systemd can enforce these limits without namespaces. hardening.conf adds the limits that need them.
NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
# The file converter confines itself with these calls, which some versions of systemd leave out of @system-service.
SystemCallFilter=landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp
SystemCallErrorNumber=EPERM

MemoryHigh=2G
MemoryMax=3G
TasksMax=512
LimitNOFILE=65536
OOMPolicy=stop

[Install]
WantedBy=default.target
"""

HARDENING = """\
# The daemon can write only to its vault, the vault's repository and its state folder. This needs user namespaces,
# which some systems forbid; `memex service install --harden` keeps this file only if the daemon starts with it. The
# vault's folder is pinned while the daemon runs: restart the service after you move or remount it.
[Service]
PrivateUsers=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
ProtectControlGroups=yes
ProtectKernelTunables=yes
ReadWritePaths={writable}
"""

_PLAIN = {"\\": "\\\\", '"': '\\"', "%": "%%"}
_CONTROLS = {chr(code): f"\\x{code:02x}" for code in (*range(32), 127)}
_NAMED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def quote(text: str, *, variables: bool = False) -> str:
    """Quote `text` as one word of a unit file. `variables`: also escape `$`, where systemd expands `$NAME`.

    Raises InvalidArgument if `text` can't be encoded as UTF-8."""
    if not text.isprintable() and any("\ud800" <= char <= "\udfff" or char == "\0" for char in text):
        raise InvalidArgument(f"{text!a} is not UTF-8, which a unit file must be: give the folder another name")
    escapes = _PLAIN | _CONTROLS | _NAMED | ({"$": "$$"} if variables else {})
    return '"' + "".join(escapes.get(char, char) for char in text) + '"'


def systemd_unit(name: str, command: Sequence[str], *, vault: str) -> str:
    """Return the text of the unit `name`, which runs `command` for `vault`; the program in `command` is an absolute path."""
    program, *words = command
    folder = vault.rstrip("/").rpartition("/")[2]
    return UNIT.format(
        unit=f"{name}.service",
        identifier=name,
        description="Memex for the vault " + "".join(c for c in folder if c.isprintable()).replace("%", "%%"),
        vault=quote(vault),
        environment=" ".join(f"{name}={value}" for name, value in LINUX_ENVIRONMENT.items()),
        command=" ".join([quote(program), *(quote(word, variables=True) for word in words)]),
    )


def vault_line(text: str) -> str:
    """Return the line of a unit that names its vault; "" when Memex did not write the unit."""
    return next((line for line in text.splitlines() if line.startswith(VAULT)), "")


def hardening_drop_in(writable: Sequence[str]) -> str:
    """Return the text of the drop-in that makes only these folders writable."""
    return HARDENING.format(writable=" ".join(quote(path) for path in writable))


def launchd_agent(label: str, command: Sequence[str], *, log: str, environment: Mapping[str, str]) -> bytes:
    """Return the launchd agent `label`, which runs `command` at login and restarts it when it fails.

    Raises InvalidArgument if a path can't be written into a property list."""
    entries = {
        "Label": label,
        "ProgramArguments": list(command),
        "EnvironmentVariables": {**ENVIRONMENT, **environment},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ExitTimeOut": 45,
        "SoftResourceLimits": {"NumberOfFiles": 65_536},
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    try:
        return plistlib.dumps(entries, sort_keys=False)
    except ValueError as error:
        raise InvalidArgument(f"a path can't be written into a launchd agent; rename the path: {error}") from error
