"""Check the settings for the doctor: who can change their file, and whether the daemon runs with them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from index.errors import MemexError
from syncd.cli.doctor.doctor import ASKED_S, DoctorContext, Finding, quote_path, restrict_mode
from syncd.daemon import control_socket
from syncd.settings.effective_settings import effective_settings


def check_settings(context: DoctorContext) -> Iterator[Finding]:
    """Check that other users can't write the settings file."""
    file = context.settings.file
    if file is None:
        yield Finding("settings", "ok", "no settings file; flags, environment variables and defaults apply")
        return
    info = file.stat()
    if info.st_mode & 0o022:
        fix = partial(restrict_mode, file, stat.S_IMODE(info.st_mode) & ~0o022) if info.st_uid == os.geteuid() else None
        yield Finding("settings", "wrong", f"other users can write {file}", f"chmod go-w {quote_path(file)}", fix)
    else:
        yield Finding("settings", "ok", str(file))


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
            yield Finding("settings", "advice", says, "memex stop; memex serve")


def _is_comparable(setting: Mapping[str, Any]) -> bool:
    """Return whether a setting is the daemon's, and from the file or a default: a command may have other flags and variables."""
    return not setting["name"].startswith("page.") and not setting["origin"].startswith(("--", "MEMEX_"))


SETTINGS_CHECKS = (check_settings, check_settings_in_use)
