"""A vault, opened with the best calls of the system and with those that every system has."""

from __future__ import annotations

import pytest

from syncd.vault.openat import Calls, open_stepwise
from syncd.vault.vault import Vault
from tests.support import temporary_folders

tmp_path = temporary_folders.tmp_path_on_disk


@pytest.fixture(params=["best", "stepwise"])
def vault(request, tmp_path):
    root = tmp_path / "vault"
    root.mkdir()
    made = Vault(root, max_bytes=1000, calls=Calls() if request.param == "best" else Calls(open=open_stepwise))
    yield made
    made.close()
