"""Add the vault's options to the commands in a message, so that a copied command acts on the same vault.

Law, tested: a text without such a command stays unchanged, and a second run changes nothing."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Final

import click

from syncd.clients.daemon_address import OPTIONS
from syncd.settings.known_vaults import VAULT_VARIABLES
from syncd.state.folder import expand_home

FLAGS: Final = "memex.flags"  # where the context of a command line keeps the settings that were given as flags
# A variable may be set for one command line only, so a printed command can't rely on it; the first one wins.
_VARIABLES: Final = {
    "--vault": VAULT_VARIABLES,
    "--state": ("MEMEX_STATE",),
    "--config": ("MEMEX_CONFIG",),
}
# Commands that name their vault themselves, or need none. `init` names its vault and its state folder, but not its settings file.
_WITHOUT_VAULT: Final = frozenset({"init", "use", "vaults", "demo", "help", "completion"})
# A command, not the name of a note: after a backtick, punctuation, or a verb.
_COMMAND: Final = re.compile(
    r"(?:^|(?<=[`(])|(?<=[:;,(?] )|(?<=\brun )|(?<=\bsee )|(?<=\bas in ))memex (?=([a-z]+)\b(?!\.\w))", re.MULTILINE
)
_ARGUMENTS: Final = re.compile(r"[`;\n]")  # what ends the arguments of a command in a text


def vault_options() -> list[str]:
    """Return the options that name the vault of this command line, by its flags or variables, with absolute paths."""
    context = click.get_current_context(silent=True)
    if context is None:
        return []
    flags = context.find_root().meta.get(FLAGS, {})
    words: list[str] = []
    for option, name in OPTIONS.items():
        path = flags.get(name) or next(filter(None, map(os.environ.get, _VARIABLES[option])), None)
        words += [option, str(Path.cwd() / expand_home(path))] if path else []
    return words


def complete_commands(text: str) -> str:
    """Add the options that name the vault of this command line to each command of Memex in `text`."""
    if not (options := vault_options()):
        return text
    commands = click.get_current_context().find_root().command
    names = commands.commands if isinstance(commands, click.Group) else {}
    program = shlex.join(["memex", *options])
    settings_file = shlex.join(options[options.index("--config") :]) if "--config" in options else ""

    def complete(match: re.Match[str]) -> str:
        if (
            match[1] == "init"
            and settings_file
            and "--config" not in _ARGUMENTS.split(text[match.end() :], maxsplit=1)[0]
        ):
            return f"memex {settings_file} "
        return f"{program} " if match[1] in names and match[1] not in _WITHOUT_VAULT else match[0]

    return _COMMAND.sub(complete, text)


def way_back(call: str, *, kept: bool = True) -> str:
    """Return the command that undoes a call. `kept`: whether Memex keeps the versions that a call replaces or deletes."""
    if not kept:
        return complete_commands(
            f"Memex kept no copy (git.past_days = 0); to undo this if Git has the note: memex undo {call}"
        )
    return complete_commands(f"to undo this: memex undo {call}")
