"""An audit log alone, and one of a whole vault."""

from __future__ import annotations

import pytest

from syncd.history.audit_log import AuditLog
from tests.support.world import World


@pytest.fixture
def audit(ledger, tmp_path):
    opened = AuditLog(ledger, tmp_path / "state")
    yield opened
    opened.close()


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()
