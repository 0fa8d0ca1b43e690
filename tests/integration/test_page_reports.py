"""The reports view of the page, over HTTP with a running daemon: texts, ticks in the report, outcomes, undo."""

from __future__ import annotations

import re
import shutil
from urllib.parse import quote_plus

import pytest

from syncd.daemon.control_socket import call
from tests.support.local_daemon import local_page

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
SAME = "Hybrid search fuses the ranks of words and vectors, and neither leg may outweigh the other."


@pytest.fixture
def memex(tmp_path):
    with local_page(tmp_path) as running:
        running.write("Mine.md", "my own #k8s, and [[Captures/default/Search]]\n")
        running.commit("Begin")
        for title, text, tag in (("Search", SAME, "k8s"), ("Search 2", f"{SAME} Always.", "kubernetes")):
            running.capture(text, metadata={"title": title, "tags": [tag, "search"]})
        running.capture("The port of Atlas is 8080.", metadata={"tags": ["k8s"]})
        running.capture("A cluster of kubernetes nodes.", metadata={"tags": ["kubernetes"]})
        yield running


def ask(memex, operation, **arguments):
    return call(memex.state, operation, arguments, timeout=60)


def key_of(browser, words):
    """The key of the proposal whose sentence begins with these words."""
    (key,) = re.findall(rf'id="says-([0-9a-f]{{16}})" class="sentence">{words}', browser.text("/reports"))
    return key


def follow(browser, answer):
    assert answer.status_code == 303, answer.text
    return browser.client.get(answer.headers["location"]).text


def files(memex):
    return {
        str(path.relative_to(memex.vault)): path.read_bytes()
        for path in memex.vault.rglob("*.md")
        if not {"Reports", "Context"} & set(path.parts)  # Memex writes these when it is time
    }


def test_proposals_are_found_ticked_carried_out_and_undone(memex):
    browser = memex.browser()
    assert "Memex has not scanned the captures yet" in browser.text("/reports")
    text = follow(browser, browser.post("/reports/scan"))
    assert "Scanned all workspaces" in text
    assert "Stays: Search 2" in text
    assert "<mark> Always.</mark>" in text
    (report,) = (memex.vault / "Captures/Reports").glob("*.md")
    before = files(memex)

    merge, tag = key_of(browser, "Keep Search"), key_of(browser, "Replace the tag")
    text = follow(browser, browser.post("/reports/carry-out", tick=[merge, tag]))
    assert text.count("Done: ") == 2
    assert "[[Captures/Archive/default/Search]]" in (memex.vault / "Mine.md").read_text()
    assert report.read_text().count("✅") == 2
    assert "Merge Search into Search 2" in memex.git("log", "--format=%s")
    fresh = text.partition("Carried out now")[2].partition("Waiting for your answer")[0]
    assert memex.git("log", "-1", "--format=%h", "--abbrev=10").strip() in fresh
    assert f'href="/note?path={quote_plus("Captures/default/Search 2.md")}"' in fresh
    assert '<span class="added">+my own #k8s, and [[Captures/Archive/default/Search]]' in fresh
    assert '<span class="verb">removed</span>' in fresh

    text = follow(browser, browser.post("/reports/undo", key=tag))
    assert "Undone: " in text
    text = follow(browser, browser.post("/reports/undo", key=merge))
    assert files(memex) == before
    assert memex.git("log", "-1", "--format=%s").strip() == "Undo: Merge Search into Search 2"
    assert "[[Captures/Archive" not in report.read_text()
    assert browser.post("/reports/undo", key=merge).status_code == 409
    assert browser.post("/reports/undo", key="0" * 16).status_code == 404
    assert merge not in browser.text("/reports", page="9").partition("Carried out")[0]


@pytest.mark.slow
def test_a_dismissed_proposal_has_a_dash_in_the_report_and_does_not_come_again(memex):
    browser = memex.browser()
    browser.post("/reports/scan")
    (report,) = (memex.vault / "Captures/Reports").glob("*.md")
    tag = key_of(browser, "Replace the tag")
    assert "does not ask again" in follow(browser, browser.post("/reports/dismiss", key=tag))
    assert "- [-] Replace the tag" in report.read_text()
    assert ask(memex, "consolidate")["new"] == 0
    assert tag not in browser.text("/reports")


@pytest.mark.slow  # unit/syncd/consolidation/test_consolidation.py holds it without the page
def test_a_proposal_whose_note_changed_changes_nothing_and_says_so(memex):
    browser = memex.browser()
    browser.post("/reports/scan")
    merge = key_of(browser, "Keep Search")
    file = memex.vault / "Captures/default/Search 2.md"
    file.write_text(file.read_text().replace("Always", "Never"))
    ask(memex, "index")
    assert "changed after the proposal" in browser.text("/reports")
    text = follow(browser, browser.post("/reports/carry-out", tick=merge))
    assert "Not done: " in text
    assert "Never" in file.read_text()


@pytest.mark.slow
def test_a_change_after_the_merge_prevents_its_undo_and_is_named(memex):
    browser = memex.browser()
    browser.post("/reports/scan")
    merge = key_of(browser, "Keep Search")
    browser.post("/reports/carry-out", tick=merge)
    file = memex.vault / "Captures/default/Search 2.md"
    file.write_text(file.read_text() + "\nMine.\n")
    answer = browser.post("/reports/undo", key=merge)
    assert answer.status_code == 409
    assert "Captures/default/Search 2.md" in answer.text
    assert file.read_text().endswith("\nMine.\n")


@pytest.mark.slow
def test_a_box_that_is_gone_refuses_the_whole_form_and_keeps_its_ticks(memex):
    browser = memex.browser()
    browser.post("/reports/scan")
    (report,) = (memex.vault / "Captures/Reports").glob("*.md")
    merge, tag = key_of(browser, "Keep Search"), key_of(browser, "Replace the tag")
    lines = [line for line in report.read_text().splitlines() if merge not in line]
    report.write_text("\n".join(lines))
    answer = browser.post("/reports/carry-out", tick=[merge, tag])
    assert answer.status_code == 404
    assert f'value="{tag}" id="tick-{tag}" aria-labelledby="says-{tag}" checked' in answer.text
    assert "1 more proposal is in no report" in answer.text
    assert (memex.vault / "Captures/default/Search 2.md").exists()
    assert "Nothing was ticked" in follow(browser, browser.post("/reports/carry-out"))


@pytest.mark.slow
def test_the_command_lists_answers_and_undoes_as_the_page_does(memex):
    memex.run("consolidate")
    listed = memex.json("consolidate", "--list")
    keys = {row["kind"]: row["key"] for row in listed["proposals"]}
    assert keys["tag-merge"] in memex.run("consolidate", "--list")
    done = memex.json("consolidate", "--accept", keys["tag-merge"], "--dismiss", keys["merge-duplicates"])
    assert [outcome["done"] for outcome in done["carried"]] == [True]
    assert done["dismissed"] == 1
    (carried,) = memex.json("consolidate", "--list")["carried"]
    assert {"path": "Captures/default/Search.md", "did": "changed"} in carried["files"]
    assert "    changed  Captures/default/" in memex.run("consolidate", "--list")
    assert "undone: " in memex.run("consolidate", "--undo", keys["tag-merge"])
    assert "undone: Replace the tag" in memex.run("consolidate", "--list")
