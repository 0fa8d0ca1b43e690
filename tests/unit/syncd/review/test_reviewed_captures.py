"""Which captures were reviewed, as the ledger remembers it."""

from __future__ import annotations

from dataclasses import replace

from syncd.review import reviewed_captures
from syncd.review.reviewed_captures import DIGITS, ReviewedCapture, ReviewedCaptures, shorten
from syncd.state.ledger import Ledger

SOUP, BREAD = ReviewedCapture("a" * DIGITS, "b" * 64, 3, 1_700_000_000_000), ReviewedCapture("c", "d", 4, 5)


def test_what_is_kept_is_read_back_after_a_restart_until_it_is_forgotten(tmp_path):
    tmp_path.chmod(0o700)
    ledger = Ledger.open(tmp_path / "ledger.db")
    kept = ReviewedCaptures(ledger)
    kept.keep({"Soup.md": SOUP, "Bread.md": SOUP})
    kept.keep({"Bread.md": BREAD})
    kept.keep({})
    ledger.close()
    ledger = Ledger.open(tmp_path / "ledger.db")
    kept = ReviewedCaptures(ledger)
    assert kept.read() == {"Soup.md": SOUP, "Bread.md": BREAD}
    kept.forget(["Bread.md", "Nowhere.md"])
    kept.forget([])
    assert kept.read() == {"Soup.md": SOUP}
    ledger.close()


def test_a_digest_is_kept_by_its_beginning():
    assert shorten("0123456789abcdef" * 4) == ("0123456789abcdef" * 4)[:DIGITS]


def test_captures_are_due_unless_they_were_reviewed_in_their_present_state(tmp_path, monkeypatch):
    monkeypatch.setattr(reviewed_captures, "PAGE", 2)
    tmp_path.chmod(0o700)
    ledger = Ledger.open(tmp_path / "ledger.db")
    reviews = {f"{name}.md": replace(SOUP, digest=name * DIGITS) for name in "abcde"}
    kept = ReviewedCaptures(ledger)
    kept.keep(reviews)
    digests = {"a.md": "a" * 64, "c.md": "x" * 64, "e.md": "e" * 64, "f.md": "f" * 64}
    assert kept.find_due(digests) == {"c.md": reviews["c.md"], "f.md": None}
    assert kept.find_due({}) == {}
    ledger.close()
