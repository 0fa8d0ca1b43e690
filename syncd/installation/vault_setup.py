"""Set up a vault for Memex: create the state folder, the inbox, the owner's key and the settings file.

Law, tested: the setup creates only its own folders and files, touches no note, and changes nothing the second time."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from syncd.installation.first_notes import write_first_notes
from syncd.settings.known_vaults import default_settings_file, find_vault, known_vaults
from syncd.settings.settings import Settings, load
from syncd.state.damage import check_shapes, set_aside, set_ledger_aside, set_staged_aside
from syncd.state.folder import (
    KEY_FILE,
    LEDGER,
    claim,
    default_state_folder,
    path_digest,
    read_regular_file,
    read_vault_path,
    write_private,
)
from syncd.state.ledger import Ledger, is_damaged
from syncd.state.process_lock import ProcessLock, holder_pid
from syncd.vault.path_rules import is_note
from syncd.vault.vault import Vault
from syncd.workspaces.api_keys import SECRET, ApiKeys

log = logging.getLogger(__name__)

OWNER = "owner"
LOOKED_AT = 50_000  # entries of a folder in which a note is looked for
HEAD = "# Memex reads this file; `memex config` lists every setting, its value and what it means.\n"


def set_up_vault(settings: Settings, *, now: int, again: bool = False, welcome: bool | None = None) -> Path:
    """Make what serving needs and is missing; the file that holds the owner's key.

    `again`: a person asks for it, so a workspace and a key that they removed before are made again. `welcome`: a
    new inbox gets the note that explains it, and if true a first capture; None = neither."""
    path = settings.vault.path
    refuse_home(path)
    if not path.is_dir():
        raise NotFound(f"there is no folder {path}: check the path, or make it with `memex init --create`")
    check_shapes(settings.state)
    claim(settings.state, path)
    _keep_lost_queue(settings.state)
    vault = Vault(path)
    try:
        is_new = not vault.exists(settings.vault.inbox)
        if again or is_new:
            vault.make_folder(f"{settings.vault.inbox}/default")
    finally:
        vault.close()
    ledger = Ledger.open(settings.state / LEDGER)
    try:
        if is_new and welcome is not None and holder_pid(settings.state) is None:
            write_first_notes(settings, ledger, now=now, welcome=welcome)
        return ensure_owner_key(settings.state, ApiKeys(ledger), now=now, again=again)
    finally:
        ledger.close()


def _keep_lost_queue(state: Path) -> None:
    """Set the files of queued jobs aside when the ledger that knew them is gone and nobody works with it."""
    ledger = state / LEDGER
    lost = not os.path.lexists(ledger) or (ledger.is_file() and not ledger.stat().st_size)
    if lost and holder_pid(state) is None:
        for path in set_staged_aside(state):
            log.warning("the ledger is gone, and with it the queue: the files of its jobs are kept in %s", path)


def refuse_home(folder: Path) -> None:
    """Raise InvalidArgument for the root of the file system, a home folder, and whatever holds one, under any name of it."""
    real, home = Path(os.path.realpath(folder)), None
    with contextlib.suppress(RuntimeError):  # a user without a home
        home = Path(os.path.realpath(Path.home()))
    if real == Path("/") or (home and home.is_relative_to(real)):
        what = (
            "the root of the file system"
            if real == Path("/")
            else "your home folder"
            if real == home
            else "above your home folder"
        )
        raise InvalidArgument(f"{folder} is {what}, and a vault is indexed whole: name the folder that has your notes")


def has_notes(folder: Path) -> bool:
    """Whether a folder looks like a vault: it has a note, or Obsidian has opened it. At most LOOKED_AT entries are seen."""
    if (folder / ".obsidian").is_dir():
        return True
    seen = 0
    for _, folders, files in os.walk(folder):
        if any(is_note(name) for name in files):
            return True
        folders[:] = [name for name in folders if not name.startswith(".")]
        seen += len(files) + len(folders)
        if seen > LOOKED_AT:
            return False
    return False


def ensure_owner_key(state: Path, keys: ApiKeys, *, now: int, again: bool = False) -> Path:
    """The file with a key for everything; made, with its key, when there is none that is whole.

    A key that a person revoked stays revoked unless they ask `again`; one whose file they moved away stays good."""
    path = state / KEY_FILE
    secret = path.read_text("utf-8", "replace").strip() if path.is_file() else ""
    secret = secret if SECRET.fullmatch(secret) else ""
    if path.is_dir():
        raise Unavailable(
            f"{path} is a folder, where Memex keeps the owner's key: `memex key reset --yes` sets it aside and makes a new key",
            retryable=False,
        )
    held = next((key for key in keys.list() if secret.startswith(f"mx_{key.id}_")), None)
    if held is not None and (held.is_live(now) or not again):
        if not path.is_symlink():  # a file elsewhere is left as it is, and the doctor names the link
            path.chmod(0o600)
        return path
    taken = {key.name for key in keys.list() if key.revoked_at is None}
    name = next(name for n in range(1, 10_000) if (name := OWNER if n == 1 else f"{OWNER}-{n}") not in taken)
    _, secret = keys.create(name, workspaces=None, scopes=("read", "write", "admin"), now=now)
    write_private(path, secret + "\n")
    return path


def install_client_key(state: Path, name: str, workspace: str, secret: str | None, *, now: int) -> str:
    """The secret of the key of that name, which reads and writes one workspace: `secret`, of an earlier state folder, or a new one.

    A secret that belongs to another key of this state folder is not taken."""
    ledger = Ledger.open(state / LEDGER)
    try:
        keys = ApiKeys(ledger)
        held = keys.identify(secret, now=now) if secret else None
        if secret and held is not None and held.name == name:
            return secret
        if secret and any(secret.startswith(f"mx_{key.id}_") for key in keys.list()):
            secret = None
        if any(key.name == name and key.revoked_at is None for key in keys.list()):
            keys.revoke(name, now=now)
        return keys.create(name, workspaces=[workspace], secret=secret, now=now)[1]
    finally:
        ledger.close()


@dataclass(frozen=True, slots=True)
class OwnerKeyReset:
    """The file with the new owner's key, and where what was damaged lies now."""

    key_file: Path
    set_aside: list[Path]


def reset_owner_key(state: Path, *, now: int) -> OwnerKeyReset:
    """Break-glass: a new owner's key, whoever has the old one or lost it. Needs no daemon and no vault.

    A ledger that is damaged is set aside with all that belongs to it. Raises Conflict while a daemon works with it."""
    if not os.path.lexists(state / LEDGER) and read_vault_path(state) is None:
        raise NotFound(f"{state} is not the state folder of a vault: run `memex init VAULT`, or pass --state")
    check_shapes(state)
    path, aside = state / KEY_FILE, []
    if is_damaged(state / LEDGER):
        with ProcessLock.acquire(state):
            aside = set_ledger_aside(state)
    else:
        _keep_lost_queue(state)
    if path.is_dir() and not path.is_symlink():
        aside.append(set_aside(path))
    ledger = Ledger.open(state / LEDGER)
    try:
        keys = ApiKeys(ledger)
        secret = ""
        with contextlib.suppress(OSError, UnicodeDecodeError):  # whatever is there is replaced
            secret = read_regular_file(path).decode().strip()
        held = [key.id for key in keys.list() if secret.startswith(f"mx_{key.id}_")]
        _, secret = keys.reset(OWNER, instead_of=held, now=now)
        write_private(path, secret + "\n")
    finally:
        ledger.close()
    return OwnerKeyReset(path, aside)


def ensure_settings_file(settings: Settings, named: str | None, environ: Mapping[str, str]) -> tuple[Path, bool]:
    """The settings file for this vault, written if there is none; and whether it is the one that Memex reads unasked.

    When the usual place holds another vault's, this vault gets a file of its own beside it."""
    usual = Path.cwd() / Path(named).expanduser() if named else default_settings_file(environ)
    if not named and (known := find_vault(known_vaults(environ), settings.vault.path)):
        return known, known == usual
    if _claim_settings_file(usual, settings, environ):
        return usual, True
    if named:
        raise Conflict(
            f"the settings file {usual} is for another vault: pass another --config for {settings.vault.path}"
        )
    file = usual.with_name(f"{settings.vault.path.name}-{path_digest(settings.vault.path)}.toml")
    if not _claim_settings_file(file, settings, environ):
        raise Conflict(f"the settings file {file} is for another vault: move it away, or pass --config")
    return file, False


def _claim_settings_file(file: Path, settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether `file` leads to this vault; it is written for it if it is missing, or added to if it names no vault."""
    calm = {name: value for name, value in environ.items() if name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
    unasked = settings.state == default_state_folder(settings.vault.path, calm)
    state = "" if unasked else f"state = {toml_string(settings.state)}\n\n"
    vault = f"[vault]\npath = {toml_string(settings.vault.path)}\n"
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_settings_file(file, f"{HEAD}\n{state}{vault}")
        return True
    text = file.read_bytes().decode()
    written = tomllib.loads(text)
    if "path" not in written.get("vault", {}):
        if "vault" in written or (state and "state" in written):
            raise Conflict(
                f"the settings file {file} names no vault: write `path = {toml_string(settings.vault.path)}` under [vault]"
            )
        end = _line_end(text)
        _write_settings_file(file, state.replace("\n", end) + text.rstrip() + f"\n\n{vault}".replace("\n", end))
        return True
    return load({"config": str(file)}, calm).vault.path == settings.vault.path


def write_git_choice(file: Path, *, commit: bool) -> None:
    """Have the settings file say whether Memex commits; where that is the default, only if it says otherwise now."""
    text = file.read_bytes().decode()
    section, end = tomllib.loads(text).get("git", {}), _line_end(text)
    if section.get("commit", True) == commit:
        return
    line = f"commit = {str(commit).lower()}"
    if "commit" in section:
        text = re.sub(r"(?m)^(\s*)commit\s*=\s*(?:true|false)\b", rf"\g<1>{line}", text, count=1)
    elif section:
        text = re.sub(r"(?m)^(\s*\[git\][^\r\n]*)", rf"\g<1>{end}{line}", text, count=1)
    else:
        text = text.rstrip() + f"\n\n[git]\n{line}\n".replace("\n", end)
    try:
        agrees = tomllib.loads(text).get("git", {}).get("commit", True) == commit
    except tomllib.TOMLDecodeError:
        agrees = False
    if not agrees:
        raise Conflict(f"the settings file {file} can't be changed by line: write `{line}` under [git] there")
    _write_settings_file(file, text)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _write_settings_file(file: Path, text: str) -> None:
    """Write the file to which `file` leads: a person may keep it in a folder of their own, behind a link."""
    write_private(Path(os.path.realpath(file)), text)


def toml_string(path: Path) -> str:
    """A path as a TOML string: JSON's escapes are TOML's too."""
    return json.dumps(str(path), ensure_ascii=False)
