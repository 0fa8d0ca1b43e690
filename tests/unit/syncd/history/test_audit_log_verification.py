"""The audit log is checked: nothing of it is lost, changed or invented unnoticed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument
from syncd.history import digest_chain
from syncd.history.audit_log import HEAD, AuditLog
from syncd.history.digest_chain import COLUMNS, Entry, Head, check, compute_seal, find_base, format_line, parse_line
from syncd.owner.audit import verify_file
from tests.support.audit_entries import change, log_write, owner

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
        entry = replace(entry, seal=compute_seal(entry, head.seal))
        head = Head(entry.seq, entry.seal)
        made.append(entry)
    return made


# The chain


@given(st.lists(ENTRIES, max_size=8))
def test_a_chain_that_nobody_touched_holds(drafts):
    made = chained(drafts)
    found = check(made, Head(), heads=[Head(one.seq, one.seal) for one in made])
    assert (found.entries, found.broken) == (len(made), 0)
    assert check([parse_line(format_line(one)) for one in made], Head()).broken == 0


@given(st.lists(ENTRIES, min_size=1, max_size=5), st.data())
def test_a_change_of_any_value_is_told(drafts, data):
    made = chained(drafts)
    at = data.draw(st.integers(0, len(made) - 1))
    name = data.draw(st.sampled_from(COLUMNS))
    was = getattr(made[at], name)
    made[at] = replace(made[at], **{name: was + 1 if isinstance(was, int) else was + "x"})
    assert check(made, Head()).broken


@given(st.lists(ENTRIES, min_size=2, max_size=6), st.data())
def test_an_entry_that_is_missing_doubled_or_moved_is_told(drafts, data):
    made = chained(drafts)
    at = data.draw(st.integers(0, len(made) - 2))
    assert check(made[:at] + made[at + 1 :], Head()).broken
    assert check(made[: at + 1] + made[at:], Head()).broken
    assert check([*made[:at], made[at + 1], made[at], *made[at + 2 :]], Head()).broken


def test_an_end_that_was_cut_off_is_told_by_whoever_noted_the_head_down():
    made = chained([Entry(0, 1, "create", "cli")] * 5)
    noted = Head(5, made[-1].seal)
    assert check(made[:3], Head()).broken == 0
    assert "the end was cut off" in check(made[:3], Head(), heads=[noted]).breaks[0]
    other = chained([Entry(0, 2, "create", "cli")] * 5)
    assert "was rewritten" in check(other, Head(), heads=[noted]).breaks[0]


def test_a_break_is_told_where_it_is_and_a_thousand_of_them_shortly():
    made = chained([Entry(0, 1, "create", "cli")] * 9)
    made[3] = replace(made[3], path="elsewhere.md")
    assert check(made, Head()).breaks == ["entry 4 does not match its seal: it or the entry before it was changed"]
    assert check([*made[:2], *made[5:]], Head()).breaks == ["entries 3 to 5 are missing"]
    many = chained([Entry(0, 1, "create", "cli")] * 1000)
    found = check([replace(one, path="x") for one in many], Head())
    assert (found.broken, len(found.breaks)) == (1000, digest_chain.BREAKS)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"seq": 1}', json.dumps(asdict(Entry(1, 1, "create", "cli")) | {"seq": "1"})]
)
def test_a_line_that_is_no_entry_is_refused(text):
    with pytest.raises(ValueError, match=r"entry|Expecting"):
        parse_line(text)
    if text:
        with pytest.raises(InvalidArgument, match="not an entry"):
            verify_file([text], None)


def test_what_was_exported_is_checked_by_itself(tmp_path):
    made = chained([Entry(0, 1, "create", "cli")] * 6)
    pruned = chained([Entry(0, 1, "pruned", "cli", outcome=str(Head(3, made[2].seal)))], Head(6, made[-1].seal))
    part = [format_line(one) for one in (*made[3:], *pruned)]
    assert find_base([*made, *pruned]) == Head(3, made[2].seal)
    assert verify_file(part, None).broken == 0  # it says itself what went before
    assert verify_file(part[:3], None).broken == 0  # its first entry is taken as it is
    assert verify_file([part[0], part[2]], None).broken == 1
    assert verify_file([part[0].replace('"cli"', '"mcp"'), *part[1:]], None).broken == 1
    assert verify_file(part, str(Head(9, "a" * 64))).broken == 1


# Tampering: the daemon is down, and somebody edits the file


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_changed_in_the_ledger_is_told(ledger, audit, column):
    for n in range(5):
        log_write(audit, change(path=f"{n}.md"))
    value = 99 if column in ("at", "bytes", "undoes", "seq") else "forged"
    ledger._connection.execute(f"UPDATE audit SET {column} = ? WHERE seq = 3", (value,))
    assert check(audit.entries(), audit.base()).broken


@pytest.mark.parametrize("where", ["seq = 1", "seq = 3", "seq > 3", "seq < 3", "seq = 5"])
def test_rows_taken_out_of_the_ledger_are_told(ledger, audit, tmp_path, where):
    for n in range(5):
        log_write(audit, change(path=f"{n}.md"))
    ledger._connection.execute(f"DELETE FROM audit WHERE {where}")
    assert check(audit.entries(), audit.base(), heads=[audit.head]).broken  # while the daemon runs
    again = AuditLog(ledger, tmp_path / "state")  # and after a restart
    assert check(again.entries(), again.base(), heads=[again.head]).broken
    log_write(again, change(path="later.md"))
    found = check(again.entries(), again.base(), heads=[again.head])
    assert found.broken == 1, found.breaks
    again.close()


def test_a_log_that_was_made_anew_does_not_have_the_old_head(ledger, audit, tmp_path):
    for n in range(5):
        log_write(audit, change(path=f"{n}.md"))
    old = audit.head
    ledger._connection.execute("DELETE FROM audit")
    (tmp_path / "state" / HEAD).unlink()
    forged = AuditLog(ledger, tmp_path / "state")
    for n in range(6):
        log_write(forged, change(path=f"{n}.md", id="forged"))
    assert check(forged.entries(), forged.base(), heads=[forged.head]).broken == 0  # nothing here can tell it
    assert check(forged.entries(), forged.base(), heads=[old]).broken == 1
    forged.close()


def test_a_head_that_lags_behind_after_a_power_cut_is_no_tampering(ledger, audit, tmp_path):
    log_write(audit, change())
    lagging = (tmp_path / "state" / HEAD).read_bytes()
    log_write(audit, change(path="b.md"))
    for left in (lagging, b"", b"\0" * 85, b"nonsense"):
        (tmp_path / "state" / HEAD).write_bytes(left)
        again = AuditLog(ledger, tmp_path / "state")
        assert [entry.kind for entry in again.entries()] == ["create", "create"]
        assert again.saved_head() == again.head
        again.close()


# The whole: real files, a real index


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
    assert owner(world, "audit.verify", head=str(world.app.opened.audit.head))["broken"] == 0
    assert owner(world, "audit.verify", head="99:" + "a" * 64)["broken"] == 1
    with pytest.raises(InvalidArgument, match="1234"):
        owner(world, "audit.verify", head="nonsense")


def test_verify_names_what_it_cannot_read_and_why(world):
    workspace = world.app.agent_access.workspace("default")
    record, deleted = (workspace.capture(text).record for text in ("one", "two"))
    workspace.delete(deleted.id)
    file = world.vault / record.path
    assert owner(world, "audit.verify")["unread"] == {}
    file.unlink()
    file.mkdir()
    assert owner(world, "audit.verify")["unread"] == {record.path: "is a folder, not a note"}
    away = world.vault.rename(world.vault.with_name("away"))
    unread = owner(world, "audit.verify")["unread"]
    assert unread.keys() == {".", record.path}
    assert all(reason.startswith("the vault's folder is missing") for reason in unread.values())
    away.rename(world.vault)


def test_an_entry_from_before_addresses_keeps_its_seal_and_is_read_from_its_line():
    entry = Entry(1, 2, "create", "mcp", path="a.md", after="3")
    before = [1, 2, "create", "mcp", *[""] * 7, "a.md", 0, "", "3", "done", 0]  # all that was sealed then
    sealed = hashlib.sha256(f"{Head().seal}\n{json.dumps(before)}".encode()).hexdigest()
    assert compute_seal(entry, Head().seal) == sealed
    values = json.loads(format_line(entry))
    assert values.pop("address") == ""
    assert parse_line(json.dumps(values)) == entry
    assert compute_seal(replace(entry, address="192.0.2.1"), Head().seal) != sealed
