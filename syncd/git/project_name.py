"""Name the project of a folder: by the remote of its Git repository, otherwise by the folder at the top of its work tree.

Law: it reads files and runs nothing. Of a remote's address it returns only the last part, never a host, a user or a password."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from syncd.git.repository_folder import find_common_folder, find_git_folder

LARGEST: Final = 1 << 20  # bytes of a repository's configuration that are read
_SECTION: Final = re.compile(r'[ \t]*\[[ \t]*remote[ \t]+"((?:[^"\\\n]|\\.)*)"[ \t]*\]', re.IGNORECASE)
_ANY_SECTION: Final = re.compile(r"[ \t]*\[")
_URL: Final = re.compile(r"[ \t]*url[ \t]*=[ \t]*(.*?)[ \t]*\Z", re.IGNORECASE)


def find_project_name(folder: Path) -> str:
    """Return the project's name; "" for the root folder."""
    for top in (folder, *folder.parents):
        if (git := find_git_folder(top)) is not None:
            return _name_in_url(_read_url(find_common_folder(git) / "config")) or top.name
    return folder.name


def _read_url(config: Path) -> str:
    """Return the address of the remote `origin`, or of the first remote; "" without one."""
    try:
        with config.open("rb") as file:
            lines = file.read(LARGEST).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    urls: dict[str, str] = {}
    remote = None
    for line in lines:
        if named := _SECTION.match(line):
            remote = named[1]
        elif _ANY_SECTION.match(line):
            remote = None
        elif remote is not None and (url := _URL.match(line)):
            urls.setdefault(remote, url[1].strip('"'))
    return urls.get("origin") or next(iter(urls.values()), "")


def _name_in_url(url: str) -> str:
    """Return the last part of an address or a path, without the ending `.git`."""
    last = re.split(r"[/\\:]", url.partition("?")[0].rstrip("/\\"))[-1]
    return last.removesuffix(".git")
