"""The note view over HTTP with a running daemon: versions are restored, moves taken back, and nothing unseen is overwritten."""

from __future__ import annotations

import html
import re
import shutil
from urllib.parse import quote

import pytest

from tests.support.local_daemon import local_page

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
MINE = "Mine & yours.md"


@pytest.fixture(scope="module")
def memex(tmp_path_factory):
    with local_page(tmp_path_factory.mktemp("note")) as running:
        running.write(MINE, "first\n")
        running.first = running.commit("first")
        running.settled()
        yield running


@pytest.fixture
def browser(memex):
    return memex.browser()


def follow(browser, answer):
    assert answer.status_code == 303, answer.text
    return browser.client.get(answer.headers["location"]).text


def fields(page):
    """The hidden fields of the form of a preview."""
    form = page.partition('<form class="actions" method="post"')[2]
    return {name: html.unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form)}


def restore(browser, page):
    return browser.post("/note/restore", **{name: value for name, value in fields(page).items() if name != "csrf"})


def test_an_edit_outside_memex_is_taken_back_and_the_restore_too(memex, browser):
    file = memex.write(MINE, "second, not committed\n")
    way = re.findall(r'href="(/note/restore[^"]*)"', browser.text(f"/note?path={quote(MINE)}"))[-1]
    preview = browser.client.get(html.unescape(way)).text
    assert '<span class="removed">-second, not committed' in preview
    assert '<span class="added">+first' in preview
    text = follow(browser, restore(browser, preview))
    assert "Restored <code>Mine &amp; yours.md</code> in commit" in text
    summaries = re.findall(r'<summary class="spaced">.*?</summary>', text, re.DOTALL)
    assert [summary for summary in summaries if "</span><span" in summary] == [], (
        "a blank between words, for readers of the text"
    )
    assert file.read_text() == "first\n"
    assert memex.git("show", f"HEAD~1:{MINE}") == "second, not committed\n"
    assert "Approved-By: " in memex.git("log", "-1", "--format=%B")
    (undo,) = re.findall(r'href="(/note/undo[^"]*)"', text)
    preview = browser.client.get(html.unescape(undo)).text
    follow(browser, browser.post("/note/undo", call=fields(preview)["call"], path=quote(MINE)))
    assert file.read_text() == "second, not committed\n"


def test_a_note_that_changed_after_the_preview_stays_and_the_new_difference_shows(memex, browser):
    file = memex.write(MINE, "third\n")
    preview = browser.client.get(f"/note/restore?path={quote(MINE)}&version={memex.first}").text
    file.write_text("fourth\n")
    answer = restore(browser, preview)
    assert answer.status_code == 409
    assert "changed after it was shown, so it was not restored" in answer.text
    assert '<span class="removed">-fourth' in answer.text
    assert file.read_text() == "fourth\n"
    follow(browser, restore(browser, answer.text))
    assert file.read_text() == "first\n"


def test_a_deleted_note_of_the_vault_is_back(memex, browser):
    memex.write("Gone.md", "here\n")
    memex.commit("there")
    (memex.vault / "Gone.md").unlink()
    memex.commit("gone")
    memex.until(lambda: browser.get("/note?path=Gone.md").status_code == 404)
    (way,) = re.findall(r'href="(/note/restore[^"]*)"', browser.get("/note?path=Gone.md").text)
    preview = browser.client.get(html.unescape(way)).text
    assert "The note does not exist" in preview
    follow(browser, restore(browser, preview))
    assert (memex.vault / "Gone.md").read_text() == "here\n"


def test_a_file_that_no_search_finds_is_not_called_gone(memex, browser):
    path = "Captures/Context/kept.md"
    memex.write(path, "mine\n")
    memex.commit("a file in the folder of contexts")
    answer = browser.get(f"/note?path={quote(path)}")
    assert answer.status_code == 200
    assert "This file is not in the index" in answer.text
    assert "no longer exists" not in answer.text
    (memex.vault / path).unlink()
    answer = browser.get(f"/note?path={quote(path)}")
    assert answer.status_code == 404
    assert "no longer exists" in answer.text


@pytest.mark.slow
@pytest.mark.parametrize("created", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"])
def test_a_note_from_the_end_of_the_calendar_is_shown(memex, browser, created):
    note, capture = f"Quokka {created[:4]}.md", f"Captures/default/Quokka {created[:4]}.md"
    for path in (note, capture):
        memex.write(path, f"---\ncreated_at: {created}\n---\nThe quokka sleeps.\n")
    memex.until(lambda: {note, capture} <= set(memex.found("quokka")))
    assert created[:10] in browser.text("/note", path=note)
    assert note in browser.text("/search", q="quokka")
    assert created[:10] in browser.text("/review", capture=capture)
    assert capture in memex.run("recent")


def test_a_version_that_nobody_knows_is_not_found(memex, browser):
    answer = browser.get(f"/note/restore?path={quote(MINE)}&version=ffffffff")
    assert answer.status_code == 404
    assert "has no version" in answer.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "way", "heading"),
    [
        (("promote", "--to", "House"), "unpromote", "Move this note back to the inbox?"),
        (("review", "dismiss"), "unarchive", "Take this capture out of the archive?"),
    ],
    ids=["promoted", "dismissed"],
)
def test_the_last_move_of_a_note_is_taken_back_from_its_history(memex, browser, words, way, heading):
    id = memex.capture(f"The sluice needs a plank, {way}.\n")
    before = memex.ask("get", id=id)["path"]
    done = memex.json(*words, id)
    (moved,) = done.get("promoted") or done["archived"]
    page = browser.client.get(f"/note?path={quote(moved['target'])}").text
    (link,) = re.findall(r'href="(/note/move-back[^"]*)"', page)
    assert way in link
    preview = browser.client.get(html.unescape(link)).text
    assert heading in preview
    text = follow(browser, browser.post("/note/move-back", path=fields(preview)["path"], way=way))
    assert f"Moved back: <code>{before}</code>" in text
    assert (memex.vault / before).exists()
    again = browser.post("/note/move-back", path=fields(preview)["path"], way=way)
    assert again.status_code == 409
    assert "Nothing was undone" in again.text
    assert browser.post("/note/move-back", path=fields(preview)["path"], way="delete").status_code == 400


def test_a_call_that_no_undo_can_reach_shows_what_works(memex, browser):
    id = memex.capture("The lock is rusty.\n")
    memex.ask("promote", ids=[id], to="House")
    call = memex.json("audit", "--tool", "promote")[-1]["request"]
    answer = browser.get(f"/note/undo?call={call}&path=House/The%20lock%20is%20rusty.md")
    assert answer.status_code == 409
    assert "memex unpromote returns promoted notes" in answer.text
    assert "/note/move-back" in answer.text


def test_single_letter_keys_are_a_choice_of_one_browser(memex, browser):
    other = memex.browser()
    answer = browser.post("/letter-keys", **{"letter-keys": "off", "back": "/search?q=plank"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/search?q=plank")
    assert 'data-letter-keys="off"' in browser.text("/search")
    assert 'data-letter-keys="on"' in other.text("/search")
    answer = browser.post("/letter-keys", **{"letter-keys": "on", "back": "https://evil.example/"})
    assert answer.headers["location"] == "/"
    assert 'data-letter-keys="on"' in browser.text("/search")
