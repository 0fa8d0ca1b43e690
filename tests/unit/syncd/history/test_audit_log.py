"""The audit log: an entry for each write, before it is done, that says who, what and when; and a log that can't be written."""

from __future__ import annotations

import threading
from dataclasses import asdict

import pytest

from index.errors import Unavailable
from syncd.history import audit_log as log
from syncd.history import digest_chain
from syncd.history.audit_log import AuditLog, Author, acting_as, take_back
from syncd.history.audited_vault import AuditedVault
from syncd.history.digest_chain import Entry, Head, check, compute_seal
from tests.support.audit_entries import change, log_write, sha, unwritable


def test_an_entry_says_who_what_and_when(audit):
    with acting_as(Author("mcp", "capture_thought", "k1", "claude", "r1")):
        log_write(audit, change())
    (entry,) = audit.entries()
    assert asdict(entry) == asdict(
        Entry(
            *(1, entry.at, "create", "mcp", "capture_thought", "r1", "k1", "claude", "default", "note", "i"),
            *("Captures/default/a.md", 3, "", "1", "done", 0, entry.seal),
        )
    )
    assert entry.seal == compute_seal(entry, digest_chain.GENESIS)
    assert audit.head == audit.saved_head() == Head(1, entry.seal)


def test_the_facts_name_the_head_also_while_the_ledger_can_not_be_read(audit, monkeypatch):
    log_write(audit, change())
    facts = audit.facts()
    assert facts == {"entries": 1, "head": str(audit.head), "problem": ""}

    def refused(*_):
        raise Unavailable("the ledger can't be read")

    monkeypatch.setattr(audit, "base", refused)
    assert audit.facts() == facts | {"entries": None}


def test_the_author_is_that_of_the_very_context(audit):
    seen = []

    def work(name):
        with acting_as(Author("mcp", name)):
            barrier.wait()
            seen.append((name, log_write(audit, change(path=name))))

    barrier = threading.Barrier(8)
    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = {entry.seq: (entry.tool, entry.path) for entry in audit.entries()}
    assert told == {seq: (name, name) for name, seq in seen}
    assert check(audit.entries(), Head()).broken == 0


def test_entries_are_found_by_what_is_known_of_them(audit):
    for n in range(10):
        with acting_as(Author("mcp" if n % 2 else "rest", f"tool{n % 3}", f"k{n % 2}", f"name{n % 2}")):
            log_write(audit, change(path=f"{n}.md", id=f"id{n}"))

    def numbers(**wanted):
        return [entry.seq for entry in audit.find(100, **wanted)]

    at = next(audit.entries()).at
    assert numbers() == numbers(workspace="default") == numbers(since=at) == list(range(1, 11))
    assert numbers(surface="mcp") == numbers(key="k1") == numbers(key="name1") == [2, 4, 6, 8, 10]
    assert numbers(tool="tool0", surface="rest") == [1, 7]
    assert numbers(id="id3") == numbers(id="3.md") == [4]
    assert numbers(workspace="other") == numbers(until=at) == []
    assert [entry.seq for entry in audit.find(3)] == [8, 9, 10]
    assert [entry.seq for entry in audit.find(3, after=2)] == [3, 4, 5]
    assert [entry.seq for entry in audit.find(3, after=0)] == [1, 2, 3]
    assert [entry.seq for entry in audit.find(3, before=8)] == [5, 6, 7]
    assert numbers(before=5, surface="mcp") == [2, 4]


def test_a_log_goes_on_where_it_ended(ledger, audit, tmp_path):
    log_write(audit, change())
    again = AuditLog(ledger, tmp_path / "state")
    log_write(again, change(before="1", after="2"))
    assert [entry.kind for entry in again.entries()] == ["create", "update"]
    assert check(again.entries(), Head()).broken == 0
    again.close()


def test_denied_calls_are_bounded_and_counted(audit):
    flooding, other = Author("mcp", "capture_thought", "k1", "flood"), Author("mcp", "capture_thought", "k2", "other")
    for _ in range(500):
        audit.log_denied(flooding, "PERMISSION_DENIED", "work")
    audit.log_denied(other, "PERMISSION_DENIED", "work")
    entries = list(audit.entries())
    assert len(entries) == log.DENIALS[0] + 1
    assert {entry.kind for entry in entries} == {"denied"}
    assert entries[-1].name == "other"
    left, then, more = audit._denials["k1"]
    audit._denials["k1"] = (left, then - 2 * log.DENIALS[1], more)  # two minutes later
    audit.log_denied(flooding, "PERMISSION_DENIED", "")
    assert audit.find(1)[0].outcome == "PERMISSION_DENIED, and 480 more like it before"
    assert check(audit.entries(), Head()).broken == 0


def test_what_can_not_be_logged_is_refused_and_told(ledger, audit):
    log_write(audit, change())
    with unwritable(ledger):
        with pytest.raises(Unavailable, match="nothing was changed"):
            log_write(audit, change(path="b.md"))
        assert audit.problem
        audit.log_denied(Author("mcp"), "PERMISSION_DENIED", "")  # is denied all the same
        audit.log_undone({1: change()}, "UNAVAILABLE")
        take_back(lambda: audit.log_taken_back(change(before="1", after="")))
        assert [entry.seq for entry in audit.find(9)] == [1]
        audit.retry()
        assert audit.problem
    audit.retry()
    assert not audit.problem, "nobody need write first"
    log_write(audit, change(path="b.md"))
    assert check(audit.entries(), Head()).broken == 0


def test_a_ledger_of_which_a_page_is_damaged_refuses_writes_too(ledger, audit):
    for n in range(200):
        log_write(audit, change(path=f"{n}.md"))
    ledger._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw = bytearray(ledger.path.read_bytes())
    for page in range(4096, len(raw), 4096):
        raw[page : page + 8] = b"\xff" * 8
    ledger.path.write_bytes(raw)
    ledger._connection.execute("PRAGMA cache_size = 0")
    ledger._connection.execute("PRAGMA shrink_memory")
    with pytest.raises(Unavailable, match="memex restore") as caught:
        log_write(audit, change(path="new.md"))
    assert not caught.value.retryable


@pytest.mark.parametrize("fails", ["the file of carried out writes", "the ledger"])
def test_a_write_is_taken_back_although_the_log_fails(ledger, tmp_path, fails):
    (tmp_path / "vault").mkdir()
    audit = AuditLog(ledger, tmp_path)
    vault = AuditedVault(tmp_path / "vault", audit, inbox="Captures")
    vault.create("Captures/default/a.md", b"one\n")
    if fails == "the ledger":
        ledger.close()
    else:
        audit.close()  # each write to its files fails
    take_back(lambda: vault.remove("Captures/default/a.md", digest=sha(b"one\n")))
    assert not vault.exists("Captures/default/a.md")
    vault.close()
