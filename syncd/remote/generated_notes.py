"""Merge the notes that Memex generates on each device, where Git finds a conflict in them.

Law, tested: nothing is written but objects of Git; a file that a person must merge stays in conflict."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeAlias

from index.errors import Unavailable
from syncd.git.repository import Repository

# Merges our version of a note with the other one; returns None if only a person can do so.
MergeNote: TypeAlias = Callable[[bytes, bytes], bytes | None]


def merge_generated(
    repo: Repository, tree: str, commits: tuple[str, str], paths: Collection[str], merge: MergeNote
) -> str | None:
    """Return `tree`, Git's merge of two commits, with all `paths` in conflict merged; None if only a person can do so."""
    merged: dict[str, bytes] = {}
    for path in paths:
        versions = _read_versions(repo, path, commits)
        text = merge(*versions) if versions is not None else None
        if text is None:
            return None
        merged[path] = text
    return _write_tree(repo, tree, merged) if merged else None


def _read_versions(repo: Repository, path: str, commits: tuple[str, str]) -> tuple[bytes, bytes] | None:
    """Return the bytes of a file in two commits; None if one of them has no such file."""
    if "\n" in path:
        return None
    asked = "".join(f"{commit}:{path}\n" for commit in commits)
    answer = repo.query("cat-file", "--batch-check=%(objectname)", stdin=asked) or ""
    names = [name for name in answer.split("\n") if " " not in name]  # the answer for a missing file has blanks
    blobs = repo.read_blobs(names)
    return (blobs[names[0]], blobs[names[1]]) if len(names) == 2 and blobs.keys() >= set(names) else None


def _write_tree(repo: Repository, tree: str, files: dict[str, bytes]) -> str:
    """Return a tree like `tree` with these files."""
    with tempfile.TemporaryDirectory(prefix="memex-") as folder:
        env = {"GIT_INDEX_FILE": str(Path(folder, "index"))}

        def run(*words: str, stdin: bytes = b"") -> str:
            result = repo.run(*words, stdin=stdin, env=env)
            if result.code:
                raise Unavailable(f"git {words[0]} failed: {result.said or result.code}")
            return result.text

        run("read-tree", tree)
        lines = [f"100644 {run('hash-object', '-w', '--stdin', stdin=raw)}\t{path}\0" for path, raw in files.items()]
        run("update-index", "-z", "--index-info", stdin="".join(lines).encode("utf-8", "surrogateescape"))
        return run("write-tree")
