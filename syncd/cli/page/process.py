"""Start the process of the page, or find the one that runs, and ask it for links and sessions over its control socket."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from index.errors import Conflict, MemexError, Unavailable, from_dict
from syncd.clients.daemon_address import memex_words
from syncd.daemon import control_socket
from syncd.settings.settings import Settings
from syncd.version import installed

FOLDER: Final = "page"  # of the state folder: the page's lock, control socket and log
LOG: Final = "page.log"
STARTING_S: Final = 20.0  # for a page that another command starts
ENDING_S: Final = 10.0
ANSWER_S: Final = 10.0


def ask_page(state: Path, operation: str, **arguments: Any) -> Any:
    """Return the answer of the page's process. Raises NoDaemon if none runs for this state folder."""
    return control_socket.call(state / FOLDER, operation, arguments, timeout=ANSWER_S)


def make_link(chosen: Settings, flags: Mapping[str, Any], view: str) -> dict[str, Any]:
    """Return a one-time link to a view; start the page if none runs, and again if it has another version.

    Raises Unavailable with the reason if the page can't be started."""
    end = time.monotonic() + STARTING_S
    while True:
        try:
            answer = dict(ask_page(chosen.state, "link", view=view))
        except control_socket.NoDaemon:
            try:
                _start_page(chosen, flags)
            except Conflict:  # another command starts it, or it is ending
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        else:
            if answer["version"] == installed():
                return answer
            stop_page(chosen.state)


def stop_page(state: Path) -> int | None:
    """Stop the page, wait until it has ended, and return its process id; None if none runs."""
    try:
        pid = int(ask_page(state, "stop")["stopped"])
    except control_socket.NoDaemon:
        return None
    end = time.monotonic() + ENDING_S
    while time.monotonic() < end:
        try:
            ask_page(state, "sessions")
        except MemexError:
            return pid
        time.sleep(0.05)
    raise Unavailable(f"the page did not end within {ENDING_S:g} s; to end it: kill {pid}")


def _start_page(chosen: Settings, flags: Mapping[str, Any]) -> None:
    """Start the page, and wait until it answers. Raises the error that it reports."""
    folder = chosen.state / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    wanted = {**flags, "state": str(chosen.state), "vault.path": str(chosen.vault.path)}
    if chosen.file is not None and "config" in wanted:
        wanted["config"] = str(chosen.file)
    command = [sys.executable, "-P", "-m", "syncd.page", json.dumps(wanted), json.dumps(memex_words(chosen))]
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline()
    if not line:
        raise Unavailable(f"the page could not be started; its log has the reason: {folder / LOG}", retryable=False)
    answer = json.loads(line)
    if "error" in answer:
        process.wait()
        raise from_dict(answer["error"])
