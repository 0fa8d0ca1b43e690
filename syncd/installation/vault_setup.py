"""Set up a vault for Memex: create the state folder, the inbox, the owner's key and the settings file.

Law, tested: the setup creates only folders and files of Memex, touches no note, and a second run changes nothing."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from syncd.installation.first_notes import write_first_notes
from syncd.settings.known_vaults import (
    default_settings_file,
    find_vault,
    find_vault_around,
    is_same_folder,
    known_vaults,
)
from syncd.settings.settings import Settings, load
from syncd.state.damage import check_shapes, set_aside, set_ledger_aside, set_staged_aside
from syncd.state.folder import (
    KEY_FILE,
    LEDGER,
    claim,
    default_state_folder,
    expand_home,
    path_digest,
    read_regular_file,
    read_vault_path,
    write_private,
    writing_private,
)
from syncd.state.ledger import Ledger, is_damaged
from syncd.state.process_lock import ProcessLock, holder_pid
from syncd.vault.path_rules import is_note
from syncd.vault.vault import Vault
from syncd.workspaces.api_keys import SECRET, ApiKeys, make_secret

log = logging.getLogger(__name__)

OWNER = "owner"
LOOKED_AT = 50_000  # most entries of a folder that are searched for a note
HEAD = "# Memex reads this file; `memex config` lists every setting with its value and its meaning.\n"


def set_up_vault(settings: Settings, *, now: int, again: bool = False, welcome: bool | None = None) -> Path:
    """Create the missing parts that the daemon needs, and return the path of the owner's key file.

    `again`: a person requested the setup, so Memex also creates a workspace and a key again that the person removed.
    `welcome`: False adds the note `About.md` to a new inbox, True also a welcome capture, None adds neither."""
    path = settings.vault.path
    refuse_home(path)
    if not path.is_dir():
        raise _no_folder(settings)
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


def _no_folder(settings: Settings) -> NotFound:
    path, state = settings.vault.path, settings.state
    if read_vault_path(state) is None:
        return NotFound(
            f"there is no folder {path}: check the path, or create the folder with "
            f"`{shlex.join(['memex', 'init', '--create', str(path)])}`"
        )
    return NotFound(
        f"the folder of the vault {path} is missing: mount its disk, or move it back; {moved_vault_advice(settings)}"
    )


def moved_vault_advice(settings: Settings) -> str:
    """Say how to keep the keys and the settings of a vault whose folder has another name now."""
    if settings.origins.get("vault.path") != str(settings.file):
        return (
            f"if you renamed or moved it: `memex init VAULT --state {shlex.quote(str(settings.state))}` keeps its keys"
        )
    kept = "" if "state" in settings.origins else f", and above [vault] the line state = {toml_string(settings.state)}"
    return f"if you renamed or moved it, write its new folder into {settings.file} as vault.path{kept}"


def is_registered(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Return whether the vault was set up, or a settings file or a state folder was named for it."""
    return (
        "state" in settings.origins
        or read_vault_path(settings.state) is not None
        or settings.origins.get("vault.path") == str(settings.file)
        or find_vault(known_vaults(environ), settings.vault.path) is not None
    )


def refuse_inside_vault(settings: Settings, environ: Mapping[str, str]) -> None:
    """Raise InvalidArgument for a new vault inside a known one: both would index its notes."""
    folder, known = settings.vault.path, known_vaults(environ)
    if read_vault_path(settings.state) is not None or any(is_same_folder(vault.path, folder) for vault in known):
        return  # it was set up before, or moved
    around = find_vault_around([vault for vault in known if vault.path.is_dir()], folder)
    outer = next((vault for vault in known if vault.file == around), None)
    if outer is not None:
        raise InvalidArgument(
            f"{folder} is inside the vault {outer.path}, which has its notes already: name a folder outside it, or remove the "
            f"settings file of that vault first: {outer.file}"
        )


def refuse_moved_vault(settings: Settings, environ: Mapping[str, str]) -> None:
    """Raise Conflict for a new vault with an inbox that may be a known, missing vault under another name: its keys would be lost."""
    folder = settings.vault.path
    if is_registered(settings, environ) or not (folder / settings.vault.inbox).is_dir():
        return
    calm = {name: value for name, value in environ.items() if not name.startswith("MEMEX_")}
    for vault in known_vaults(environ):
        if vault.path.is_dir():
            continue
        with contextlib.suppress(InvalidArgument):  # `memex vaults` reports what is wrong with the file
            missing = load({"config": str(vault.file)}, calm)
            if read_vault_path(missing.state) != missing.vault.path or not _may_hold_notes_of(missing.state, folder):
                continue  # it has no keys, or another vault has taken them over; or its disk is missing, and this is another vault
            raise Conflict(
                f"{folder} has an inbox already, and the folder of the vault {vault.path} is missing; {moved_vault_advice(missing)}. "
                f"Otherwise, name a state folder for the new vault: `{shlex.join(['memex', 'init', str(folder), '--state'])} FOLDER`"
            )


def _may_hold_notes_of(state: Path, folder: Path) -> bool:
    """Return whether most notes in the index of `state` are in `folder`; also True without an index."""
    from index.catalog.catalog import read_paths  # noqa: PLC0415 - only a setup beside a missing vault needs the index
    from syncd.indexes.build_inputs import build_in_use  # noqa: PLC0415 - likewise
    from syncd.indexes.index_builds import SCOPES  # noqa: PLC0415 - likewise

    build, _ = build_in_use(state / "index")
    try:
        paths = [path for scope in SCOPES for path in read_paths(build / f"{scope}.db")] if build else []
    except Unavailable:
        return True
    return not paths or 2 * sum(os.path.lexists(folder / path) for path in paths) > len(paths)


def _keep_lost_queue(state: Path) -> None:
    """Set aside the files of queued jobs when the ledger with the jobs is missing or empty, and no process holds it."""
    ledger = state / LEDGER
    lost = not os.path.lexists(ledger) or (ledger.is_file() and not ledger.stat().st_size)
    if lost and holder_pid(state) is None:
        for path in set_staged_aside(state):
            log.warning("the ledger with the queue is missing: Memex keeps the files of the queued jobs in %s", path)


def refuse_home(folder: Path) -> None:
    """Raise InvalidArgument for the home folder, every folder above it, and the root; links are resolved first."""
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
        raise InvalidArgument(
            f"{folder} is {what}, and Memex indexes everything in a vault: name the folder that has your notes"
        )


def has_notes(folder: Path) -> bool:
    """Return whether a folder looks like a vault: Obsidian has opened it, or a note is among about LOOKED_AT entries."""
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
    """Return the file with the owner's key, which may do everything; create file and key if no complete key exists.

    A key that a person revoked is replaced only with `again`. If its file was removed, the old key stays valid."""
    path = state / KEY_FILE
    secret = path.read_text("utf-8", "replace").strip() if path.is_file() else ""
    secret = secret if SECRET.fullmatch(secret) else ""
    if path.is_dir():
        raise Unavailable(
            f"{path} is a folder, not the file with the owner's key: `memex key reset --yes` renames the folder and creates a new key",
            retryable=False,
        )
    held = next((key for key in keys.list() if secret.startswith(f"mx_{key.id}_")), None)
    if held is not None and (held.is_live(now) or not again):
        if not path.is_symlink():  # a linked file is left unchanged, and the doctor reports the link
            path.chmod(0o600)
        return path
    taken = {key.name for key in keys.list() if key.revoked_at is None}
    name = next(name for n in range(1, 10_000) if (name := OWNER if n == 1 else f"{OWNER}-{n}") not in taken)
    secret = make_secret()
    with writing_private(path, secret + "\n"):  # a key whose secret nobody has would stay valid
        keys.create(name, workspaces=None, scopes=("read", "write", "admin"), secret=secret, now=now)
    return path


def install_client_key(state: Path, name: str, workspace: str, secret: str | None, *, now: int) -> str:
    """Return the secret of the key `name`, which reads and writes one workspace.

    `secret`: a secret from an earlier state folder, which is kept unless it belongs to another key of this state folder.
    Otherwise the key gets a new secret."""
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


def reset_owner_key(state: Path, *, now: int) -> tuple[Path, list[Path]]:
    """Replace the owner's key, for an owner whose key was lost or leaked. Needs no daemon and no vault.

    Returns the file with the new key, and the paths to which damaged files were moved.

    A ledger that this version can't use is set aside with all its files; that raises Conflict while a daemon uses it. Raises NotFound if
    `state` is not the state folder of a vault."""
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
        with contextlib.suppress(OSError, UnicodeDecodeError):  # an unreadable file is replaced too
            secret = read_regular_file(path).decode().strip()
        held = [key.id for key in keys.list() if secret.startswith(f"mx_{key.id}_")]
        secret = make_secret()
        with writing_private(path, secret + "\n"):
            keys.reset(OWNER, secret, instead_of=held, now=now)
    finally:
        ledger.close()
    return path, aside


def ensure_settings_file(settings: Settings, named: str | None, environ: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the settings file of this vault, written if it is missing, and whether Memex reads it without --config.

    If the default settings file belongs to another vault, this vault gets a separate file beside it. Raises Conflict if
    the file to use belongs to another vault."""
    usual = Path.cwd() / expand_home(named) if named else default_settings_file(environ)
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
    """Return whether `file` names this vault. Write it if it is missing, and add the vault if it names none.

    Raises Conflict if the vault can't be added."""
    calm = {name: value for name, value in environ.items() if name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
    unasked = settings.state == default_state_folder(settings.vault.path, calm)
    state = "" if unasked else f"state = {toml_string(settings.state)}\n\n"
    vault = f"[vault]\npath = {toml_string(settings.vault.path)}\n"
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_settings_file(file, f"{HEAD}\n{state}{vault}")
        return True
    text = file.read_bytes().decode()
    written = tomllib.loads(text)
    if "path" not in written.get("vault", {}):
        if "vault" in written or (state and "state" in written):
            raise Conflict(
                f"the settings file {file} names no vault: write `path = {toml_string(settings.vault.path)}` under [vault]"
            )
        end = _line_end(text)
        write_settings_file(file, state.replace("\n", end) + text.rstrip() + f"\n\n{vault}".replace("\n", end))
        return True
    return load({"config": str(file)}, calm).vault.path == settings.vault.path


def write_git_choice(file: Path, *, commit: bool) -> None:
    """Set `commit` under [git] in the settings file, unless it already has this value or default.

    Raises Conflict if the file can't be changed line by line."""
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
        raise Conflict(f"the settings file {file} can't be changed line by line: write `{line}` under [git] there")
    write_settings_file(file, text)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def write_settings_file(file: Path, text: str) -> None:
    """Write the target of `file`, because a person may keep the settings elsewhere behind a symbolic link."""
    write_private(Path(os.path.realpath(file)), text)


def toml_string(path: Path) -> str:
    """Return a path as a TOML string; the escapes of JSON are valid in TOML."""
    return json.dumps(str(path), ensure_ascii=False)


def put_under_git(vault: Path) -> None:
    """Put a folder under Git and commit all its files, unless it is under Git already."""
    from syncd.git.repository import Repository  # noqa: PLC0415 - it brings the Git library, which few setups need

    repo = Repository(vault)
    if repo.local_state() == "no-git":
        raise Unavailable("Git is not installed: install it, or leave out --git", retryable=False)
    if repo.local_state() == "no-repo":
        repo.init()
        repo.commit_all("Begin")
