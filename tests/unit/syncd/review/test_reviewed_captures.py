"""Which captures were reviewed, as the ledger remembers it."""

from __future__ import annotations

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
