"""Install and remove the hook by which a host gets the context at the start of a session: one command in its settings file.

Laws, tested: every other hook and every comment stays; installing twice changes nothing; removing takes away only this
vault's hooks."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from index.errors import InvalidArgument
from syncd.clients.daemon_address import find_state
from syncd.clients.jsonc_editor import read_jsonc, read_value_text, remove_member, set_member

HOOKS_KEY, EVENT = "hooks", "SessionStart"
# A resumed session still has the context; after a compaction it may be gone.
SOURCES: Final = "startup|clear|compact"
TIMEOUT_S: Final = 5  # after which the host ends the hook; the command itself ends after about a second


@dataclass(frozen=True, slots=True)
class HookFile:
    """Describes the file with a host's hooks; `path` is relative to the home folder."""

    path: str
    variable: str  # the environment variable that names another folder for the file
    then: str


HOOK_FILES: Final[Mapping[str, HookFile]] = {
    # code.claude.com/docs, "Hooks reference": user settings, groups of hooks by event, matcher, type, command, timeout.
    "claude-code": HookFile(".claude/settings.json", "CLAUDE_CONFIG_DIR", "start a new session"),
    # developers.openai.com/codex, "Hooks": hooks.json beside config.toml, with the same groups; new hooks need your trust.
    "codex": HookFile(
        ".codex/hooks.json", "CODEX_HOME", "start Codex again, and trust the hook when Codex shows it for review"
    ),
}


def hook_command(words: Sequence[str], client: str, workspace: str) -> str:
    """Return the command of the hook; `words` start `memex` for this vault."""
    return shlex.join([*words, "context", "--workspace", workspace, "--hook", client])


def put_hook(text: str, command: str, client: str) -> str:
    """Return the text of the file with this command as the vault's only hook. Raises InvalidArgument if it can't be edited."""
    groups, ours = _read_groups(text), _find_ours(text, command, client)
    if ours == [command]:
        return text
    others = _without(groups, ours)
    entry = {"matcher": SOURCES, "hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_S}]}
    return _write_groups(text, [*others, entry])


def remove_hook(text: str, command: str, client: str) -> str:
    """Return the text of the file without the vault's hooks. Raises InvalidArgument if it can't be edited."""
    ours = _find_ours(text, command, client)
    return _write_groups(text, _without(_read_groups(text), ours)) if ours else text


def _read_groups(text: str) -> list[Any]:
    try:
        hooks = read_jsonc(text).get(HOOKS_KEY, {})
    except ValueError as error:
        raise InvalidArgument(str(error)) from error
    groups = hooks.get(EVENT, []) if isinstance(hooks, dict) else None
    if not isinstance(groups, list):
        raise InvalidArgument(f"its {HOOKS_KEY}.{EVENT} is not a list of hooks")
    return groups


def _hooks_in(group: Any) -> list[Any]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _command_in(hook: Any) -> str:
    return str(hook.get("command", "")) if isinstance(hook, dict) else ""


def _find_ours(text: str, command: str, client: str) -> list[str]:
    """Return the commands of hooks that start `memex context` for the same vault and client, whatever the path of `memex`."""
    wanted = _vault_words(command, client)
    commands = [_command_in(hook) for group in _read_groups(text) for hook in _hooks_in(group)]
    return [line for line in commands if _is_same_vault(_vault_words(line, client), wanted)]


def _is_same_vault(words: list[str] | None, wanted: list[str] | None) -> bool:
    """Return whether words of two commands name one vault: by its folder, its settings file or its state folder."""
    if words is None or wanted is None:
        return False
    state = find_state(wanted)
    return words == wanted or (state is not None and find_state(words) == state)


def _vault_words(command: str, client: str) -> list[str] | None:
    """Return the words of a hook's command that name the vault; None for another command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if words[-2:] != ["--hook", client] or "context" not in words:
        return None
    return words[1 : words.index("context")]


def _without(groups: Sequence[Any], commands: Sequence[str]) -> list[Any]:
    """Return the groups without these commands, and without the groups that had nothing else."""
    kept = []
    for group in groups:
        hooks = [hook for hook in _hooks_in(group) if _command_in(hook) not in commands]
        if len(hooks) == len(_hooks_in(group)):
            kept.append(group)
        elif hooks:
            kept.append(group | {"hooks": hooks})
    return kept


def _write_groups(text: str, groups: Sequence[Any]) -> str:
    written = read_value_text(text, (HOOKS_KEY, EVENT))
    if written is not None and not _is_plain_json(written):
        raise InvalidArgument(
            f"its {HOOKS_KEY}.{EVENT} has comments, which Memex can't keep; add or remove the hook manually"
        )
    try:
        if groups:
            return set_member(text, (HOOKS_KEY, EVENT), list(groups))
        text = remove_member(text, (HOOKS_KEY, EVENT))
        return text if read_jsonc(text).get(HOOKS_KEY) else remove_member(text, (HOOKS_KEY,))
    except ValueError as error:
        raise InvalidArgument(str(error)) from error


def _is_plain_json(written: str) -> bool:
    try:
        json.loads(written)
    except ValueError:
        return False
    return True
