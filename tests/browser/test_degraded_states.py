"""Every view of the page while a part of Memex fails for a real reason: what works still works, and the page says what to do."""

from __future__ import annotations

import pytest

from tests.support.disk_faults import filled, small_disk
from tests.support.page_browser import paged_daemon
from tests.support.page_views import NOTE, PLACES

FAILED = "The page failed"
AWAY = "the vault's folder is gone or was replaced"
NO_MODEL = """
[[embed.encoders]]
kind = "endpoint"
base_url = "http://127.0.0.1:9/v1"
model = "none"
retries = 0
timeout_s = 2.0
"""


def look_at_every_view(tab, sentence, *, search=True):
    """Open each view: none fails, and Home says what is wrong, as does Search if hits may be missing."""
    texts = {}
    for view, place in PLACES.items():
        tab.goto(place.address)
        texts[view] = tab.text
        assert FAILED not in texts[view], view
    assert sentence in texts["home"]
    assert (sentence in texts["search"]) == search
    return texts


@pytest.mark.slow  # the vault is looked for every 15 seconds
def test_a_vault_that_is_away_is_reported_and_comes_back(demo, tab):
    away = demo.vault.with_name("away")
    demo.vault.rename(away)
    try:
        tab.wait(f'#health:has-text("{AWAY}")')
        texts = look_at_every_view(tab, AWAY)
        assert "Heron battery" in texts["search"]
        for view in ("note", "review", "reports", "graph", "activity", "jobs", "clients"):
            assert "Memex changes nothing until it is back" in texts[view], view
        tab.goto("/")
        assert tab.axe == []
    finally:
        away.rename(demo.vault)
    tab.wait_gone(f'#health:has-text("{AWAY}")')
    assert [error for error in tab.call("forgive") if "503" not in error] == []


def test_a_repository_without_a_branch_is_reported_and_a_decision_still_works(demo, tab):
    demo.capture("The bridge needs a new rail.")
    demo.git("checkout", "-q", "--detach")
    try:
        tab.goto(f"/review?capture={demo.ask('get', id='The bridge needs a new rail')['path']}")
        tab.wait("body[data-settled]")
        tab.press("d")
        tab.wait('.message:has-text("Dismissed")')
        look_at_every_view(tab, "git: ", search=False)
    finally:
        demo.git("switch", "-q", "main")


@pytest.mark.slow
def test_an_index_that_is_rebuilt_is_reported_until_it_is_complete(demo, tab):
    rebuild = demo.start("index", "--full")
    tab.wait('#health:has-text("being rebuilt")')
    look_at_every_view(tab, "being rebuilt")
    assert rebuild.wait(120) == 0
    tab.goto("/")
    tab.wait_gone('#health:has-text("being rebuilt")')


@pytest.mark.slow
def test_without_an_encoder_notes_are_found_by_their_words(browser, tmp_path, models):
    (tmp_path / "home/.config/memex").mkdir(parents=True)
    (tmp_path / "home/.config/memex/config.toml").write_text(NO_MODEL)
    (tmp_path / "vault/Captures/default").mkdir(parents=True)
    (tmp_path / "vault" / NOTE).parent.mkdir(parents=True)
    (tmp_path / "vault" / NOTE).write_text("Battery thermal sums\n")
    with paged_daemon(tmp_path, models) as memex:
        tab = browser.open(memex.one_time_link())
        tab.wait('#health:has-text("encoder: ")')
        texts = look_at_every_view(tab, "encoder: ")
        assert "Battery thermal sums" in texts["search"]
        tab.goto("/")
        assert tab.axe == []


@pytest.mark.slow
def test_a_full_disk_loses_no_text_and_is_reported(browser, tmp_path, models):
    with small_disk(tmp_path / "vault", "2m"):
        (tmp_path / "vault/Captures/default").mkdir(parents=True)
        with paged_daemon(tmp_path, models) as memex:
            path = memex.ask("get", id=memex.capture("The sluice leaks.\n"))["path"]
            memex.settled()
            tab, other = browser.open(memex.one_time_link()), browser.open(memex.one_time_link())
            tab.goto(f"/review/edit?capture={path}")
            tab.fill("textarea", "The sluice leaks at the left hinge.\n" + "Measured each day.\n" * 500)
            with filled(tmp_path / "vault"):
                tab.click('button:has-text("Save")')
                tab.wait('[role=alert]:has-text("disk is full")')
                assert "left hinge" in tab.call("inputValue", "textarea")
                for place in PLACES.values():
                    other.goto(place.address)
                    assert FAILED not in other.text
            assert "The sluice leaks." in memex.ask("get", id=path)["content"]
