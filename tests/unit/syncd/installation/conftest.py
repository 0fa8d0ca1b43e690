"""A state folder with a key, and an archive of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncd.installation.backup import pack
from syncd.state.ledger import Ledger
from syncd.workspaces.api_keys import ApiKeys
from tests.support.backup_archives import NOW


def keyed(state):
    """A state folder with a ledger that holds a key, and more; the key's secret."""
    state.mkdir(mode=0o700)
    ledger = Ledger.open(state / "ledger.db")
    _, secret = ApiKeys(ledger).create("bot", workspaces=None, now=1)
    ledger.close()
    (state / "key").write_text(secret + "\n")
    (state / "hooks").mkdir()
    (state / "hooks/secret").write_text("of a webhook")
    for name in ("index/build", "models", "bells"):
        (state / name).mkdir(parents=True)
        (state / name / "big").write_text("derived")
    for name in ("lock", "vault", "head", "daemon.json", ".key.tmp"):
        (state / name).write_text("x")
    return secret


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    keyed(folder)
    return folder


@pytest.fixture
def archive(tmp_path, state):
    settings = tmp_path / "config.toml"
    settings.write_text('[vault]\npath = "/old"\n')
    pack(state, tmp_path / "b.tar.gz", vault=Path("/old"), settings=settings, version="1", now=NOW)
    return tmp_path / "b.tar.gz"
