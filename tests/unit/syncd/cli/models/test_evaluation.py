"""`memex eval` measures changed settings, `memex searches` lists and erases the recorded searches."""

from __future__ import annotations

import json
import os

import pytest

from syncd.cli.main import run_command
from syncd.settings.settings import load
from syncd.telemetry.search_log import SearchLog

pytestmark = pytest.mark.usefixtures("clean")


@pytest.fixture
def vault(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    folder = tmp_path / "vault"
    folder.mkdir()
    for topic in ("grey heron", "white stork"):
        (folder / f"About the {topic}.md").write_text(f"What is known about the {topic} is written in this note. " * 3)
    monkeypatch.chdir(tmp_path)
    assert run_command(["init", str(folder), "--yes", "--no-welcome"]) == 0
    return folder


def run(capfd, *words):
    capfd.readouterr()
    code = run_command(list(words))
    out, err = capfd.readouterr()
    return code, out, err


@pytest.mark.slow
def test_a_setting_is_measured_and_stays(vault, capfd):
    SearchLog(load({}, os.environ).state, enabled=True).record("heron", ["id"])
    code, out, _ = run(capfd, "eval", "--set", "search.mode=text", "--set", "index.chunk_tokens=32", "--json")
    result = json.loads(out)
    assert code == 0
    assert result["settings"] == {"search.mode": "text", "index.chunk_tokens": "32"}
    assert result["cost"]["changed"]["passages"] > result["cost"]["present"]["passages"]
    assert result["recorded"]["queries"] == 1
    assert load({}, os.environ).search.mode == "hybrid"


@pytest.mark.slow
def test_the_table_names_the_change(vault, capfd):
    code, out, _ = run(capfd, "eval", "--set", "search.mode=text")
    assert code == 0
    assert "present settings" in out and "changed settings: search.mode = text\n" in out


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("search.mode", "SETTING=VALUE"),
        ("log.level=debug", "SETTING=VALUE"),
        ("search.modus=text", 'Did you mean "search.mode"?'),
        ("search.mode=loud", "search.mode = 'loud' in --set: must be one of"),
        ("index.chunk_tokens=5000", "chunk_tokens"),
    ],
)
def test_what_is_no_setting_of_search_is_refused(vault, capfd, change, text):
    code, _, err = run(capfd, "eval", "--set", change)
    assert code == 2
    assert text in err


@pytest.mark.slow
def test_a_reranker_that_is_not_there_is_named(vault, capfd):
    code, _, err = run(capfd, "eval", "--set", "search.reranker=nowhere")
    assert code == 7
    assert "nowhere" in err


def test_recorded_searches_are_listed_and_erased(vault, capfd):
    assert (
        run(capfd, "searches")[1]
        == "no recorded searches; search.log is off; to record searches, set it to true: memex config --open\n"
    )
    log = SearchLog(load({}, os.environ).state, enabled=True)
    log.record("where herons \x1b[31mnest", ["a", "b"])
    assert json.loads(run(capfd, "searches", "--json")[1]) == [
        {"query": "where herons \x1b[31mnest", "hits": ["a", "b"]}
    ]
    assert "\x1b" not in run(capfd, "searches")[1]
    assert run(capfd, "searches", "--erase")[0] == 2, "without a terminal only --yes erases"
    assert run(capfd, "searches", "--erase", "--yes")[1] == "recorded searches erased: 1\n"
    assert run(capfd, "searches", "--json")[1].strip() == "[]"
