"""The audit log is pruned: what goes is written into a file first, and the chain and what is known of files stay."""

from __future__ import annotations

import pytest

from index.errors import Conflict, Unavailable
from syncd.history import audit_log as log
from syncd.history.audit_log import AuditLog, Events
from syncd.history.digest_chain import Head, check, parse_line
from syncd.owner.audit import verify_file
from tests.support.audit_entries import change, log_write, owner


def test_a_prune_keeps_the_chain_and_what_is_known_of_files(ledger, audit, tmp_path, monkeypatch):
    now = [1000]
    monkeypatch.setattr(log.time, "time_ns", lambda: now[0] * 1_000_000)
    log_write(audit, change(path="gone.md", after="1"))
    log_write(audit, change(path="gone.md", before="1", after=""))
    log_write(audit, change(path="kept.md", after="2", type="entity", id="node"))
    log_write(audit, change(path="later.md", after="3"))
    now[0] = 2000
    log_write(audit, change(path="later.md", before="3", after="4"))
    assert audit.last_prunable(1000) == 0
    assert audit.last_prunable(2000) == 4
    assert audit.last_prunable(9000) == 4  # the newest entry always stays
    head = audit.head
    assert audit.prune(4) == 4
    kinds = [(entry.kind, entry.path) for entry in audit.entries()]
    assert kinds == [("update", "later.md"), ("pruned", ""), ("kept", "kept.md")]
    assert audit.last_digests() == {"later.md": "4", "kept.md": "2"}
    assert check(audit.entries(), audit.base(), heads=[head, audit.head]).broken == 0
    assert audit.count_events("default", 0, {"node"}) == Events(0, 0, 0, 0)
    again = AuditLog(ledger, tmp_path / "state")
    log_write(again, change(path="kept.md", before="2", after="5", type="entity"))
    assert [entry.kind for entry in again.find(2)] == ["kept", "update"]  # nothing was changed by hand
    again.close()
    ledger._connection.execute("DELETE FROM audit WHERE kind = 'pruned'")
    assert check(audit.entries(), audit.base()).broken  # entries that went otherwise are missing


def test_a_log_that_was_pruned_twice_is_provable_piece_by_piece(world, tmp_path):
    workspace = world.app.agent_access.workspace("default")
    heads = []
    for piece in range(2):
        for n in range(3):
            workspace.capture(f"note {piece} {n}")
        heads.append(str(world.app.opened.audit.head))
        assert owner(world, "audit.prune", before=2**60, file=str(tmp_path / f"{piece}.jsonl"))["pruned"]
    first, second = ((tmp_path / f"{piece}.jsonl").read_text().splitlines() for piece in range(2))
    assert [parse_line(text).seq for text in first + second] == list(range(1, len(first + second) + 1))
    assert (
        verify_file(first, None).broken
        == verify_file(second, None).broken
        == verify_file(first + second, heads[0]).broken
        == 0
    )
    assert verify_file(second, heads[0]).broken == 0
    assert "begins at entry" in verify_file(second, str(Head(1, parse_line(first[0]).seal))).breaks[0]
    found = owner(world, "audit.verify")
    assert (found["broken"], found["changed"], found["unlogged"]) == (0, [], [])
    assert "where older entries were moved" in owner(world, "audit.verify", head=heads[0])["breaks"][0]


def test_a_prune_writes_what_goes_into_a_private_file_first(world, tmp_path):
    workspace = world.app.agent_access.workspace("default")
    for n in range(5):
        workspace.capture(f"note {n}")
    target = tmp_path / "old.jsonl"
    assert owner(world, "audit.prune", before=0, file=str(target))["pruned"] == 0
    assert not target.exists()
    done = owner(world, "audit.prune", before=2**60, file=str(target))
    assert done["pruned"] == 4
    assert target.stat().st_mode & 0o777 == 0o600
    lines = target.read_text().splitlines()
    assert [parse_line(text).seq for text in lines] == [1, 2, 3, 4]
    assert verify_file(lines, None).broken == 0
    found = owner(world, "audit.verify")
    assert (found["broken"], found["first"], found["changed"], found["unlogged"]) == (0, 5, [], [])
    with pytest.raises(Conflict, match="choose another name"):
        owner(world, "audit.prune", before=2**60, file=str(target))
    with pytest.raises(Unavailable, match="can't be written"):
        owner(world, "audit.prune", before=2**60, file=str(tmp_path / "no" / "where"))
    world.app.opened.ledger._connection.execute("UPDATE audit SET tool = 'forged' WHERE seq = 5")
    with pytest.raises(Conflict, match="the log is broken"):
        owner(world, "audit.prune", before=2**60, file=str(tmp_path / "other"))
    workspace.capture("one more")
    assert owner(world, "audit.prune", before=2**60, file=str(tmp_path / "other"), force=True)["pruned"]
    assert verify_file((tmp_path / "other").read_text().splitlines(), None).broken  # it is told there
    assert owner(world, "audit.verify")["broken"] == 0
