"""Define the owner's operations on the audit log: list entries, show one, check the chain, compare with the files, prune.

Law: only a prune adds or removes entries, and it writes the removed ones to a file first; no operation changes an
entry."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from index.errors import Conflict, InvalidArgument, MemexError, NotFound, Unavailable
from syncd.daemon.control_socket import Arguments, Operation, Progress
from syncd.history import digest_chain
from syncd.history.audit_log import WANTED, AuditLog
from syncd.history.digest_chain import ChainCheck, Entry, Head
from syncd.history.note_history import NoteHistory
from syncd.state.folder import sync_folder
from syncd.vault.location import locate
from syncd.vault.path_rules import to_printable
from syncd.vault.vault import Vault

MOST = 10_000  # entries in one answer


def operations(audit: AuditLog, vault: Vault, history: NoteHistory, *, inbox: str) -> dict[str, Operation]:
    """Return the owner's operations on the log, by name."""

    def list_entries(arguments: Arguments, _: Any) -> list[dict[str, Any]]:
        limit = arguments.get("limit") or 50
        if not 1 <= limit <= MOST:
            raise InvalidArgument(f"limit must be between 1 and {MOST:,}")
        wanted = {name: arguments.get(name) for name in WANTED}
        return [asdict(entry) for entry in audit.find(limit, after=arguments.get("after"), masked=True, **wanted)]

    def show(arguments: Arguments, _: Any) -> dict[str, Any]:
        seq = int(arguments["entry"])
        shown, real = (next(iter(audit.find(1, after=seq - 1, masked=masked)), None) for masked in (True, False))
        if shown is None or real is None or shown.seq != seq:
            raise NotFound(f"the log has no entry {seq}; it has entries {audit.base().seq + 1} to {audit.head.seq}")
        return asdict(shown) | history.explain_entry(real)

    def verify(arguments: Arguments, progress: Progress) -> dict[str, Any]:
        head = _parse_head(arguments.get("head"))
        result = asdict(_verify_chain(audit, [head] if head else [], progress))
        if arguments.get("files", True):
            result |= _compare_files(audit, vault, inbox)
        return result | {"head": str(audit.head)}

    def prune(arguments: Arguments, _: Any) -> dict[str, Any]:
        gone, base = audit.last_prunable(int(arguments["before"])), audit.base()
        if gone <= base.seq:
            return {"pruned": 0, "file": None, "head": str(audit.head)}
        if (
            not arguments.get("force")
            and (chain := digest_chain.check(_entries_up_to(audit.entries(), gone), base)).broken
        ):
            raise Conflict(f"the log is broken, so nothing was pruned: {chain.breaks[0]}; to prune anyway: --force")
        _write_entries(Path(arguments["file"]), _entries_up_to(audit.entries(), gone))
        return {"pruned": audit.prune(gone), "file": arguments["file"], "head": str(audit.head)}

    return {"audit.list": list_entries, "audit.show": show, "audit.verify": verify, "audit.prune": prune}


def verify_file(lines: Iterable[str], head: str | None) -> ChainCheck:
    """Verify exported entries, given as lines of JSON."""
    try:
        entries = [digest_chain.parse_line(line) for line in lines if line.strip()]
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidArgument(f"the file has a line that is not an entry of an audit log: {error}") from error
    base: Head | None = digest_chain.find_base(entries)
    if entries and base and base.seq + 1 != entries[0].seq:
        base = None if entries[0].seq > 1 else Head()  # an excerpt: nothing is known about the entry before it
    noted = _parse_head(head)
    return digest_chain.check(entries, base, heads=[noted] if noted else [])


def _parse_head(text: str | None) -> Head | None:
    if not text:
        return None
    head = Head.parse(text)
    if head is None:
        raise InvalidArgument("a head is an entry's number and seal, as `memex status` shows it: 1234:ab12…")
    return head


def _verify_chain(audit: AuditLog, heads: Iterable[Head], progress: Progress) -> ChainCheck:
    end, total = audit.head, audit.count
    noted = audit.saved_head()

    def entries() -> Iterable[Entry]:
        for done, entry in enumerate(_entries_up_to(audit.entries(), end.seq)):
            if done % 1000 == 0:
                progress({"stage": "checking seals", "done": done, "total": total})
            yield entry

    return digest_chain.check(
        entries(), audit.base(), heads=[*heads, end, *([noted] if noted and noted.seq <= end.seq else [])]
    )


def _entries_up_to(entries: Iterable[Entry], last: int) -> Iterable[Entry]:
    """Yield the entries up to number `last`; later entries are new and not checked."""
    for entry in entries:
        if entry.seq > last:
            return
        yield entry


def _compare_files(audit: AuditLog, vault: Vault, inbox: str) -> dict[str, Any]:
    """Compare the files with the last digests in the log: changed manually, removed manually, never logged, or unread.

    `unread`: why, by the path of a file or of a folder of the inbox."""
    known = audit.last_digests()
    listing = vault.list_notes(inbox)
    changed, gone = [], []
    unread = {(name := to_printable(path) or "."): listing.skipped[name] for path in listing.unread}
    for path, after in known.items():
        try:
            digest = vault.digest_file(path).digest
        except NotFound:
            if after and listing.is_gone(path):
                gone.append(path)
        except MemexError as error:
            if after:
                unread[path] = error.message.removeprefix(f"{path} ")
        else:
            if digest != after:
                changed.append(path)
    files = (path for path in listing.files if locate(path, inbox).scope == "captures")
    unlogged = sorted(set(files) - known.keys())
    return {
        "changed": sorted(changed),
        "gone": sorted(gone),
        "unlogged": unlogged,
        "unread": dict(sorted(unread.items())),
    }


def _write_entries(target: Path, entries: Iterable[Entry]) -> None:
    """Write entries as lines of JSON into a new, private file, and sync it to disk."""
    try:
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Conflict(f"{target} exists: choose another name") from None
    except OSError as error:
        raise Unavailable(f"{target} can't be written: {error.strerror}", retryable=False) from error
    try:
        with open(fd, "w", encoding="utf-8") as stream:  # noqa: PTH123 - the descriptor makes the file private
            stream.writelines(digest_chain.format_line(entry) + "\n" for entry in entries)
            stream.flush()
            os.fsync(fd)
        sync_folder(target.parent)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
