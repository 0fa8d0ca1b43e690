"""The doctor's checks of the index and the encoder, tried by breaking them; and what `--fix` does."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace

import pytest

from index.encoders.settings import EndpointSettings
from syncd.cli.doctor import state_checks
from syncd.settings.settings import EmbedSection
from tests.support.clinic import bytes_of, only

# The index


def _torn(build):
    newest = min((build / "vault.lance/chunks.lance/_versions").glob("*.manifest"))
    newest.write_bytes(newest.read_bytes()[:-20])


def _emptied(build):
    for data in (build / "vault.lance/chunks.lance/data").iterdir():
        data.write_bytes(b"")


def _orphaned(build):
    with sqlite3.connect(build / "vault.db") as catalog:
        catalog.execute("delete from documents")
    catalog.close()


def _scribbled(build):
    (build / "captures.db").write_bytes(b"nonsense" * 1000)


def _unnamed(build):
    (build.parent / "current").write_text("nothing")


def _unmade(build):
    (build / "made.json").write_text("{")


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (_torn, "vault: the newest manifest"),
        (_emptied, "vault: the chunks can't be read"),
        (_orphaned, "1 note has chunks, but no entry"),
        (_scribbled, "captures: the catalog captures.db can't be read"),
        (_unnamed, "does not name a build"),
        (_unmade, "does not record its encoder and settings"),
    ],
)
def test_a_broken_index_is_found_and_made_anew(clinic, break_it, words):
    break_it(clinic.build())
    before = bytes_of(clinic.state / "index")
    found = only(clinic.look(state_checks.check_index))
    assert found.is_ == "wrong"
    assert words in found.says
    assert bytes_of(clinic.state / "index") == before
    notes = bytes_of(clinic.vault)
    mended = clinic.look(state_checks.check_index, fix=True)
    assert [one.mended for one in mended] == ["Memex rebuilt the index from the notes"]
    assert only(clinic.look(state_checks.check_index)).is_ == "ok"
    assert {path: raw for path, raw in bytes_of(clinic.vault).items() if "Captures" not in str(path)} == {
        path: raw for path, raw in notes.items() if "Captures" not in str(path)
    }


def test_an_index_that_is_not_made_yet_is_no_ailment(clinic):
    shutil.rmtree(clinic.state / "index")
    finding = only(clinic.look(state_checks.check_index))
    assert (finding.is_, finding.says.partition(";")[0]) == ("advice", "there is none yet")


def test_a_command_that_was_killed_before_the_first_index_is_no_ailment(clinic):
    shutil.rmtree(clinic.state / "index")
    (clinic.state / "index/none").mkdir(parents=True)
    assert only(clinic.look(state_checks.check_index)).is_ == "advice"


def test_a_daemon_compares_what_it_has_open(clinic):
    with clinic.serving() as app:
        assert only(clinic.look(state_checks.check_index)).is_ == "ok"
        index = app.opened.builds.scopes["vault"].index
        with index.catalog.transaction() as writer:
            writer.execute("update documents set chunks = 7")
        found = only(clinic.look(state_checks.check_index))
        assert "1 note has fewer or more chunks" in found.says
        clinic.look(state_checks.check_index, fix=True)
        assert only(clinic.look(state_checks.check_index)).is_ == "ok"


# The encoder


def test_the_bundled_model_is_really_loaded(clinic):
    assert "384 dimensions" in only(clinic.look(state_checks.check_encoder)).says


def test_an_encoder_that_is_away(clinic):
    away = EndpointSettings(base_url="http://127.0.0.1:9/v1", model="x", retries=0, timeout_s=1.0)
    clinic.settings = replace(clinic.settings, embed_section=EmbedSection(encoders=(away,)))
    assert only(clinic.look(state_checks.check_encoder)).is_ == "wrong"


def test_what_the_daemon_calls_degraded_is_told(clinic):
    with clinic.serving() as app:
        app.opened.sync._trouble["sync"] = "indexing: the disk is full"
        found = [one for one in clinic.look(state_checks.check_daemon) if one.check == "indexing"]
    assert (found[0].is_, found[0].says) == ("wrong", "the disk is full")
