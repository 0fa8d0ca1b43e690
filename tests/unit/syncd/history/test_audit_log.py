"""The audit log: an entry for each write, before it is done; nothing of it lost, changed or invented unnoticed."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from contextlib import contextmanager
from dataclasses import asdict, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import Conflict, InvalidArgument, NotFound, Unavailable
from mcp_server.tools.families import FAMILIES
from syncd.history import audit_log as log
from syncd.history import digest_chain
from syncd.history.audit_log import HEAD, AuditLog, Author, Change, Events, authored, taken_back
from syncd.history.audited_vault import AuditedVault
from syncd.history.digest_chain import COLUMNS, Entry, Head, base_of, checked, line, read, seal
from syncd.installation import backup
from syncd.owner.audit import of_file
from syncd.state.ledger import peeked
from tests.support.live_server import client, run, running
from tests.support.world import World, until

WORDS = st.text(max_size=20)
ENTRIES = st.builds(
    Entry,
    seq=st.just(0),
    **{
        one.name: st.integers(0, 2**40) if one.type == "int" else WORDS
        for one in fields(Entry)
        if one.name not in ("seq", "seal", "kind")
    },
    kind=st.sampled_from(["create", "update", "delete", "undone", "denied"]),
)


def chained(drafts, head=None):
    head = head or Head()
    made = []
    for draft in drafts:
        entry = replace(draft, seq=head.seq + 1)
        entry = replace(entry, seal=seal(entry, head.seal))
        head = Head(entry.seq, entry.seal)
        made.append(entry)
    return made


def sha(raw):
    return hashlib.sha256(raw).hexdigest()


# The chain


@given(st.lists(ENTRIES, max_size=8))
def test_a_chain_that_nobody_touched_holds(drafts):
    made = chained(drafts)
    found = checked(made, Head(), heads=[Head(one.seq, one.seal) for one in made])
    assert (found.entries, found.broken) == (len(made), 0)
    assert checked([read(line(one)) for one in made], Head()).broken == 0


@given(st.lists(ENTRIES, min_size=1, max_size=5), st.data())
def test_a_change_of_any_value_is_told(drafts, data):
    made = chained(drafts)
    at = data.draw(st.integers(0, len(made) - 1))
    name = data.draw(st.sampled_from(COLUMNS))
    was = getattr(made[at], name)
    made[at] = replace(made[at], **{name: was + 1 if isinstance(was, int) else was + "x"})
    assert checked(made, Head()).broken


@given(st.lists(ENTRIES, min_size=2, max_size=6), st.data())
def test_an_entry_that_is_missing_doubled_or_moved_is_told(drafts, data):
    made = chained(drafts)
    at = data.draw(st.integers(0, len(made) - 2))
    assert checked(made[:at] + made[at + 1 :], Head()).broken
    assert checked(made[: at + 1] + made[at:], Head()).broken
    assert checked([*made[:at], made[at + 1], made[at], *made[at + 2 :]], Head()).broken


def test_an_end_that_was_cut_off_is_told_by_whoever_noted_the_head_down():
    made = chained([Entry(0, 1, "create", "cli")] * 5)
    noted = Head(5, made[-1].seal)
    assert checked(made[:3], Head()).broken == 0
    assert "its end was cut off" in checked(made[:3], Head(), heads=[noted]).breaks[0]
    other = chained([Entry(0, 2, "create", "cli")] * 5)
    assert "was rewritten" in checked(other, Head(), heads=[noted]).breaks[0]


def test_a_break_is_told_where_it_is_and_a_thousand_of_them_shortly():
    made = chained([Entry(0, 1, "create", "cli")] * 9)
    made[3] = replace(made[3], path="elsewhere.md")
    assert checked(made, Head()).breaks == ["entry 4 does not match its seal: it was changed, or the one before it was"]
    assert checked([*made[:2], *made[5:]], Head()).breaks == ["entries 3 to 5 are missing"]
    many = chained([Entry(0, 1, "create", "cli")] * 1000)
    found = checked([replace(one, path="x") for one in many], Head())
    assert (found.broken, len(found.breaks)) == (1000, digest_chain.BREAKS)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"seq": 1}', json.dumps(asdict(Entry(1, 1, "create", "cli")) | {"seq": "1"})]
)
def test_a_line_that_is_no_entry_is_refused(text):
    with pytest.raises(ValueError, match=r"entry|Expecting"):
        read(text)
    if text:
        with pytest.raises(InvalidArgument, match="no entry"):
            of_file([text], None)


def test_what_was_exported_is_checked_by_itself(tmp_path):
    made = chained([Entry(0, 1, "create", "cli")] * 6)
    pruned = chained([Entry(0, 1, "pruned", "cli", outcome=str(Head(3, made[2].seal)))], Head(6, made[-1].seal))
    part = [line(one) for one in (*made[3:], *pruned)]
    assert base_of([*made, *pruned]) == Head(3, made[2].seal)
    assert of_file(part, None).broken == 0  # it says itself what went before
    assert of_file(part[:3], None).broken == 0  # its first entry is taken as it is
    assert of_file([part[0], part[2]], None).broken == 1
    assert of_file([part[0].replace('"cli"', '"mcp"'), *part[1:]], None).broken == 1
    assert of_file(part, str(Head(9, "a" * 64))).broken == 1


# The log


@pytest.fixture
def audit(ledger, tmp_path):
    opened = AuditLog(ledger, tmp_path / "state")
    yield opened
    opened.close()


def change(path="Captures/default/a.md", before="", after="1", **more):
    return Change(path, before, after, more.pop("bytes", 3), more.pop("id", "i"), more.pop("type", "note"), "default")


def test_an_entry_says_who_what_and_when(audit):
    with authored(Author("mcp", "capture_thought", "k1", "claude", "r1")):
        audit.note(change())
    (entry,) = audit.entries()
    assert asdict(entry) == asdict(
        Entry(
            *(1, entry.at, "create", "mcp", "capture_thought", "r1", "k1", "claude", "default", "note", "i"),
            *("Captures/default/a.md", 3, "", "1", "done", 0, entry.seal),
        )
    )
    assert entry.seal == seal(entry, digest_chain.GENESIS)
    assert audit.head == audit.noted() == Head(1, entry.seal)


def test_the_author_is_that_of_the_very_context(audit):
    seen = []

    def work(name):
        with authored(Author("mcp", name)):
            barrier.wait()
            seen.append((name, audit.note(change(path=name))))

    barrier = threading.Barrier(8)
    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = {entry.seq: (entry.tool, entry.path) for entry in audit.entries()}
    assert told == {seq: (name, name) for name, seq in seen}
    assert checked(audit.entries(), Head()).broken == 0


def test_entries_are_found_by_what_is_known_of_them(audit):
    for n in range(10):
        with authored(Author("mcp" if n % 2 else "rest", f"tool{n % 3}", f"k{n % 2}", f"name{n % 2}")):
            audit.note(change(path=f"{n}.md", id=f"id{n}"))

    def numbers(**wanted):
        return [entry.seq for entry in audit.found(100, **wanted)]

    at = next(audit.entries()).at
    assert numbers() == numbers(workspace="default") == numbers(since=at) == list(range(1, 11))
    assert numbers(surface="mcp") == numbers(key="k1") == numbers(key="name1") == [2, 4, 6, 8, 10]
    assert numbers(tool="tool0", surface="rest") == [1, 7]
    assert numbers(id="id3") == [4]
    assert numbers(workspace="other") == numbers(until=at) == []
    assert [entry.seq for entry in audit.found(3)] == [8, 9, 10]
    assert [entry.seq for entry in audit.found(3, after=2)] == [3, 4, 5]
    assert [entry.seq for entry in audit.found(3, after=0)] == [1, 2, 3]


def test_a_log_goes_on_where_it_ended(ledger, audit, tmp_path):
    audit.note(change())
    again = AuditLog(ledger, tmp_path / "state")
    again.note(change(before="1", after="2"))
    assert [entry.kind for entry in again.entries()] == ["create", "update"]
    assert checked(again.entries(), Head()).broken == 0
    again.close()


def test_denied_calls_are_bounded_and_counted(audit):
    flooding, other = Author("mcp", "capture_thought", "k1", "flood"), Author("mcp", "capture_thought", "k2", "other")
    for _ in range(500):
        audit.denied(flooding, "PERMISSION_DENIED", "work")
    audit.denied(other, "PERMISSION_DENIED", "work")
    entries = list(audit.entries())
    assert len(entries) == log.DENIALS[0] + 1
    assert {entry.kind for entry in entries} == {"denied"}
    assert entries[-1].name == "other"
    left, then, more = audit._denials["k1"]
    audit._denials["k1"] = (left, then - 2 * log.DENIALS[1], more)  # two minutes later
    audit.denied(flooding, "PERMISSION_DENIED", "")
    assert audit.found(1)[0].outcome == "PERMISSION_DENIED, and 480 more like it before"
    assert checked(audit.entries(), Head()).broken == 0


@contextmanager
def unwritable(ledger):
    """A ledger that SQLite refuses to write."""
    ledger._connection.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        ledger._connection.execute("PRAGMA query_only = OFF")


def test_what_can_not_be_logged_is_refused_and_told(ledger, audit):
    audit.note(change())
    with unwritable(ledger):
        with pytest.raises(Unavailable, match="nothing was changed"):
            audit.note(change(path="b.md"))
        assert audit.problem
        audit.denied(Author("mcp"), "PERMISSION_DENIED", "")  # is denied all the same
        audit.undone(1, change(), "UNAVAILABLE")
        taken_back(lambda: audit.taken_back(change(before="1", after="")))
        assert [entry.seq for entry in audit.found(9)] == [1]
        audit.retry()
        assert audit.problem
    audit.retry()
    assert not audit.problem, "nobody need write first"
    audit.note(change(path="b.md"))
    assert checked(audit.entries(), Head()).broken == 0


def test_a_ledger_of_which_a_page_is_damaged_refuses_writes_too(ledger, audit):
    for n in range(200):
        audit.note(change(path=f"{n}.md"))
    ledger._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw = bytearray(ledger.path.read_bytes())
    for page in range(4096, len(raw), 4096):
        raw[page : page + 8] = b"\xff" * 8
    ledger.path.write_bytes(raw)
    ledger._connection.execute("PRAGMA cache_size = 0")
    ledger._connection.execute("PRAGMA shrink_memory")
    with pytest.raises(Unavailable):
        audit.note(change(path="new.md"))


# Tampering: the daemon is down, and somebody edits the file


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_changed_in_the_ledger_is_told(ledger, audit, column):
    for n in range(5):
        audit.note(change(path=f"{n}.md"))
    value = 99 if column in ("at", "bytes", "undoes", "seq") else "forged"
    ledger._connection.execute(f"UPDATE audit SET {column} = ? WHERE seq = 3", (value,))
    assert checked(audit.entries(), audit.base()).broken


@pytest.mark.parametrize("where", ["seq = 1", "seq = 3", "seq > 3", "seq < 3", "seq = 5"])
def test_rows_taken_out_of_the_ledger_are_told(ledger, audit, tmp_path, where):
    for n in range(5):
        audit.note(change(path=f"{n}.md"))
    ledger._connection.execute(f"DELETE FROM audit WHERE {where}")
    assert checked(audit.entries(), audit.base(), heads=[audit.head]).broken  # while the daemon runs
    again = AuditLog(ledger, tmp_path / "state")  # and after a restart
    assert checked(again.entries(), again.base(), heads=[again.head]).broken
    again.note(change(path="later.md"))
    found = checked(again.entries(), again.base(), heads=[again.head])
    assert found.broken == 1, found.breaks
    again.close()


def test_a_log_that_was_made_anew_does_not_have_the_old_head(ledger, audit, tmp_path):
    for n in range(5):
        audit.note(change(path=f"{n}.md"))
    old = audit.head
    ledger._connection.execute("DELETE FROM audit")
    (tmp_path / "state" / HEAD).unlink()
    forged = AuditLog(ledger, tmp_path / "state")
    for n in range(6):
        forged.note(change(path=f"{n}.md", id="forged"))
    assert checked(forged.entries(), forged.base(), heads=[forged.head]).broken == 0  # nothing here can tell it
    assert checked(forged.entries(), forged.base(), heads=[old]).broken == 1
    forged.close()


def test_a_head_that_lags_behind_after_a_power_cut_is_no_tampering(ledger, audit, tmp_path):
    audit.note(change())
    lagging = (tmp_path / "state" / HEAD).read_bytes()
    audit.note(change(path="b.md"))
    for left in (lagging, b"", b"\0" * 85, b"nonsense"):
        (tmp_path / "state" / HEAD).write_bytes(left)
        again = AuditLog(ledger, tmp_path / "state")
        assert [entry.kind for entry in again.entries()] == ["create", "create"]
        assert again.noted() == again.head
        again.close()


# Pruning


def test_a_prune_keeps_the_chain_and_what_is_known_of_files(ledger, audit, tmp_path, monkeypatch):
    now = [1000]
    monkeypatch.setattr(log.time, "time_ns", lambda: now[0] * 1_000_000)
    audit.note(change(path="gone.md", after="1"))
    audit.note(change(path="gone.md", before="1", after=""))
    audit.note(change(path="kept.md", after="2", type="entity", id="node"))
    audit.note(change(path="later.md", after="3"))
    now[0] = 2000
    audit.note(change(path="later.md", before="3", after="4"))
    assert audit.prunable(1000) == 0
    assert audit.prunable(2000) == 4
    assert audit.prunable(9000) == 4  # the newest entry always stays
    head = audit.head
    assert audit.prune(4) == 4
    kinds = [(entry.kind, entry.path) for entry in audit.entries()]
    assert kinds == [("update", "later.md"), ("pruned", ""), ("kept", "kept.md")]
    assert audit.states() == {"later.md": "4", "kept.md": "2"}
    assert checked(audit.entries(), audit.base(), heads=[head, audit.head]).broken == 0
    assert audit.events("default", 0, {"node"}) == Events(0, 0, 0, 0)
    again = AuditLog(ledger, tmp_path / "state")
    again.note(change(path="kept.md", before="2", after="5", type="entity"))
    assert [entry.kind for entry in again.found(2)] == ["kept", "update"]  # nothing was changed by hand
    again.close()
    ledger._connection.execute("DELETE FROM audit WHERE kind = 'pruned'")
    assert checked(audit.entries(), audit.base()).broken  # entries that went otherwise are missing


def test_a_log_that_was_pruned_twice_is_provable_piece_by_piece(world, tmp_path):
    workspace = world.app.agent_access.workspace("default")
    heads = []
    for piece in range(2):
        for n in range(3):
            workspace.capture(f"note {piece} {n}")
        heads.append(str(world.app.audit.head))
        assert owner(world, "audit.prune", before=2**60, file=str(tmp_path / f"{piece}.jsonl"))["pruned"]
    first, second = ((tmp_path / f"{piece}.jsonl").read_text().splitlines() for piece in range(2))
    assert [read(text).seq for text in first + second] == list(range(1, len(first + second) + 1))
    assert of_file(first, None).broken == of_file(second, None).broken == of_file(first + second, heads[0]).broken == 0
    assert of_file(second, heads[0]).broken == 0
    assert "begins at entry" in of_file(second, str(Head(1, read(first[0]).seal))).breaks[0]
    found = owner(world, "audit.verify")
    assert (found["broken"], found["changed"], found["unlogged"]) == (0, [], [])
    assert "where it was moved to" in owner(world, "audit.verify", head=heads[0])["breaks"][0]


# Events


def node(path, before, after, id="n1", **more):
    return change(path=f"Captures/default/Entities/{path}.md", before=before, after=after, id=id, type="entity", **more)


def test_events_are_those_of_nodes_that_are_there_and_the_ends_of_others(audit):
    with authored(Author("mcp", "create_entities")):
        audit.note(node("Ada", "", "1"))
        audit.note(node("Ada", "1", "2"))
        audit.note(node("Bob", "", "3", id="n2"))
        audit.note(node("Bob", "3", "4", id="n2"))
        audit.note(node("Bob", "4", "", id="n2"))
        audit.note(change(path="Captures/default/note.md"))
    assert audit.events("default", 0, {"n1"}) == Events(0, 1, 1, 1)
    assert audit.events("default", 0, set()) == Events(0, 0, 0, 1)
    assert audit.events("other", 0, {"n1"}) == Events(0, 0, 0, 0)
    later = audit.found(1)[0].at + 1
    assert audit.events("default", later, {"n1"}) == Events(later, 0, 0, 0)


def test_what_did_not_come_about_is_no_event(audit):
    with authored(Author("mcp", "create_entities")):
        made = audit.note(node("Ada", "", "1"))
        audit.undone(made, node("Ada", "", "1"), "CONFLICT")
        audit.note(node("Ada", "", "2"))
        gone = audit.note(node("Ada", "2", ""))
        taken_back(lambda: audit.taken_back(node("Ada", "", "2")))
    assert audit.found(1)[0].undoes == gone
    assert audit.events("default", 0, {"n1"}) == Events(0, 1, 0, 0)
    assert [entry.outcome for entry in audit.found(9)] == ["done", "CONFLICT", "done", "done", "UNAVAILABLE"]


def test_a_node_changed_by_hand_before_a_tool_changes_it_is_logged_first(audit):
    audit.note(node("Ada", "", "1"))
    audit.note(node("Ada", "2", "3"))
    told = [(entry.surface, entry.kind, entry.before, entry.after) for entry in audit.entries()]
    assert told == [("daemon", "create", "", "1"), ("file", "update", "1", "2"), ("daemon", "update", "2", "3")]
    assert audit.events("default", 0, {"n1"}) == Events(0, 1, 2, 0)


def test_a_note_by_hand_whose_type_is_a_list_is_indexed(tmp_path):
    world = World(tmp_path)
    try:
        world.write("Captures/default/Kyoto.md", "---\ntype: ['[[Places]]']\n---\nA city of many temples.\n")
        world.run()
        assert world.found("temples") == ["Captures/default/Kyoto.md"]
    finally:
        world.close()


def test_a_node_that_is_given_its_id_counts_from_its_beginning(audit):
    audit.noticed([("", node("Ada", "", "1", id="of the path"))])
    with authored(log.ADOPTION):
        audit.note(node("Ada", "1", "2", id="n1"))
    assert audit.events("default", 0, {"n1"}) == Events(0, 1, 0, 0)


# The whole: real files, a real index


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


def told(world, after=0):
    """What the log says, shortly."""
    return [(entry.kind, entry.surface, entry.tool, entry.path) for entry in world.app.audit.entries(after + 1)]


def owner(world, name, **given):
    return world.app.operations[name](given, lambda _: None)


def test_what_is_told_of_a_write_is_true_of_the_file(world):
    record = (
        world.app.agent_access.workspace("default")
        .capture("secret words of the note", metadata={"project": "hush"})
        .record
    )
    (entry,) = world.app.audit.entries()
    raw = (world.vault / record.path).read_bytes()
    assert (entry.id, entry.path, entry.bytes, entry.before, entry.after) == (
        *(record.id, record.path, len(raw), "", sha(raw)),
    )
    assert "hush" not in line(entry)
    assert world.app.audit.states() == {record.path: sha(raw)}


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
    before, seen = files(world), world.app.audit.head.seq
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
        entries = list(world.app.audit.entries(seen + 1))
        assert sorted(entry.path for entry in entries) == sorted(changed), name
        assert all((entry.surface, entry.tool) == ("cli", name) and entry.request for entry in entries), name
        written[name] = len(entries)
        before, seen = after, world.app.audit.head.seq
    assert {name for name, count in written.items() if count} == {"capture", "enrich", "enrich.backfill", "delete"}
    assert owner(world, "audit.verify")["changed"] == []


def test_the_pipe_s_own_writes_and_jobs_are_the_daemon_s(world):
    world.write("Captures/default/dropped.md", "A note about herons and reeds that somebody dropped in.\n")
    world.run()
    assert told(world) == [("update", "daemon", "adoption", "Captures/default/dropped.md")]
    record = world.app.builds.scopes["captures"].index.at("Captures/default/dropped.md")
    world.app.enricher.owe(record.id, 0)
    world.app.jobs.run("enrichment")
    assert told(world, 1) == [("update", "daemon", "enrichment", "Captures/default/dropped.md")]


def test_an_adoption_that_can_not_be_logged_waits(world):
    world.write("Captures/default/dropped.md", "dropped herons\n")
    with unwritable(world.app.ledger):
        world.run()
        assert (world.vault / "Captures/default/dropped.md").read_text() == "dropped herons\n"
        assert world.found("herons")
    world.run()
    assert told(world) == [("update", "daemon", "adoption", "Captures/default/dropped.md")]


def test_a_log_that_can_not_be_written_is_told_until_it_can(world):
    workspace = world.app.agent_access.workspace("default")
    kept = workspace.capture("kept all along").record
    with unwritable(world.app.ledger):
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


@pytest.mark.parametrize("part", ["_store", "_catalog"])
def test_a_write_that_is_taken_back_is_logged_as_undone(world, part):
    workspace = world.app.agent_access.workspace("default")
    kept = workspace.capture("kept all along").record
    index = world.app.builds.scopes["captures"].index

    class Failing:
        def __init__(self, real):
            self.real = real

        def __getattr__(self, name):
            if name in ("replace", "write"):
                raise Unavailable("the disk is full")
            return getattr(self.real, name)

    real = getattr(index, part)
    for write, kind in (
        (lambda: workspace.capture("never kept"), "create"),
        (lambda: workspace.capture("kept all along"), "update"),
        (lambda: workspace.delete(kept.id), "delete"),
    ):
        seen = world.app.audit.head.seq
        setattr(index, part, Failing(real))
        with pytest.raises(Unavailable):
            write()
        setattr(index, part, real)
        done, undone = world.app.audit.entries(seen + 1)
        assert (done.kind, undone.kind, undone.undoes) == (kind, "undone", done.seq)
        assert (undone.before, undone.after) == (done.after, done.before)
        assert owner(world, "audit.verify")["changed"] == owner(world, "audit.verify")["gone"] == []


def test_taking_back_is_never_refused(world):
    workspace = world.app.agent_access.workspace("default")
    index = world.app.builds.scopes["captures"].index
    connection = world.app.ledger._connection
    real = index._store

    class Failing:
        def __getattr__(self, name):
            if name == "replace":
                connection.execute("PRAGMA query_only = ON")  # between the write and its end
                raise Unavailable("the disk is full")
            return getattr(real, name)

    index._store = Failing()
    with pytest.raises(Unavailable, match="disk is full"):
        workspace.capture("never kept")
    index._store = real
    connection.execute("PRAGMA query_only = OFF")
    assert list((world.vault / "Captures/default").iterdir()) == []


def test_the_entry_is_on_the_disk_before_anything_of_the_file_is(world):
    vault, seen = world.app.vault, []
    real = vault._calls

    def counting(*given):
        if given[2] & os.O_CREAT:  # the temporary file, the first of all
            seen.extend(peeked(world.state / "ledger.db", "SELECT kind FROM audit"))
        return real.open(*given)

    vault._calls = replace(real, open=counting)
    stat = vault.create("Captures/default/new.md", b"one")
    vault.replace("Captures/default/new.md", b"two", digest=sha(b"one"))
    vault._calls = real
    assert stat.size == 3
    assert seen == [("create",), ("create",), ("update",)]


def test_a_write_that_is_refused_before_it_begins_has_no_entry(world):
    world.write("Captures/default/there.md", "there\n")
    vault = world.app.vault
    for refused, error in (
        (lambda: vault.create("Captures/default/there.md", b"x"), Conflict),
        (lambda: vault.create("Captures/../x.md", b"x"), InvalidArgument),
        (lambda: vault.replace("Captures/default/there.md", b"x", digest=sha(b"other")), Conflict),
        (lambda: vault.replace("Captures/default/none.md", b"x", digest=sha(b"other")), NotFound),
        (lambda: vault.remove("Captures/default/there.md", digest=sha(b"other")), Conflict),
        (lambda: vault.remove("Captures/default/none.md"), NotFound),
    ):
        with pytest.raises(error):
            refused()
    assert told(world) == []


def test_a_write_that_the_disk_refuses_is_logged_as_undone(world):
    folder = world.vault / "Captures/default"
    world.app.vault._calls = type(world.app.vault._calls)()
    real = world.app.vault._calls.fsync

    def failing(_):
        raise OSError(5, "Input/output error")

    world.app.vault._calls = replace(world.app.vault._calls, fsync=failing)
    with pytest.raises(Unavailable):
        world.app.vault.create("Captures/default/new.md", b"new")
    world.app.vault._calls = replace(world.app.vault._calls, fsync=real)
    assert list(folder.iterdir()) == []
    assert [(entry.kind, entry.outcome) for entry in world.app.audit.entries()] == [
        ("create", "done"),
        ("undone", "UNAVAILABLE"),
    ]


def ada(facts=1, *, settled=True):
    """A node's note with so many observations, as a tool leaves it, or as a person does."""
    listed = [f"- fact {n}{f' ^o{n}' if settled else ''}\n" for n in range(1, facts + 1)]
    return (
        f"---\nid: ada\ntype: entity\nlast_ordinal: {facts if settled else 0}\n---\n## Observations\n{''.join(listed)}"
    )


def test_nodes_changed_by_hand_are_events_like_others(world):
    path = "Captures/default/Entities/Ada.md"

    def events():
        return world.app.audit.events("default", 0, {"ada"})

    world.write(path, ada())
    world.run()
    assert events() == Events(0, 1, 0, 0)
    world.write(path, ada(2))
    world.run()
    assert events() == Events(0, 1, 1, 0)
    (world.vault / path).rename(world.vault / "Captures/default/Entities/Ada Lovelace.md")
    world.run()
    assert events() == Events(0, 1, 2, 0)
    assert [entry.kind for entry in world.app.audit.found(2)] == ["update", "moved"]
    (world.vault / "Captures/default/Entities/Ada Lovelace.md").unlink()
    world.run()
    assert world.app.audit.events("default", 0, set()) == Events(0, 0, 0, 1)
    by_whom = {(entry.surface, entry.tool) for entry in world.app.audit.entries()}
    assert by_whom == {("file", ""), ("daemon", "adoption")}, "adoption stamps what was edited"
    assert owner(world, "audit.verify")["gone"] == []


def test_a_node_that_a_person_left_to_be_settled_counts_once(world):
    world.write("Captures/default/Entities/Ada.md", ada(settled=False))
    world.run()
    events = world.app.audit.events("default", 0, {"ada"})
    kinds = [(entry.kind, entry.surface, entry.tool) for entry in world.app.audit.entries()]
    assert kinds == [("create", "file", ""), ("update", "daemon", "adoption")]
    assert events == Events(0, 1, 0, 0)


def test_a_rebuilt_index_and_a_restart_are_no_change_by_hand(world):
    world.write("Captures/default/Entities/Ada.md", ada())
    world.write("Captures/default/other.md", "---\nid: x\ntype: entity\n---\nby property\n")
    world.write("Captures/default/note.md", "---\nid: y\n---\nno node\n")
    world.run()
    world.app.witness.look()
    seen = world.app.audit.head
    assert seen.seq == 2
    owner(world, "index", full=True)
    world.app.witness.look()
    world.reopen()
    world.run()
    world.app.witness.look()
    assert world.app.audit.head == seen


def test_a_change_by_hand_while_the_daemon_is_down_is_noticed(world):
    world.write("Captures/default/Entities/Ada.md", ada())
    world.run()
    world.app.close()
    world.write("Captures/default/Entities/Ada.md", ada(2))
    world.app = world._open()
    world.run()
    assert world.app.audit.events("default", 0, {"ada"}) == Events(0, 1, 1, 0)


def test_what_a_look_can_not_log_is_logged_at_the_next(world):
    world.write("Captures/default/Entities/Ada.md", ada())
    world.run()
    with unwritable(world.app.ledger):
        world.app.witness.look()
        assert told(world) == []
    world.app.witness.look()
    assert told(world) == [("create", "file", "", "Captures/default/Entities/Ada.md")]


def test_a_write_of_the_pipe_that_is_under_way_is_no_change_by_hand(world):
    path = "Captures/default/Entities/Ada.md"
    world.write(path, ada())
    world.run()
    world.app.witness.look()
    with authored(log.ADOPTION):  # logged, and the file and the index are to follow
        world.app.audit.note(node("Ada", sha(ada().encode()), "9", id="ada"))
    seen = world.app.audit.head
    world.app.witness._told([path])
    world.app.witness.look()
    assert world.app.audit.head == seen
    assert world.app.witness._paths == {path}  # looked at once more


def crashed(world):
    """Leave the state as a killed process would, and open it anew."""
    world.app.close()
    world.app = world._open()


@pytest.mark.parametrize("kind", ["create", "update", "delete"])
def test_a_write_that_a_crash_kept_from_happening_is_logged_as_undone(world, kind):
    record = world.app.agent_access.workspace("default").capture("kept").record
    raw = (world.vault / record.path).read_bytes()
    path = "Captures/default/new.md" if kind == "create" else record.path
    before, after = {"create": ("", "9"), "update": (sha(raw), "9"), "delete": (sha(raw), "")}[kind]
    with authored(Author("mcp", "some_tool", request="r9")):
        entry = world.app.audit.note(change(path=path, before=before, after=after, id=record.id))
    crashed(world)
    last = world.app.audit.found(1)[0]
    assert (last.kind, last.undoes, last.outcome, last.request) == ("undone", entry, "INTERRUPTED", "r9")
    assert (last.before, last.after) == (after, before)
    crashed(world)
    assert world.app.audit.found(1)[0] == last
    verified = owner(world, "audit.verify")
    assert verified["changed"] == verified["gone"] == []


def test_a_write_that_happened_before_a_crash_stays(world):
    record = world.app.agent_access.workspace("default").capture("kept").record
    raw = (world.vault / record.path).read_bytes()
    world.app.audit.note(change(path=record.path, before=sha(raw), after=sha(raw + b"x"), id=record.id))
    (world.vault / record.path).write_bytes(raw + b"x")
    crashed(world)
    assert [entry.kind for entry in world.app.audit.entries()] == ["create", "update"]


def test_verify_tells_what_was_changed_by_hand(world):
    workspace = world.app.agent_access.workspace("default")
    one, two, three = (workspace.capture(text).record for text in ("one", "two", "three"))
    with (world.vault / one.path).open("a") as file:
        file.write("by hand")
    (world.vault / two.path).unlink()
    world.write("Captures/default/own.md", "---\nid: own\n---\nby hand\n")
    found = owner(world, "audit.verify")
    assert found["broken"] == 0
    assert (found["changed"], found["gone"], found["unlogged"]) == ([one.path], [two.path], ["Captures/default/own.md"])
    assert three.path not in json.dumps(found)
    assert owner(world, "audit.verify", head=str(world.app.audit.head))["broken"] == 0
    assert owner(world, "audit.verify", head="99:" + "a" * 64)["broken"] == 1
    with pytest.raises(InvalidArgument, match="1234"):
        owner(world, "audit.verify", head="nonsense")


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
    assert [read(text).seq for text in lines] == [1, 2, 3, 4]
    assert of_file(lines, None).broken == 0
    found = owner(world, "audit.verify")
    assert (found["broken"], found["first"], found["changed"], found["unlogged"]) == (0, 5, [], [])
    with pytest.raises(Conflict, match="already"):
        owner(world, "audit.prune", before=2**60, file=str(target))
    with pytest.raises(Unavailable, match="can't be written"):
        owner(world, "audit.prune", before=2**60, file=str(tmp_path / "no" / "where"))
    world.app.ledger._connection.execute("UPDATE audit SET tool = 'forged' WHERE seq = 5")
    with pytest.raises(Conflict, match="not whole"):
        owner(world, "audit.prune", before=2**60, file=str(tmp_path / "other"))
    workspace.capture("one more")
    assert owner(world, "audit.prune", before=2**60, file=str(tmp_path / "other"), force=True)["pruned"]
    assert of_file((tmp_path / "other").read_text().splitlines(), None).broken  # it is told there
    assert owner(world, "audit.verify")["broken"] == 0


def test_there_is_one_way_to_a_file(world):
    app = world.app
    assert app.vault is app.sync.vault is app.sync._sweep._vault is app.agent_access._tools.vault
    assert isinstance(app.vault, AuditedVault)


def test_a_job_that_was_left_behind_writes_into_nobody_s_file(world, tmp_path):
    audit, vault = world.app.audit, world.app.vault
    world.app.close()
    with (tmp_path / "other").open("w+") as other:
        assert other.fileno() >= 0  # perhaps the very number that the head's file had
        with pytest.raises(Unavailable):
            audit.note(change())
        audit._note_head()
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
    assert backup.put_back(folder, world.state, contents) == ["ledger.db"]
    world.app = world._open()
    found = owner(world, "audit.verify")
    assert (found["entries"], found["broken"]) == (1, 0)  # to go back on purpose is no tampering
    assert found["unlogged"] == ["Captures/default/after it.md"]


# The rim


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


def entries(rim, after):
    return list(rim.world.app.audit.entries(after + 1))


@pytest.mark.parametrize("way", ["rest", "http", "sse", "stdio"])
def test_a_write_of_an_agent_is_logged_with_key_tool_surface_and_request(rim, way):
    space, seen = rim.space(), rim.world.app.audit.head.seq
    contents, requests = [f"by an agent {n}" for n in range(2)], []
    if way == "rest":
        for content in contents:
            answer = space.rest("POST", "/capture", json={"content": content})
            requests.append(answer.headers["x-request-id"])
    else:

        async def work():
            async with client(rim, key=space.name, way=way) as mcp:
                for content in contents:
                    assert not (await mcp.call_tool("capture_thought", {"content": content})).is_error

        run(work())
    logged = entries(rim, seen)
    key = rim.agent_access.keys.named(space.name, now=0)
    assert len(logged) == 2
    for entry in logged:
        assert (entry.surface, entry.key, entry.name) == ("rest" if way == "rest" else "mcp", key.id, space.name)
        assert (entry.tool, entry.kind, entry.workspace) == ("capture_thought", "create", space.name)
        assert entry.outcome == "done"
    assert len({entry.request for entry in logged} - {""}) == 2  # each call's own, also in one session
    assert [entry.request for entry in logged] == requests or way != "rest"


def test_a_write_that_is_not_allowed_is_logged_and_a_read_is_not(rim):
    seen = rim.world.app.audit.head.seq
    assert rim.rest("POST", "/capture", key="reader", json={"content": "no"}).status_code == 403
    assert rim.rest("POST", "/search", key="writer", json={"query": "no"}).status_code == 403
    (entry,) = entries(rim, seen)
    assert (entry.kind, entry.tool, entry.name, entry.outcome) == (
        "denied",
        "capture_thought",
        "reader",
        "PERMISSION_DENIED",
    )
    assert entry.path == entry.id == entry.workspace == ""
    for named, known in (("work", "work"), ("mx_secret_0123", "")):  # a header may hold anything
        headers = {"x-memory-workspace": named}
        assert rim.rest("POST", "/capture", key="reader", json={"content": "no"}, headers=headers).status_code == 403
        assert entries(rim, seen)[-1].workspace == known


ADA, BABBAGE = "Ada Lovelace", "Charles Babbage"
KNEW = {"from_entity": ADA, "to_entity": BABBAGE, "relation_type": "knew"}
MADE = [
    {"name": ADA, "entity_type": "person", "observations": ["Wrote programs", "Wrote letters"]},
    {"name": BABBAGE, "entity_type": "person", "observations": ["Drew the engine"]},
]
MEMOS = {"sourceMemoId": "ONE", "targetMemoId": "TWO", "tag": "cites"}
# What each tool is asked, after a thought "kept", the nodes above with a relation, and two memos with one; ID, ONE and TWO are theirs.
WALKED = {
    "capture_thought": {"content": "walked"},
    "semantic_search": {"query": "kept"},
    "get_thought": {"id": "ID"},
    "list_recent": {},
    "delete_thought": {"id": "ID"},
    "create_entities": {"entities": [{"name": f"Node {n}", "entity_type": "thing"} for n in range(3)]},
    "delete_entities": {"entity_names": [BABBAGE]},
    "open_nodes": {"names": [ADA]},
    "get_nodes_by_type": {"entity_type": "person"},
    "get_recently_modified": {},
    "set_summary": {"name": ADA, "summary": "A mathematician."},
    "set_tags": {"name": ADA, "tags": ["math"]},
    "add_observations": {
        "observations": [{"entity_name": one, "contents": ["Lived in London"]} for one in (ADA, BABBAGE)]
    },
    "replace_observation": {"entity_name": ADA, "ordinal": 1, "new_content": "Wrote the first program"},
    "delete_observations": {"deletions": [{"entity_name": ADA, "ordinals": [1]}]},
    "query_observations": {"entity_name": ADA, "query": "programs"},
    "create_relations": {"relations": [KNEW | {"relation_type": "admired"}]},
    "delete_relations": {"relations": [KNEW]},
    "update_relation_type": {"from_entity": ADA, "to_entity": BABBAGE, "old_type": "knew", "new_type": "met"},
    "get_relations_between": {"entity_a": ADA, "entity_b": BABBAGE},
    "get_neighborhood": {"name": ADA},
    "get_path": {"from_entity": ADA, "to_entity": BABBAGE},
    "get_orphans": {},
    "get_relation_gaps": {},
    "find_similar_nodes": {},
    "search_nodes": {"query": "programs"},
    "get_consolidation_report": {},
    "get_pending_consolidation": {},
    "get_stats": {},
    "memory.save": {"content": "walked"},
    "memory.search": {"query": "walked"},
    "memory.delete": {"memo_id": "TWO"},
    "memory.relation.save": MEMOS | {"tag": "extends"},
    "memory.relation.delete": MEMOS,
    "memory.relation.list": {},
    "memory.relation.graph": {"startMemoId": "ONE"},
    "kb_search": {"query": "kept"},
    "kb_addnote": {"text": "walked"},
    "kb_upload_start": {"filename": "walked.md", "total_size": 3},
    "kb_upload_chunk": {"upload_id": "BEGUN", "data": "YWJj", "chunk_index": 0},
    "kb_upload_finish": {"upload_id": "WHOLE"},
    "kb_update_note": {"id": "ID", "text": "walked anew"},
    "kb_get": {"id": "ID"},
    "kb_status": {},
    "kb_jobs": {},
}
STAGING = {"kb_upload_start", "kb_upload_chunk"}  # they need a key that writes, and write nothing into the vault yet
QUEUING = {"kb_addnote", "kb_upload_finish"}  # what they write is the queue, and its worker the vault
OPERATIONS = [operation for family in FAMILIES.values() for operation in family]


def test_every_tool_is_walked():
    assert {operation.name for operation in OPERATIONS} <= set(WALKED)


@pytest.fixture(scope="module")
def calls(rim):
    """What calls a tool in a workspace of its own, that has notes of each family."""

    def prepared():
        space = rim.space()
        ids = {"ID": space.capture("kept")["id"]}

        def call(name, given):
            asked = {key: ids.get(value, value) if isinstance(value, str) else value for key, value in given.items()}

            async def work():
                async with client(rim, key=space.name, X_Memory_Workspace=space.name) as mcp:
                    return await mcp.call_tool(name, asked)

            return run(work())

        if "graph" in FAMILIES:
            assert not call("create_entities", {"entities": MADE}).is_error
            assert not call("create_relations", {"relations": [KNEW]}).is_error
        if "memory" in FAMILIES:
            for memo in ("ONE", "TWO"):
                ids[memo] = call("memory.save", {"content": f"memo {memo}"}).structured_content["memo_id"]
            assert not call("memory.relation.save", MEMOS).is_error
        if "kb" in FAMILIES:
            for upload in ("BEGUN", "WHOLE"):
                begun = call("kb_upload_start", {"filename": f"{space.name}.md", "total_size": 3})
                ids[upload] = begun.structured_content["upload_id"]
            sent = {"upload_id": ids["WHOLE"], "data": "YWJj", "chunk_index": 0}
            assert not call("kb_upload_chunk", sent).is_error
        return lambda name: call(name, WALKED[name])

    return prepared


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_each_tool_logs_one_entry_for_each_file_and_a_log_that_fails_stops_those_that_write(rim, calls, operation):
    call, writes = calls(), operation.scope == "write" and operation.name not in STAGING
    with unwritable(rim.world.app.ledger):
        before = rim.files()
        answer = call(operation.name)
        assert rim.files() == before
        assert answer.is_error == writes, answer
        if writes:
            assert json.loads(answer.content[0].text)["error"]["code"] == "UNAVAILABLE"
            assert operation.name in QUEUING or rim.rest("GET", "/healthz", key=None).json()["status"] == "degraded"
    before, seen = rim.files(), rim.world.app.audit.head.seq
    answer = call(operation.name)
    assert not answer.is_error, answer
    until(lambda: not {"queued", "running"} & {one.status for one in rim.world.app.queue.jobs()})
    after = rim.files()
    changed = sorted(path for path in before | after if before.get(path) != after.get(path))
    logged = entries(rim, seen)
    assert sorted(entry.path for entry in logged) == changed
    assert {(entry.surface, entry.tool) for entry in logged} == ({("mcp", operation.name)} if writes else set())


def test_many_writers_leave_one_whole_chain(rim):
    from concurrent.futures import ThreadPoolExecutor

    space, seen = rim.space(), rim.world.app.audit.head.seq
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda n: space.capture(f"written at once {n}")["id"], range(24)))
    assert sorted(entry.id for entry in entries(rim, seen)) == sorted(ids)
    found = rim.world.app.operations["audit.verify"]({"files": False}, lambda _: None)
    assert found["broken"] == 0


def test_a_write_that_came_about_is_not_taken_for_undone_when_a_person_took_it_back(world):
    record = world.app.agent_access.workspace("default").capture("made, and then thrown away").record
    world.app.builds.scopes["captures"].index.commit([], [record.path])  # as if the crash had come before the commit
    (world.vault / record.path).unlink()
    crashed(world)
    assert world.app.audit.found(1)[0].kind == "create"
    assert world.app.audit.made(record.id)
    assert not world.app.audit.made("another")


def test_a_write_that_was_taken_back_has_not_come_about(world, monkeypatch):
    index = world.app.builds.scopes["captures"].index

    def failing(*_, **__):
        raise Unavailable("the disk is full")

    monkeypatch.setattr(index, "commit", failing)
    with pytest.raises(Unavailable):
        world.app.agent_access.workspace("default").capture("never made")
    made = next(entry for entry in world.app.audit.found(10) if entry.kind == "create")
    assert made.seq not in world.app.audit.done()
    assert not world.app.audit.made(made.id)
    crashed(world)
    assert not world.app.audit.made(made.id)


def test_what_is_noted_of_writes_may_be_missing_or_torn(world):
    for number in range(3):
        world.app.agent_access.workspace("default").capture(f"capture {number}")
    assert world.app.audit.done() >= {1, 2, 3}
    file = world.state / log.CAME
    file.write_bytes(b"\0" * 16 + b"\xff garbage\n" + b"1" * 40)
    crashed(world)
    assert isinstance(world.app.audit.done(), frozenset)
    file.unlink()
    crashed(world)
    assert world.app.audit.done() == frozenset()
    assert [entry.kind for entry in world.app.audit.found(10)] == ["create"] * 3
