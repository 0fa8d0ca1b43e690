"""The environment of a person with an empty home folder, who shares the caches and settings of pip and uv with this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from syncd.cli.daemon.demo import pick_free_port
from tests.support.paths import DAEMON_PYTHON

# What is set for this program, or leads a newcomer's commands to the folders of another person.
FOREIGN: Final = re.compile(
    "MEMEX_|KB_|GIT_|MAKE|MFLAGS|PYTHON|VIRTUAL_ENV|VAULT|COLUMNS|LINES|XDG_(CACHE|CONFIG|DATA|STATE)_HOME|XDG_RUNTIME_DIR"
)


def caches() -> dict[str, str]:
    """The folders in which pip and uv keep what they downloaded, and their settings, as variables of the environment."""
    pip = subprocess.check_output([DAEMON_PYTHON, "-m", "pip", "cache", "dir"], text=True).strip()
    kept = {"PIP_CACHE_DIR": pip}
    if shutil.which("uv"):
        kept["UV_CACHE_DIR"] = subprocess.check_output(["uv", "cache", "dir"], text=True).strip()
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for name, file in (("PIP_CONFIG_FILE", settings / "pip/pip.conf"), ("UV_CONFIG_FILE", settings / "uv/uv.toml")):
        if name not in os.environ and file.is_file():
            kept[name] = str(file)
    return kept


def environ_of(folder: Path) -> dict[str, str]:
    """The environment of a newcomer whose home is in `folder`."""
    own = {"HOME": folder / "home", "TMPDIR": folder / "tmp"}
    for each in own.values():
        each.mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
    port = str(pick_free_port("127.0.0.1"))
    return (
        kept
        | caches()
        | {name: str(path) for name, path in own.items()}
        | {"TERM": "xterm", "MEMEX_SERVER__PORT": port}
    )
