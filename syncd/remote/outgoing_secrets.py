"""Find secrets in outgoing commits before a push: text that the commits add to the inbox and that looks like a secret.

Law, tested: every text that would be sent counts, and so does its file name, even if a later commit removes it; what
the remote already has does not count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from index.errors import Unavailable
from syncd.git.repository import Repository, split_batch
from syncd.notes import secret_patterns
from syncd.vault.path_rules import is_note

_TOGETHER: Final = 16_000_000  # bytes of the files that are read together
_LIMIT_S: Final = 300.0


def find_leaks(repo: Repository, inbox: str, tip: str, known: str) -> list[tuple[str, str]]:
    """Return (path, kind of secret) for each secret in the inbox files and file names that a push of `tip` would send.

    `known` is the commit that the remote already has."""
    sent = {line.split(b" ", 1)[0] for line in _run_git(repo, "rev-list", "--objects", tip, f"^{known}").splitlines()}
    commits = _run_git(repo, "rev-list", tip, f"^{known}")
    # A merge is compared with each parent; `sent` then excludes blobs that the remote already has.
    named = _run_git(
        repo, "diff-tree", "--stdin", "--root", "-m", "-r", "-z", "--no-renames", "--no-commit-id", stdin=commits
    )
    blobs: dict[bytes, str] = {}
    names: set[str] = set()
    fields = iter(named.split(b"\0"))
    for raw in fields:
        if not raw.startswith(b":"):
            continue
        path = next(fields, b"").decode("utf-8", "surrogateescape")
        _, mode, _, blob, status = raw.split()
        if not path.startswith(f"{inbox}/"):
            continue
        if status == b"A":  # its folder's list of names is sent, even if the remote has the content already
            names.add(path)
        if blob in sent and mode.startswith(b"100"):
            blobs[blob] = path if is_note(path) else blobs.get(blob, path)
    leaks = {(path, kind) for path in names for kind in secret_patterns.find_secrets(path)}
    leaks = {(path, kind) for path, kind in leaks if not _history_names(repo, known, path)}
    for blob, raw in _read_blobs(repo, blobs):
        path = blobs[blob]
        leaks |= {(path, kind) for kind in secret_patterns.find_secrets(secret_patterns.readable_text(path, raw))}
    return sorted(leaks)


def _history_names(repo: Repository, known: str, path: str) -> bool:
    """Return whether a commit of the remote has had a file of this name."""
    asked = b"--\n" + path.encode("utf-8", "surrogateescape") + b"\n"
    return "\n" not in path and bool(_run_git(repo, "rev-list", "--max-count=1", known, "--stdin", stdin=asked))


def _read_blobs(repo: Repository, blobs: Mapping[bytes, str]) -> Iterator[tuple[bytes, bytes]]:
    """Yield those of the blobs, with their paths, that are searched, each with its bytes."""
    if not blobs:
        return
    sizes = _run_git(repo, "cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=b"\n".join(blobs) + b"\n")
    batch, total = list[bytes](), 0
    for line in sizes.splitlines():
        blob, size = line.split()
        if not secret_patterns.is_searched(blobs[blob], int(size)):
            continue
        if total + int(size) > _TOGETHER:
            yield from _read_batch(repo, batch)
            batch, total = [], 0
        batch.append(blob)
        total += int(size)
    yield from _read_batch(repo, batch)


def _read_batch(repo: Repository, blobs: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield these blobs, which one process reads, each with its bytes."""
    output = _run_git(repo, "cat-file", "--batch", stdin=b"".join(blob + b"\n" for blob in blobs))
    for blob, (name, _, raw) in zip(blobs, split_batch(output), strict=True):
        if not name:
            raise Unavailable("Git can't read one of the files to push, so nothing is pushed", retryable=False)
        yield blob, raw


def _run_git(repo: Repository, *words: str, stdin: bytes = b"") -> bytes:
    result = repo.run_in_session(*words, stdin=stdin, limit_s=_LIMIT_S)
    if result.code:
        raise Unavailable(
            f"Memex can't check the outgoing commits for secrets, so it pushes nothing: {result.said.strip()[:300]}"
        )
    return result.out
