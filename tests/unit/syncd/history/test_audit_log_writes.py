"""Every write of the owner, of a job or of the index into a real vault has its entry, on the disk before the file changes."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from syncd.history.audited_vault import AuditedVault
from syncd.history.digest_chain import format_line
from syncd.installation import backup
from syncd.state.ledger import query_read_only
from tests.support.audit_entries import change, log_write, owner, sha, told, unwritable


def test_what_is_told_of_a_write_is_true_of_the_file(world):
    record = (
        world.app.agent_access.workspace("default")
        .capture("secret words of the note", metadata={"project": "hush"})
        .record
    )
    (entry,) = world.app.opened.audit.entries()
    raw = (world.vault / record.path).read_bytes()
    assert (entry.id, entry.path, entry.bytes, entry.before, entry.after) == (
        *(record.id, record.path, len(raw), "", sha(raw)),
    )
    assert "hush" not in format_line(entry)
    assert world.app.opened.audit.last_digests() == {record.path: sha(raw)}


def files(world):
    """Every note as it lies there: its bytes, and which file it is."""
    return {
        str(path.relative_to(world.vault)): (path.read_bytes(), path.stat().st_ino)
        for path in world.vault.rglob("*.md")
    }


def test_every_operation_of_the_owner_that_writes_has_one_entry_for_each_file(world):
    world.write("Captures/default/dropped.md", "A note about herons and reeds that somebody dropped in.\n")
    made = owner(world, "capture", content="The weir was opened in 1911 by the miller of the village.")
    owner(world, "index")
    before, seen = files(world), world.app.opened.audit.head.seq
    written = {}
    for name, asked in (
        ("capture", {"content": "one"}),
        ("enrich", {"id": made["id"], "replace": True}),
        ("enrich.backfill", {}),
        ("delete", {"id": made["id"]}),
        *((name, {}) for name in ("index", "check", "recent", "status", "workspace.list", "key.list", "job.list")),
    ):
        owner(world, name, **asked)
        after = files(world)
        changed = [path for path in before | after if before.get(path) != after.get(path)]
        entries = list(world.app.opened.audit.entries(seen + 1))
        assert sorted(entry.path for entry in entries) == sorted(changed), name
        assert all((entry.surface, entry.tool) == ("cli", name) and entry.request for entry in entries), name
        written[name] = len(entries)
        before, seen = after, world.app.opened.audit.head.seq
    assert {name for name, count in written.items() if count} == {"capture", "enrich", "enrich.backfill", "delete"}
    assert owner(world, "audit.verify")["changed"] == []


def test_the_pipe_s_own_writes_and_jobs_are_the_daemon_s(world):
    world.write("Captures/default/dropped.md", "A note about herons and reeds that somebody dropped in.\n")
    world.run()
    assert told(world) == [("update", "daemon", "adoption", "Captures/default/dropped.md")]
    record = world.app.opened.builds.scopes["captures"].index.record_at("Captures/default/dropped.md")
    world.app.opened.enricher.add_retry(record.workspace, record.id, 0)
    world.app.jobs.run("enrichment")
    assert told(world, 1) == [("update", "daemon", "enrichment", "Captures/default/dropped.md")]


def test_an_adoption_that_can_not_be_logged_waits(world):
    world.write("Captures/default/dropped.md", "dropped herons\n")
    with unwritable(world.app.opened.ledger):
        world.run()
        assert (world.vault / "Captures/default/dropped.md").read_text() == "dropped herons\n"
        assert world.found("herons")
    world.run()
    assert told(world) == [("update", "daemon", "adoption", "Captures/default/dropped.md")]


def test_a_log_that_can_not_be_written_is_told_until_it_can(world):
    workspace = world.app.agent_access.workspace("default")
    kept = workspace.capture("kept all along").record
    with unwritable(world.app.opened.ledger):
        files = {path: path.read_bytes() for path in world.vault.rglob("*.md")}
        for write in (
            lambda: workspace.capture("new"),
            lambda: workspace.capture("kept all along"),
            lambda: workspace.delete(kept.id),
        ):
            with pytest.raises(Unavailable, match="audit log"):
                write()
        assert {path: path.read_bytes() for path in world.vault.rglob("*.md")} == files
        assert workspace.get(kept.id).content == "kept all along"
        assert world.found("kept") == [kept.path]
        assert any(text.startswith("audit: ") for text in owner(world, "status")["degraded"])
    workspace.capture("new")
    assert not any(text.startswith("audit: ") for text in owner(world, "status")["degraded"])
    assert owner(world, "audit.verify")["broken"] == 0


def test_the_entry_is_on_the_disk_before_anything_of_the_file_is(world):
    vault, seen = world.app.opened.vault, []
    real = vault._calls

    def counting(*given):
        if given[2] & os.O_CREAT:  # the temporary file, the first of all
            seen.extend(query_read_only(world.state / "ledger.db", "SELECT kind FROM audit"))
        return real.open(*given)

    vault._calls = replace(real, open=counting)
    stat = vault.create("Captures/default/new.md", b"one")
    vault.replace("Captures/default/new.md", b"two", digest=sha(b"one"))
    vault._calls = real
    assert stat.size == 3
    assert seen == [("create",), ("create",), ("update",)]


def test_a_write_that_is_refused_before_it_begins_has_no_entry(world):
    world.write("Captures/default/there.md", "there\n")
    vault = world.app.opened.vault
    for refused, error in (
        (lambda: vault.create("Captures/default/there.md", b"x"), Conflict),
        (lambda: vault.create("Captures/../x.md", b"x"), InvalidArgument),
        (lambda: vault.replace("Captures/default/there.md", b"x", digest=sha(b"other")), Conflict),
        (lambda: vault.replace("Captures/default/none.md", b"x", digest=sha(b"other")), NotFound),
        (lambda: vault.remove("Captures/default/there.md", digest=sha(b"other")), Conflict),
        (lambda: vault.remove("Captures/default/none.md", digest=sha(b"other")), NotFound),
    ):
        with pytest.raises(error):
            refused()
    assert told(world) == []


def test_there_is_one_way_to_a_file(world):
    app = world.app
    assert (
        app.opened.vault is app.opened.sync.vault is app.opened.sync._index_pass._vault is app.agent_access._inbox.vault
    )
    assert isinstance(app.opened.vault, AuditedVault)


def test_a_job_that_was_left_behind_writes_into_nobody_s_file(world, tmp_path):
    audit, vault = world.app.opened.audit, world.app.opened.vault
    world.app.close()
    with (tmp_path / "other").open("w+") as other:
        assert other.fileno() >= 0  # perhaps the very number that the head's file had
        with pytest.raises(Unavailable):
            log_write(audit, change())
        audit._save_head()
        with pytest.raises(Unavailable):
            vault.create("Captures/default/late.md", b"late")
        assert other.read() == ""
    world.app = world._open()
    assert told(world) == []


def test_a_backup_brings_the_log_to_another_place(world, tmp_path):
    world.app.agent_access.workspace("default").capture("one")
    archive, folder = tmp_path / "backup.tar.gz", tmp_path / "unpacked"
    backup.pack(world.state, archive, vault=world.vault, settings=None, version="1", now=1_800_000_000_000)
    world.app.agent_access.workspace("default").capture("after it")
    folder.mkdir()
    contents = backup.unpack(archive, folder)
    world.app.close()
    assert backup.restore_files(folder, world.state, contents) == ["ledger.db"]
    world.app = world._open()
    found = owner(world, "audit.verify")
    assert (found["entries"], found["broken"]) == (1, 0)  # to go back on purpose is no tampering
    assert found["unlogged"] == ["Captures/default/after it.md"]
