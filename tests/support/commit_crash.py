"""A vault under Git, and the parts of Memex that commit its writes, with crashes at chosen calls."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from syncd.commits.committer import Committer
from syncd.git.repository import Repository
from syncd.history.audit_log import AuditLog, Author, acting_as
from syncd.history.audited_vault import AuditedVault
from syncd.settings.automation import GitSettings
from syncd.state.ledger import Ledger

CODE = Author("mcp", "capture_thought", "k1", "claude-code")
CHAT = Author("rest", "capture_thought", "k2", "chat")
DAEMON = Author("daemon", "enrichment")
A, B = "Captures/default/A.md", "Captures/default/B.md"


def git(folder: Path, *words: str, check: bool = True, **more: str) -> str:
    """Return Git's output for a person who works in `folder`."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
        **more,
    }
    who = ("-c", "user.name=Person", "-c", "user.email=p@example.org")
    ran = subprocess.run(["git", "-C", str(folder), *who, *words], env=environ, check=check, capture_output=True)
    return ran.stdout.decode("utf-8", "surrogateescape")


class Rig:
    """One vault with its committer; `person` edits files directly, `agent` writes through the log."""

    def __init__(self, folder: Path, *options: str, begin: bool = True, **settings: object) -> None:
        self.vault, self.state = folder / "my $HOME vault", folder / "state"
        (self.vault / "Captures/default").mkdir(parents=True, exist_ok=True)
        self.state.mkdir(mode=0o700, exist_ok=True)
        self.settings = GitSettings(**{"quiet_s": 0.0, "every_s": 0.0, **settings})  # type: ignore[arg-type]
        if not (self.vault / ".git").exists():
            git(self.vault, "init", "-q", "-b", "main", *options)
            if begin:
                self.person("Note.md", "mine\n")
                git(self.vault, "add", "-A")
                git(self.vault, "commit", "-qm", "begin")
        self.open()

    def open(self) -> None:
        """Open the parts, as a daemon does at its start."""
        self.ledger = Ledger.open(self.state / "ledger.db")
        self.audit = AuditLog(self.ledger, self.state)
        self.files = AuditedVault(self.vault, self.audit, inbox="Captures")
        self.repo = Repository(self.vault)
        self.commits = Committer(
            self.repo, self.files, self.audit, self.ledger, self.settings, state=self.state, inbox="Captures"
        )

    def close(self) -> None:
        """End."""
        self.files.close()
        self.audit.close()
        self.ledger.close()

    def agent(self, path: str, text: str | bytes | None, author: Author = CODE) -> None:
        """Create, change or remove (None) a file, as a tool does."""
        raw = text.encode() if isinstance(text, str) else text
        with acting_as(author):
            if self.files.stat(path) is None:
                self.files.create(path, raw or b"")
                return
            digest = hashlib.sha256(self.files.read(path)[0]).hexdigest()
            if raw is None:
                self.files.remove(path, digest=digest)
            else:
                self.files.replace(path, raw, digest=digest)

    def person(self, path: str, text: str | bytes | None) -> None:
        """Write a file as an editor does."""
        file = self.vault / path
        if text is None:
            file.unlink()
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def git(self, *words: str, **more: object) -> str:
        """Return Git's output for the person."""
        return git(self.vault, *words, **more)  # type: ignore[arg-type]

    def pending(self) -> tuple[str, str]:
        """Return the person's changed and staged files."""
        return self.git("diff"), self.git("diff", "--cached")

    def subjects(self) -> list[str]:
        """Return the subjects of all commits, the oldest first."""
        return self.git("log", "--reverse", "--format=%s").splitlines()

    def held(self, path: str) -> bytes | None:
        """Return the content of a path in HEAD."""
        told = subprocess.run(
            ["git", "-C", str(self.vault), "cat-file", "-p", f"HEAD:{path}"], capture_output=True, check=False
        )
        return None if told.returncode else told.stdout

    def status(self) -> list[str]:
        """Return the output of `git status`."""
        return self.git("status", "--porcelain", "--untracked-files=all").splitlines()


def made(folder: Path, *options: Any, **more: Any) -> Rig:
    return Rig(folder, *options, **more)


# A process that flushes, and dies at one of the calls by which it changes something; `python -m tests.support.commit_crash FOLDER N`.
CHANGING = frozenset(["subprocess.Popen", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree", "open"])


def dying(folder: Path, at: int) -> None:
    """Flush, and die at the `at`-th call; 0 = at no call."""
    calls = 0
    rig = Rig(folder)

    def die(event: str, args: tuple[object, ...]) -> None:
        nonlocal calls
        if event == "subprocess.Popen" or (event in CHANGING and str(folder) in str(args[0] if args else "")):
            calls += 1
            if calls == at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(die)
    os.write(1, b"begun\n")
    rig.commits.flush()
    os.write(1, f"{calls}\n".encode())


if __name__ == "__main__":
    dying(Path(sys.argv[1]), int(sys.argv[2]))
