"""Masked names: no secret gets into the chain, and the files are found all the same."""

from random import Random

import pytest

from syncd.history import masked_names
from syncd.history.audit_log import AuditLog, Author, acting_as
from syncd.history.digest_chain import Head, check, format_line
from syncd.state.ledger import Ledger
from tests.support.audit_entries import change, log_write, unwritable
from tests.support.generated_secrets import MAKERS

SECRET = MAKERS["github-token"](Random(5))
PATH = f"Captures/default/{SECRET}.md"


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.db")
    yield ledger
    ledger.close()


def opened(ledger):
    return AuditLog(ledger, ledger.path.parent)


def test_the_log_holds_a_mask_and_finds_the_file_by_its_name(ledger):
    log = opened(ledger)
    log_write(log, change(PATH, id=SECRET))
    log_write(log, change(PATH, before="1", after="2", id=SECRET))
    log_write(log, change("Captures/default/Plan.md"))
    for reader in (log, opened(ledger)):  # a restart knows the names
        assert SECRET not in "".join(map(format_line, reader.entries()))
        assert check(reader.entries(), Head()).broken == 0
        assert reader.last_entry(PATH).path == PATH
        assert [entry.after for entry in reader.entries_backwards(PATH)] == ["2", "1"]
        assert [entry.path for entry in reader.entries_about(id=SECRET)] == [PATH, PATH]
        assert reader.last_digests() == {PATH: "2", "Captures/default/Plan.md": "1"}
        assert reader.changed_paths(0, 9) == {PATH, "Captures/default/Plan.md"}
        assert reader.has_created(SECRET)
        assert [(id, path) for id, path, *_ in reader.latest_notes() if path == PATH] == [(SECRET, PATH)]
        assert [entry.id for entry in reader.find(9, id=SECRET)] == [SECRET, SECRET]
        assert all(SECRET not in entry.path + entry.id for entry in reader.find(9, masked=True))


def test_entries_that_another_release_sealed_with_the_name_itself_are_found(ledger, monkeypatch):
    with monkeypatch.context() as older:  # it knew no such secret
        older.setattr(masked_names, "mask", str)
        log_write(opened(ledger), change(PATH, id=SECRET))
    log = opened(ledger)
    log_write(log, change(PATH, before="1", after="2", id=SECRET))
    for _ in range(2):
        assert log.has_created(SECRET)
        assert log.last_entry(PATH).after == "2"
        assert [entry.after for entry in log.entries_backwards(PATH)] == ["2", "1"]
        assert (
            len(log.entries_about(id=SECRET)) == len(log.entries_about(path=PATH)) == len(log.find(9, id=SECRET)) == 2
        )
        assert log.notes_from_agents([SECRET]) == set()
        log = opened(ledger)
    with acting_as(Author("rest", "capture_thought")):
        log_write(log, change(PATH, before="2", after="3", id=SECRET))
    assert {id for id, _ in log.notes_from_agents([SECRET, "another"])} == {SECRET}


def test_two_names_stay_two(ledger):
    log, other = opened(ledger), f"Captures/default/{MAKERS['github-token'](Random(6))}.md"
    log_write(log, change(PATH, after="1"))
    log_write(log, change(other, after="2"))
    assert (log.last_entry(PATH).after, log.last_entry(other).after) == ("1", "2")


def test_a_name_goes_with_the_last_entry_that_has_it(ledger):
    log = opened(ledger)
    log_write(log, change(PATH, id="a"))
    log_write(log, change(PATH, before="1", after="", id="a"))
    for name in ("a", "b"):
        log_write(log, change(f"Captures/default/{name}.md", id=name))
    log.prune(2)
    assert not [value for (value,) in ledger.query("SELECT value FROM tended") if SECRET in value]


def test_a_write_whose_mask_cannot_be_kept_is_refused(ledger):
    log = opened(ledger)
    with unwritable(ledger), pytest.raises(Exception, match="can't be written"):
        log_write(log, change(PATH))
    assert list(log.entries()) == []
