"""Which names are in use by files that are no notes."""

from __future__ import annotations

import threading

import pytest

from index.names import fold
from syncd.vault.taken_names import OtherFileNames
from syncd.vault.vault import Vault


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "vault"
    for path in ("a/Report.PDF", "b/report.pdf", "n.md", ".obsidian/x.pdf", "caf\u00e9.txt", "README"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"text")
    (root / "link.pdf").symlink_to("/etc/passwd")
    return root


@pytest.fixture
def beside(root):
    vault = Vault(root)
    yield OtherFileNames(vault)
    vault.close()


def test_names_are_found_anywhere_whatever_their_case_or_form(beside):
    assert beside.find_paths(fold("REPORT.pdf")) == {"a/Report.PDF", "b/report.pdf"}
    assert beside.is_taken(fold("cafe\u0301.TXT"))
    assert beside.is_taken("link.pdf")
    assert not beside.is_taken("x.pdf")
    assert not beside.is_taken("n.md")
    assert not beside.is_taken("readme")  # `[[README]]` is a note


def test_what_was_put_there_counts_at_once_and_what_is_gone_no_more(beside, root):
    assert not beside.is_taken("new.pdf")
    (root / "new.pdf").write_bytes(b"text")
    beside.add("new.pdf")
    assert beside.find_paths("new.pdf") == {"new.pdf"}
    (root / "new.pdf").unlink()
    assert not beside.is_taken("new.pdf")


def test_what_a_person_puts_there_counts_soon(beside, root, monkeypatch):
    assert not beside.is_taken("new.pdf")
    (root / "new.pdf").write_bytes(b"text")
    monkeypatch.setattr("syncd.vault.taken_names.FRESH_S", 0.0)
    assert beside.is_taken("new.pdf")


def test_a_name_is_kept_for_one_at_a_time(beside):
    with beside.reserve("a", "b") as ours:
        assert ours
        with beside.reserve("b", "c") as second:
            assert not second
        with beside.reserve("c") as third:
            assert third
    with beside.reserve("b") as again:
        assert again


def test_only_one_of_many_threads_gets_a_name(beside):
    got, start = [], threading.Barrier(8)
    done = threading.Event()

    def work():
        start.wait(10)
        with beside.reserve("a") as ours:
            got.append(ours)
            done.wait(10) if ours else None

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(0.2)
    done.set()
    for thread in threads:
        thread.join(60)
    assert sorted(got) == [False] * 7 + [True]
