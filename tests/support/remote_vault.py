"""A vault with a bare remote and another clone, and the parts that sync them."""

from __future__ import annotations

from syncd.context.generated_note import merge_notes
from syncd.git.repository import Repository
from syncd.history.audit_log import AuditLog
from syncd.history.audited_vault import AuditedVault
from syncd.remote.branch_sync import PARKED, RemoteSync
from syncd.settings.automation import GitSettings
from syncd.state.ledger import Ledger
from tests.support.fresh_ledger import put_ledger
from tests.support.git_states import run, with_remote

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class SyncedDevice:
    """A vault with a remote, another device's clone, and the parts that sync the vault."""

    def __init__(self, folder, *options, **settings):
        self.vault, self.state = with_remote(folder, "My $HOME vault – ü 'x'", *options), folder / "state"
        self.bare, self.clone = folder / "remote.git", folder / "clone"
        self.state.mkdir()
        run(folder, "clone", "-q", str(self.bare), str(self.clone))
        self.repo = Repository(self.vault)
        self.ledger = Ledger.open(put_ledger(self.state))
        self.audit = AuditLog(self.ledger, self.state)
        self.notes = AuditedVault(self.vault, self.audit, inbox="Captures")
        self.calls, self.flushed = [], []
        self.remote = self.made(**settings)

    def made(self, **settings):
        return RemoteSync(
            self.repo,
            self.state,
            GitSettings(**{"timeout_s": 5.0, **settings}),
            inbox="Captures",
            merge_note=merge_notes,
            flush=lambda: self.flushed.pop() if self.flushed else 0,
            reserved=self.notes.reservations.reserve,
            moved=lambda: self.calls.append("moved"),
            untied=lambda: self.calls.append("untied"),
        )

    def close(self):
        self.notes.close()
        self.audit.close()
        self.ledger.close()

    def here(self, path, text, *, commit=True):
        self._write(self.vault, path, text, commit)

    def there(self, path, text, *, push=True):
        """Pull on the other device, change and commit a file there, and push it."""
        run(self.clone, "pull", "-q", "--no-rebase")
        self._write(self.clone, path, text, True)
        if push:
            run(self.clone, "push", "-q")

    def _write(self, root, path, text, commit):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            file.unlink()
        else:
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        if commit:
            run(root, "add", "-A")
            run(root, "commit", "-qm", f"{path} of {root.name}")

    def head(self, root=None, ref="HEAD"):
        return run(root or self.vault, "rev-parse", ref)

    def text(self, path):
        return (self.vault / path).read_text()

    def files(self):
        """Return the bytes of every file of the vault, except Git's own folder."""
        return {
            str(path.relative_to(self.vault)): path.read_bytes()
            for path in sorted(self.vault.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        }

    def parked(self):
        return run(self.vault, "for-each-ref", "--format=%(objectname)", PARKED).split()
