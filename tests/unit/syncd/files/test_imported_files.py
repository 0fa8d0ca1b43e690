"""Files that were read are remembered across restarts, as far as bytes, size and time go."""

from __future__ import annotations

from index.model import Stat
from syncd.files.imported_files import ImportedFiles, documents_of, is_unchanged
from syncd.state.ledger import Ledger
from syncd.vault.vault import FileDigest


def test_what_was_read_is_known_again(tmp_path):
    tmp_path.chmod(0o700)
    ledger = Ledger.open(tmp_path / "ledger.db")
    handled = ImportedFiles(ledger)
    handled.put("a.pdf", FileDigest("d1", Stat(1, 2, 3)), "x")
    handled.put("b.pdf", FileDigest("d2", Stat(4, 5, 6)), "")
    handled.put("a.pdf", FileDigest("d3", Stat(7, 8, 9)), "x")
    again = ImportedFiles(ledger)
    assert sorted(again.paths()) == sorted(handled.paths()) == ["a.pdf", "b.pdf"]
    assert (documents_of(ledger, "d3"), documents_of(ledger, "d1")) == ([("a.pdf", "x")], [])
    assert [again.document_of("a.pdf", digest) for digest in ("d3", "d1")] == ["x", ""]
    known = again.get("a.pdf")
    assert known is not None
    assert known.digest == "d3"
    assert is_unchanged(known.stat, Stat(7, 8, 99))
    assert not is_unchanged(known.stat, Stat(7, 9, 99))
    again.forget(["a.pdf", "none.pdf"])
    assert ImportedFiles(ledger).paths() == again.paths() == ["b.pdf"]
    assert again.get("a.pdf") is None
    ledger.close()
