"""syncd/installation/first_notes.py: what a new inbox holds at first, and that deleted means deleted."""

from __future__ import annotations

import shutil

import pytest

from index.errors import NotFound
from syncd.installation.vault_setup import set_up_vault
from syncd.settings.settings import load
from syncd.state.folder import LEDGER
from tests.support.world import World

NOW = 1_795_000_000_000


@pytest.fixture
def vault(tmp_path):
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/Note.md").write_text("mine")
    return tmp_path / "vault"


def set_up(vault, welcome=True):
    settings = load({"vault.path": str(vault), "state": str(vault.parent / "state")}, {"HOME": str(vault.parent)})
    set_up_vault(settings, now=NOW, again=True, welcome=welcome)
    return settings


def notes(vault):
    return sorted(str(path.relative_to(vault)) for path in vault.rglob("*.md"))


def test_a_new_inbox_has_a_note_that_explains_it_in_six_lines(vault):
    set_up(vault, welcome=False)
    assert notes(vault) == ["Captures/About.md", "Note.md"]
    assert len((vault / "Captures/About.md").read_text().splitlines()) == 6


def test_a_welcome_capture_is_written_where_it_is_wanted(vault):
    set_up(vault)
    assert notes(vault) == ["Captures/About.md", "Captures/default/Welcome to Memex.md", "Note.md"]


@pytest.mark.parametrize("gone", ["Captures/About.md", "Captures"])
def test_what_was_deleted_is_not_written_again(vault, gone):
    set_up(vault)
    path = vault / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    set_up(vault)
    assert not (vault / "Captures/About.md").exists()


def test_an_inbox_that_was_there_before_is_left_as_it_is(vault):
    (vault / "Captures/default").mkdir(parents=True)
    set_up(vault)
    assert notes(vault) == ["Note.md"]


def test_serving_alone_writes_neither(vault):
    settings = load({"vault.path": str(vault), "state": str(vault.parent / "state")}, {"HOME": str(vault.parent)})
    set_up_vault(settings, now=NOW)
    assert notes(vault) == ["Note.md"]


def test_a_name_that_a_note_of_the_vault_has_is_not_used_a_second_time(vault):
    (vault / "Projects").mkdir()
    (vault / "Projects/about.md").write_text("mine, and links lead to it")
    set_up(vault, welcome=False)
    assert notes(vault) == ["Note.md", "Projects/about.md"]


def test_agents_find_the_welcome_capture_and_nobody_takes_about_for_a_capture(vault):
    set_up(vault)
    world = World(vault.parent)
    try:
        world.run()
        agents = world.app.agent_access.workspace("default")
        assert world.found("Welcome to Memex", mode="text", scope="captures") == [
            "Captures/default/Welcome to Memex.md"
        ]
        assert world.found("workspace inbox agents", mode="text") == ["Captures/default/Welcome to Memex.md"]
        for address in ("About.md", "About", "../About.md"):
            with pytest.raises(NotFound):
                agents.document_at(address)
        waiting = [record.path for record, _ in world.app.services.review.list_waiting()]
        assert waiting == ["Captures/default/Welcome to Memex.md"]
        assert world.app.opened.audit.last_entry("Captures/About.md").tool == "init"
        assert world.app.backfill.facts()["missing"] == 0, "the welcome capture needs no enrichment"
    finally:
        world.close()


def test_the_ledger_that_records_it_is_opened_as_before(vault):
    settings = set_up(vault)
    assert (settings.state / LEDGER).stat().st_mode & 0o777 == 0o600
