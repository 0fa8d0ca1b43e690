"""The shares of each workspace: what is kept, and from when on it counts."""

from __future__ import annotations

import pytest

from index.errors import InvalidArgument, NotFound, ResourceExhausted
from syncd.sharing.share_rules import MOST
from syncd.sharing.shares import Shares
from syncd.state.ledger import Ledger


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.db")
    yield ledger
    ledger.close()


def opened(ledger):
    return Shares(ledger, inbox="Captures", never=("Private",))


def test_a_share_counts_at_once_and_after_a_restart(ledger):
    shares = opened(ledger)
    assert shares.rules.is_empty
    shares.add("work", ["References", "Notes/Plan.md"])
    assert shares.entries_of("work") == ["Notes/Plan.md", "References/**"]
    for each in (shares, opened(ledger)):
        assert each.rules.shares("References/a.md", "work")
        assert not each.rules.shares("References/a.md", "home")
    shares.add("work", ["References/**"])
    assert shares.entries_of("work") == ["Notes/Plan.md", "References/**"]
    shares.remove("work", ["References/"])
    assert shares.entries_of("work") == ["Notes/Plan.md"]
    for each in (shares, opened(ledger)):
        assert not each.rules.shares("References/a.md", "work")
    shares.clear("work")
    assert opened(ledger).rules.is_empty


@pytest.mark.parametrize("path", ["Captures", "captures/work", "Private", "a/private/b", "..", "**"])
def test_what_can_never_be_shared_is_refused_and_changes_nothing(ledger, path):
    shares = opened(ledger)
    with pytest.raises(InvalidArgument):
        shares.add("work", ["References", path])
    assert opened(ledger).rules.is_empty


def test_only_a_share_can_be_removed(ledger):
    shares = opened(ledger)
    shares.add("work", ["References"])
    for path in ("References/deep", "Notes", "References/a.md"):
        with pytest.raises(NotFound, match="share: false"):
            shares.remove("work", ["References", path])
    assert shares.entries_of("work") == ["References/**"]


def test_a_workspace_has_a_limit(ledger):
    shares = opened(ledger)
    shares.add("work", [f"F{n}" for n in range(MOST)])
    with pytest.raises(ResourceExhausted):
        shares.add("work", ["Another"])
    shares.add("home", ["Another"])
