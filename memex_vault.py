"""Start `memex` after checking that its packages are Memex's own.

The packages have common names, and Python imports the first package with a name that it finds. The name of this module is unique."""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

HOME: Final = Path(__file__).resolve().parent
PACKAGES: Final = ("index", "mcp_server", "syncd", "vault_fixtures")
QUICK, HOOK = "context", "--hook"  # the command that a session waits for, and its option with which a host starts it
UNUSABLE: Final = 7  # the exit code of UNAVAILABLE


def main() -> NoReturn:
    """Run `memex` and exit with its code."""
    _open_closed_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the imports below without a traceback
    for name in PACKAGES:
        place = _locate(name)
        if place is None or place.resolve() != HOME / name:
            _refuse(name, f"Python finds {place} first" if place else f"{HOME / name} is missing")
    try:
        words = sys.argv[1:]
        if words[:1] == [QUICK] or {QUICK, HOOK} <= set(words):
            _run_quick(words)
        from syncd.cli.main import main as run  # noqa: PLC0415 - not before the check
    except ImportError as error:
        from importlib.metadata import packages_distributions  # noqa: PLC0415 - it takes as long as the rest of the start

        name = (error.name or "").partition(".")[0]
        if name not in PACKAGES:
            raise
        owners = " and ".join(sorted(packages_distributions().get(name, ["nothing"])))
        _refuse(name, f"{error}; {HOME / name} belongs to {owners}")
    _catch_interrupts()
    run()


def _open_closed_streams() -> None:
    """Open the null device for each standard stream that is closed, so that no other file gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is that of the stream
            os.set_inheritable(null, True)
            setattr(sys, name, open(null, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - open until the process ends


def _catch_interrupts() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, which a command handles."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _run_quick(words: list[str]) -> NoReturn:
    """Run the command that a session waits for, without loading any other."""
    from syncd.cli.framework.command_outcome import run  # noqa: PLC0415 - not before the check
    from syncd.cli.framework.commands import flush_output  # noqa: PLC0415 - as above
    from syncd.cli.notes.context import context  # noqa: PLC0415 - as above

    words.remove(QUICK)
    _catch_interrupts()
    code = run(context, words, name=f"memex {QUICK}")
    flush_output()
    sys.exit(code)


def _locate(name: str) -> Path | None:
    """Return the folder or file that an import of `name` would use."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0]) if folders else Path(spec.origin or name)


def _refuse(name: str, cause: str) -> NoReturn:
    message = f"""memex: the package `{name}` is not Memex's own: {cause}.
Memex needs its packages {", ".join(PACKAGES)} from {HOME}.
Remove the other package (see PYTHONPATH and `pip list`), or install Memex into a separate environment."""
    print(message, file=sys.stderr)  # noqa: T201 - the command line's own tools may be what is missing
    sys.exit(UNUSABLE)
