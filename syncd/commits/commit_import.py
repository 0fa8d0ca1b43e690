"""Write commits as Git objects with one `git fast-import`, however many they are.

Laws, tested: no reference and no configuration of the repository changes, no hook of it runs, and paths and messages reach
Git through standard input. Protocol: https://git-scm.com/docs/git-fast-import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from syncd.git.repository import GitResult, IndexChange, Repository

_FOLDER: Final = "git"  # a Git folder without objects, whose branch is all that fast-import changes besides objects
_BRANCH: Final = "refs/heads/memex"
_SHA256: Final = 64  # hex digits of an object's name in a repository that uses SHA-256
# From this number of objects on they stay in one pack. In a pack, the trees of a large folder take little more than their changes,
# but Git looks through all packs, so a commit alone makes none.
_PACKED: Final = {"fastimport.unpackLimit": "40"}


@dataclass(frozen=True, slots=True)
class ImportedCommit:
    """Describes a commit to write; author and committer as `git var` prints them, with time and time zone."""

    changes: Mapping[str, IndexChange]  # by path
    message: str
    author: bytes
    committer: bytes


def import_commits(
    repo: Repository, folder: Path, parent: str | None, commits: Sequence[ImportedCommit], config: Mapping[str, str]
) -> GitResult:
    """Write these commits, each on top of the one before, the first on `parent`; the output has a line with the name of each.

    `folder` is private and gets a Git folder of its own. `config` holds settings of Git, by name."""
    blob = next(change.blob for commit in commits for change in commit.changes.values())
    git_folder, common = folder / _FOLDER, repo.common_folder()
    _make_git_folder(git_folder, is_sha256=len(blob) == _SHA256)
    # The person's settings also say how new files of a shared repository can be read.
    settings = [("include.path", str(common / "config")), *config.items(), *_PACKED.items()]
    env = {"GIT_DIR": str(git_folder), "GIT_OBJECT_DIRECTORY": str(common / "objects"), "GIT_WORK_TREE": str(folder)}
    return repo.run(
        "fast-import", "--quiet", stdin=b"".join(_stream(parent, commits)), env=env | config_variables(settings)
    )


def config_variables(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the variables that give Git these settings, in this order."""
    pairs = list(settings)
    keys = {f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in enumerate(pairs)}
    values = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(pairs)}
    return {"GIT_CONFIG_COUNT": str(len(pairs)), **keys, **values}


def _make_git_folder(folder: Path, *, is_sha256: bool) -> None:
    (folder / "refs").mkdir(parents=True, exist_ok=True)
    (folder / "HEAD").write_text(f"ref: {_BRANCH}\n", "ascii")
    extension = "\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n" if is_sha256 else ""
    (folder / "config").write_text(f"[core]\n\tbare = true\n{extension}", "ascii")


def _stream(parent: str | None, commits: Sequence[ImportedCommit]) -> Iterator[bytes]:
    yield b"feature done\n"
    for number, commit in enumerate(commits, 1):
        message = commit.message.encode()
        yield b"commit %s\nmark :%d\nauthor %s\ncommitter %s\n" % (
            _BRANCH.encode(),
            number,
            commit.author,
            commit.committer,
        )
        yield b"data %d\n%s\n" % (len(message), message)
        if parent and number == 1:
            yield f"from {parent}\n".encode()
        # Removals first, so that they don't remove what a new path put in their place.
        for path, change in sorted(commit.changes.items(), key=lambda item: (not item[1].is_removal, item[0])):
            head = "D" if change.is_removal else f"M {change.mode} {change.blob}"
            yield head.encode() + b" " + _quote(path) + b"\n"
        yield b"\nget-mark :%d\n" % number
    yield b"done\n"


def _quote(path: str) -> bytes:
    raw = path.encode("utf-8", "surrogateescape")
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
