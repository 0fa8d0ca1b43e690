"""Check the state folder for the doctor: the process that holds it, the ledger, the index and the encoder."""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.errors import Conflict, LibrariesMissing, MemexError, Unavailable
from index.names import pluralize
from index.timings import now_ms
from syncd.cli.doctor.doctor import DoctorContext, Finding, Rank, lstat_or_none, quote_path, remove_files, restrict_mode
from syncd.cli.doctor.host_checks import closed_folders
from syncd.clients.daemon_address import init_command, read_daemon_url
from syncd.daemon import control_socket
from syncd.state.damage import STAGED, find_misfits, find_obstacle, take_over
from syncd.state.folder import KEY_FILE, LEDGER, read_regular_file, read_vault_path
from syncd.state.ledger import check_integrity, is_damaged, query_read_only
from syncd.state.ledger_schema import NEWER
from syncd.state.process_lock import ProcessLock
from syncd.state.vault_claim import find_holder
from syncd.version import installed
from syncd.workspaces.api_keys import SECRET

if TYPE_CHECKING:
    from syncd.app import App

# ruff: noqa: PLC0415 - importing the index and the encoders takes longer than running most checks
OF_A_DAEMON = (control_socket.DAEMON, control_socket.NAME, control_socket.TOKEN)  # exist while a daemon runs
SECRETS = (KEY_FILE, "audit.head", "audit.done", "ledger.db", "ledger.db-wal", "ledger.db-shm", *OF_A_DAEMON, "lock")
SEE_DOCTOR = "; see memex doctor"  # the end of a sentence in the daemon's status
ANSWER_S = 10.0  # timeout of a request to the daemon
STRAY_S = 3600.0  # least age of a leftover staged file; a younger one without a job may get its job in a moment
PROBE = "A note about nothing."
PASSAGE = "A passage as long as the one of a note usually is. " * 15


def check_state(context: DoctorContext) -> Iterator[Finding]:
    """Check the state folder: its owner, its vault, the types of its files, and that other users can't open them."""
    folder = context.state
    info = lstat_or_none(folder)
    if info is None:
        yield Finding("wrong", f"{folder} is missing: this vault is not set up", init_command(context.settings))
        return
    if not stat.S_ISDIR(info.st_mode):
        yield Finding("wrong", f"{folder} is not a folder", "memex status --state ANOTHER_FOLDER")
        return
    if info.st_uid != os.geteuid():
        yield Finding("wrong", f"{folder} belongs to another user", take_over(folder))
        return
    if whole := find_obstacle(folder):
        yield Finding("wrong", whole.says, whole.way)
        return
    vault = read_vault_path(folder)
    if vault is not None and vault != context.vault:
        yield Finding("wrong", f"{folder} belongs to the vault {vault}", f"memex status --vault {quote_path(vault)}")
    for misfit in find_misfits(folder):
        how = f"chmod {misfit.mode:o} {quote_path(misfit.path)}" if misfit.mode is not None else "memex doctor --fix"
        yield Finding("wrong", misfit.says, misfit.way or how, None if misfit.way else misfit.mend)
    open_to_others = [folder] if info.st_mode & 0o077 else []
    open_to_others += [path for name in SECRETS if (path := folder / name) and _is_readable_by_others(path)]
    for path in open_to_others:
        mode = 0o700 if path == folder else 0o600
        mend, fix = f"chmod {mode:o} {quote_path(path)}", partial(restrict_mode, path, mode)
        yield Finding("wrong", f"other users can access {path}", mend, fix)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        fix = partial(restrict_mode, folder, 0o700)
        yield Finding("wrong", f"{folder} can't be written", f"chmod 700 {quote_path(folder)}", fix)
    elif not open_to_others:
        yield Finding("ok", f"{folder}, accessible only to you")


def _is_unusable(context: DoctorContext) -> bool:
    """Return whether nothing in the state folder can be checked; `check_state` reports it."""
    return find_obstacle(context.state) is not None


def _intact_ledger(context: DoctorContext) -> Path | None:
    """Return the ledger; None if it can't be read, which `check_ledger` or `check_state` reports."""
    path = context.state / LEDGER
    unreadable = _is_unusable(context) or lstat_or_none(path) is None or check_integrity(path)
    return None if unreadable else path


def _is_readable_by_others(path: Path) -> bool:
    info = lstat_or_none(path)
    return info is not None and not stat.S_ISLNK(info.st_mode) and bool(info.st_mode & 0o077)


def check_key(context: DoctorContext) -> Iterator[Finding]:
    """Check the file with the owner's key; `check_state` checks its permissions."""
    if _is_unusable(context):
        return
    path = context.state / KEY_FILE
    info = lstat_or_none(path)
    if info is None:
        return
    mend = "memex key reset --yes"  # replaces the file, whatever it is
    if stat.S_ISLNK(info.st_mode):
        yield Finding("wrong", f"{path} is a link, so other users may be able to read or change the key", mend)
    elif not stat.S_ISREG(info.st_mode):
        yield Finding("wrong", f"{path} is not a regular file", mend)
    elif info.st_uid != os.geteuid():
        yield Finding("wrong", f"{path} belongs to another user", mend)
    elif os.access(path, os.R_OK) and not path.read_bytes().strip():
        yield Finding("wrong", f"{path} is empty, so Memex refuses commands and clients that use it", mend)
    elif os.access(path, os.R_OK) and not SECRET.fullmatch(path.read_text("utf-8", "replace").strip()):
        yield Finding(
            "wrong", f"{path} contains no complete key, so Memex refuses commands and clients that use it", mend
        )
    elif os.access(path, os.R_OK) and (reason := _refusal(context, path.read_text().strip().split("_")[1])):
        yield Finding("wrong", f"the key in {path} {reason}, so Memex refuses clients that use it", mend)
    else:
        yield Finding("ok", f"{path} holds a key")


def _refusal(context: DoctorContext, id: str) -> str:
    """Return why the ledger refuses the key with this id; "" if it accepts the key, or can't be read."""
    if (path := _intact_ledger(context)) is None:
        return ""
    rows = {row[0]: row[1:] for row in query_read_only(path, "SELECT id, revoked_at, expires_at FROM keys")}
    if id not in rows:
        return "is unknown to the ledger"
    revoked_at, expires_at = rows[id]
    if revoked_at is not None:
        return "was revoked"
    return "has expired" if expires_at is not None and expires_at <= time.time() * 1000 else ""


def check_daemon(context: DoctorContext) -> Iterator[Finding]:
    """Check that a daemon holds the state folder and answers, and look for files that a crashed daemon left behind."""
    folder, pid = context.state, context.pid
    if _is_unusable(context):
        return
    if context.silent:
        mend = "memex stop; memex serve" if pid else "memex serve"
        yield Finding("wrong", f"process {pid or '?'} runs, but does not answer: {context.silent}", mend)
    elif context.daemon is None and pid is not None:
        says = (
            f"process {pid or '?'} holds {folder / 'lock'}, but does not listen: a starting daemon, or another command"
        )
        yield Finding("wrong", says, "memex status; if the process still does not listen: memex stop")
    elif context.daemon is None:
        left = [path for name in OF_A_DAEMON if lstat_or_none(path := folder / name)]
        if left:
            names = " and ".join(path.name for path in left)
            fix = partial(_remove_unheld_files, folder, left)
            yield Finding("wrong", f"a crashed daemon left {names}", "memex serve", fix)
        elif other := find_holder(context.vault):
            says = f"process {other} serves {context.vault} with another state folder than {folder}"
            yield Finding("wrong", says, f"name its state folder with --state, or stop it: kill {other}")
        else:
            yield Finding("advice", "no daemon is running, so changes are not indexed", "memex serve")
    else:
        yield from _check_running_daemon(context)


def _remove_unheld_files(state: Path, paths: Sequence[Path]) -> str:
    """Remove these files. Raises Conflict if a daemon has started since they were found: they may be its files."""
    with ProcessLock.acquire(state):
        return remove_files(*paths)


def _check_running_daemon(context: DoctorContext) -> Iterator[Finding]:
    assert context.daemon is not None
    theirs = context.daemon.get("version")
    if theirs and theirs != installed():
        says = f"process {context.pid} is version {theirs}, and this command {installed()}"
        yield Finding("wrong", says, "memex stop; memex serve")
    settling = not context.daemon["ready"] or context.daemon.get("encoder", {}).get("state") == "loading"
    for sentence in context.daemon["degraded"]:
        part, _, rest = str(sentence).partition(": ")
        if (
            part in ("git", "sandbox")
            or (part == "inbox" and not (context.vault / context.settings.vault.inbox).is_dir())
            or ("memex doctor names" in rest and closed_folders(context.vault / context.settings.vault.inbox))
        ):
            continue  # another check reports it, with its repair
        way = re.search("`(memex [^`]+)`", rest) or re.search(": (memex [^:]+)$", rest)
        rank: Rank = "advice" if settling or rest.startswith("still loading") else "wrong"
        other = "memex service logs" if rest.endswith(SEE_DOCTOR) else "memex status"
        yield Finding(rank, rest.removesuffix(SEE_DOCTOR), way[1] if way else other, check=part)
    try:
        url = read_daemon_url(context.state)
    except Unavailable:
        yield Finding("wrong", f"process {context.pid} runs, but has not recorded its address", "memex status")
        return
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{url}/healthz", timeout=ANSWER_S) as answer:
            yield Finding("ok", f"process {context.pid} answers at {url} ({answer.status})")
    except urllib.error.HTTPError as error:
        yield Finding("wrong", f"{url}/healthz answers {error.code}", "memex stop; memex serve")
    except OSError as error:
        says = f"process {context.pid} answers commands, but not at {url}: {error}"
        yield Finding("wrong", says, "memex stop; memex serve")


def check_ledger(context: DoctorContext) -> Iterator[Finding]:
    """Check the integrity of the ledger, which can't be rebuilt from the notes."""
    path = context.state / LEDGER
    if _is_unusable(context):
        return
    info = lstat_or_none(path)
    if info is None:
        if lstat_or_none(context.state) is not None:
            yield Finding("wrong", f"{path} is missing, so no key works", init_command(context.settings))
        return
    if info.st_uid != os.geteuid():
        return  # `check_state` reports it
    if wrong := check_integrity(path):
        mend = "memex restore BACKUP --force; without a backup: memex key reset --yes"
        if wrong.startswith(NEWER):
            mend = f"update Memex; or, with an older backup: {mend}"
        elif not is_damaged(path):
            mend = "memex status; another program may hold the file"
        yield Finding("wrong", f"{path.name}: {wrong}", mend)
    else:
        yield Finding("ok", f"{path.name} is intact")


def check_audit(context: DoctorContext) -> Iterator[Finding]:
    """Check the audit log: each entry is unchanged, and none is missing."""
    if (path := _intact_ledger(context)) is None:
        return
    try:
        asked = context.daemon is not None
        result = control_socket.call(context.state, "audit.verify", {"files": False}) if asked else _verify_chain(path)
    except MemexError as error:
        yield Finding("advice", f"the log can't be read: {error.message}", "memex audit verify")
        return
    if result["broken"]:
        says = f"the log is broken in {pluralize(result['broken'], 'place')}: {result['breaks'][0]}"
        yield Finding(
            "wrong",
            says,
            "memex audit verify; once you know the cause: memex audit prune --before 1m --to FILE --force",
        )
    else:
        yield Finding("ok", f"{pluralize(result['entries'], 'entry')}, all unchanged")


def _verify_chain(path: Path) -> dict[str, Any]:
    from syncd.history.audit_log import HEAD
    from syncd.history.digest_chain import EVERY, PRUNINGS, Entry, Head, check, find_base

    pruned = (Entry(*row) for row in query_read_only(path, PRUNINGS))
    try:
        head = Head.parse(read_regular_file(path.with_name(HEAD)).decode("ascii", "replace").partition("\n")[0])
    except OSError:  # it is missing, or `check_state` reports it
        head = None
    entries = (Entry(*row) for row in query_read_only(path, EVERY))
    return asdict(check(entries, find_base(pruned), heads=[head] if head else []))


def check_queue(context: DoctorContext) -> Iterator[Finding]:
    """Check the waiting and failed jobs, and the files that are staged for them."""
    from syncd.jobs.queued_job import UNFINISHED, unfinished_of_rows
    from syncd.jobs.staged_files import StagedFiles, find_unneeded

    if (path := _intact_ledger(context)) is None:
        return
    jobs = unfinished_of_rows(query_read_only(path, UNFINISHED))
    staged = StagedFiles(context.state / STAGED)
    lost = [job.id for job in jobs if job.needs_file and not staged.find(job.id)]
    for id in lost:
        yield Finding("wrong", f"the file of the job {id} is missing: upload it again", f"memex job show {id}")
    old = find_unneeded(staged.folder, [job.id for job in jobs if job.kind == "file"], older_s=STRAY_S)
    if old:
        says = "one staged file belongs to no job" if len(old) == 1 else f"{len(old):,} staged files belong to no job"
        yield Finding(
            "wrong",
            says,
            "memex job run remove-leftover-files",
            partial(remove_files, *(staged.folder / name for name in old)),
        )
    failed = sum(job.failed for job in jobs)
    if failed:
        yield Finding(
            "advice", f"{failed:,} jobs failed" if failed > 1 else "one job failed", "memex job queue --status failed"
        )
    if not (lost or old or failed):
        yield Finding(
            "ok",
            f"{len(jobs):,} jobs wait" if len(jobs) > 1 else "one job waits" if jobs else "no job waits or has failed",
        )


def check_index(context: DoctorContext) -> Iterator[Finding]:
    """Check the index in use. It is derived from the notes, so a rebuild repairs every fault."""
    if lstat_or_none(context.state) is None or _is_unusable(context):
        return
    try:
        wrong = _examine_index(context)
    except MemexError as error:
        wrong = {"index": error.message}
    for scope, text in wrong.items():
        if text:
            fix = partial(_rebuild_index, context) if not text.startswith("there is none") else None
            rank: Rank = "advice" if fix is None else "wrong"
            says = text if scope == "index" else f"{scope}: {text}"
            yield Finding(rank, says, "memex index --full" if fix else "memex index", fix)
    if not any(wrong.values()):
        yield Finding("ok", "catalog and chunks agree, for the captures and for your own notes")


def _examine_index(context: DoctorContext) -> dict[str, str]:
    if context.daemon is not None:
        return dict(control_socket.call(context.state, "index.examine", {}, timeout=120))
    from index.scope.integrity_check import check_index
    from syncd.indexes.build_inputs import build_in_use
    from syncd.indexes.index_builds import SCOPES, TEMPORARY

    root = context.state / "index"
    folder, inputs = build_in_use(root)
    if folder is None:
        left = root.is_dir() and any(entry.name != TEMPORARY for entry in root.iterdir())
        return {
            "index": "`current` does not name a build"
            if left
            else "there is none yet; Memex indexes the notes at the first start"
        }
    if inputs is None:
        return {"index": f"the build {folder.name} does not record its encoder and settings"}
    index_settings = context.settings.index
    uri = f"{index_settings.uri.rstrip('/')}/{folder.name}" if index_settings.uri else str(folder)
    return {scope: check_index(folder, scope, uri=uri, options=index_settings.storage_options) for scope in SCOPES}


def _rebuild_index(context: DoctorContext) -> str:
    """Rebuild the index in the daemon, or in this process if no daemon runs, and return a description of the repair.

    Raises Unavailable or Conflict if another process than the daemon holds the vault."""
    if context.daemon is not None:
        control_socket.call(context.state, "index", {"full": True})
    elif context.pid is not None:
        raise Unavailable("another process holds the vault")
    else:
        from syncd.app import App
        from syncd.installation.vault_setup import set_up_vault

        set_up_vault(context.settings, now=now_ms())
        try:
            _rebuild_here(App, context)
        except Conflict:  # a daemon or another command has started since, and uses the index
            raise
        except (MemexError, OSError):  # the index can't even be opened: it is derived, so remove it
            with ProcessLock.acquire(context.state):
                shutil.rmtree(context.state / "index", ignore_errors=True)
            _rebuild_here(App, context)
    return "Memex rebuilt the index from the notes"


def _rebuild_here(app: type[App], context: DoctorContext) -> None:
    with app(context.settings) as running:
        running.opened.embedder.wait()
        running.operations["index"]({"full": True}, lambda _: None)


def check_encoder(context: DoctorContext) -> Iterator[Finding]:
    """Check that each encoder loads the configured model and embeds a text."""
    if context.daemon is not None:
        if context.daemon.get("encoder", {}).get("state") == "ready":  # otherwise `check_daemon` reports it
            yield Finding("ok", "loaded by the daemon, and in use")
        return
    from index.encoders.embedder import load_encoder

    chosen = context.settings.embed
    cache = context.state / "models"
    for number, encoder_settings in enumerate(chosen.encoders):
        try:
            made = load_encoder(encoder_settings, cache, chosen.threads)
            try:
                vector = made.encode([PROBE], kind="document", urgent=True)[0]
            finally:
                made.close()
        except MemexError as error:
            rank: Rank = "wrong" if number == 0 else "advice"
            yield Finding(rank, error.message, _suggest_mend(error, "embed"))
        else:
            yield Finding("ok", f"{made.name} loads and embeds ({len(vector)} dimensions)")


def _suggest_mend(error: MemexError, section: str) -> str:
    from index.encoders.model_files import INSTALL

    return INSTALL if isinstance(error, LibrariesMissing) else f"memex config, section {section}"


def check_reranker(context: DoctorContext) -> Iterator[Finding]:
    """Check that the configured reranker loads, and scores a pool of passages within its time limit."""
    search = context.settings.search
    if not search.reranker:
        return
    if context.daemon is not None:
        sentences = {"ready": "loaded by the daemon", "unused": "the daemon loads it at the first search"}
        if says := sentences.get(context.daemon.get("reranker", {}).get("state", "")):
            yield Finding("ok", says)
        return  # otherwise `check_daemon` reports it
    from index.search.reranker import load_model

    try:
        model = load_model(search.reranker, context.settings.embed_section.threads)
        model.score(PROBE, [PROBE])
        begun = time.monotonic()
        for _ in range(search.rerank_pool):
            model.score(PROBE, [PASSAGE])
        seconds = time.monotonic() - begun
    except MemexError as error:
        yield Finding("wrong", error.message, _suggest_mend(error, "search"))
        return
    says = f"{model.name} judges {search.rerank_pool} passages in {seconds:.1f} s"
    if seconds > search.rerank_s:
        says += f", but a search waits only {search.rerank_s:g} s: lower search.rerank_pool or raise search.rerank_s"
        yield Finding("advice", says, "memex config, section search")
    else:
        yield Finding("ok", says)


STATE_CHECKS = (
    check_state,
    check_key,
    check_daemon,
    check_ledger,
    check_audit,
    check_queue,
    check_index,
    check_encoder,
    check_reranker,
)
