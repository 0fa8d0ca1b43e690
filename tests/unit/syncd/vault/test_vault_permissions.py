"""What a vault's account may not read or write is named and kept."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from index.errors import Unavailable
from syncd.vault.vault import Vault
from tests.support.paths import ROOT
from tests.support.vault_files import sha

AS_ROOT = os.geteuid() == 0

TRIED = """
    import hashlib, json, sys
    from pathlib import Path
    from index.errors import MemexError
    from syncd.vault.vault import Vault
    vault = Vault(Path(sys.argv[1]))
    listing = vault.list_notes()
    told = {}
    one = hashlib.sha256(b"text").hexdigest()
    for name, attempt in {
        "read": lambda: vault.read("secret.md"), "create": lambda: vault.create("locked/n.md", b""), "replace": lambda: vault.replace("locked/n.md", b"", digest=one),
        "remove": lambda: vault.remove("locked/n.md", digest=one), "folder": lambda: vault.make_folder("locked/f"), "stat": lambda: vault.stat("closed/n.md"),
        "look": lambda: vault.read("closed/n.md"), "folders": lambda: vault.list_folders("closed"), "rmdir": lambda: vault.remove_folder("locked/empty"),
    }.items():
        try:
            attempt()
        except MemexError as error:
            told[name] = [error.code, error.message]
    writable = {folder: vault.can_write(folder) for folder in ("", "locked", "closed", "open", "gone")}
    print(json.dumps([writable, sorted(listing.files), listing.skipped, listing.complete, listing.is_gone("closed/n.md"), listing.is_gone("open/gone.md"), told, vault.remove_leftovers()]))
"""


@pytest.mark.skipif(not AS_ROOT or not shutil.which("setpriv"), reason="needs root to become somebody else")
def test_what_the_account_may_not_touch_is_named_and_kept(tmp_path):
    root = tmp_path / "vault"
    for path in ("secret.md", "closed/n.md", "locked/n.md", "open/n.md", "locked/empty/x"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"text")
    (root / "locked/empty/x").unlink()
    for folder in (root, *root.parents):
        if folder != Path("/") and folder.is_relative_to(tmp_path.parent.parent.parent):
            folder.chmod(0o755)
    (root / "secret.md").chmod(0o000)
    (root / "closed").chmod(0o000)
    (root / "locked").chmod(0o755)
    (root / "open").chmod(0o777)
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c"]
    env = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    if subprocess.run(
        [*other, "import syncd.vault.vault"], cwd="/", env=env, capture_output=True, check=False
    ).returncode:
        pytest.skip("another user can't run this Python, or read this project")
    command = [*other, textwrap.dedent(TRIED), str(root)]
    done = subprocess.run(command, cwd="/", env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    writable, files, skipped, complete, gone_in_closed, gone_in_open, told, swept = json.loads(done.stdout)
    assert writable == {"": False, "locked": False, "closed": False, "open": True, "gone": True}
    assert files == ["locked/n.md", "open/n.md", "secret.md"]
    assert list(skipped) == ["closed"]
    assert "permission denied" in skipped["closed"]
    assert (complete, gone_in_closed, gone_in_open, swept) == (False, False, True, [])
    assert set(told) == {"read", "create", "replace", "remove", "folder", "stat", "look", "folders", "rmdir"}
    assert all(
        code == "UNAVAILABLE" and "permission denied" in message and str(tmp_path) not in message
        for code, message in told.values()
    )


@pytest.mark.skipif(not AS_ROOT or not shutil.which("mount"), reason="needs root to mount a disk read-only")
def test_a_read_only_disk_is_named(tmp_path):
    if subprocess.run(["mount", "-t", "tmpfs", "none", tmp_path], capture_output=True, check=False).returncode:
        pytest.skip("this machine mounts no tmpfs")
    try:
        (tmp_path / "a.md").write_bytes(b"text")
        subprocess.run(["mount", "-o", "remount,ro", tmp_path], check=True)
        vault = Vault(tmp_path)
        assert not vault.can_write()
        for change in (
            lambda: vault.create("b.md", b""),
            lambda: vault.replace("a.md", b"", digest=sha(b"text")),
            lambda: vault.remove("a.md", digest=sha(b"text")),
        ):
            with pytest.raises(Unavailable, match="read-only"):
                change()
        assert vault.read("a.md")[0] == b"text"
        vault.close()
    finally:
        subprocess.run(["umount", tmp_path], check=True)
