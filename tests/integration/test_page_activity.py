"""The activity of a running daemon on the page: the log with its filters, one entry, undo with a preview, and the check."""

from __future__ import annotations

import html
import re

import pytest

from tests.support.local_daemon import local_page

LONG_AGO = "2000-01-01T00:00"


@pytest.fixture(scope="module")
def memex(tmp_path_factory):
    with local_page(tmp_path_factory.mktemp("activity")) as running:
        running.capture("# Filter\n\nThe filter is due in May.\n")
        yield running


@pytest.fixture(scope="module")
def browser(memex):
    return memex.browser()


def paths(text):
    """Return the paths that a list links, in order."""
    return [html.unescape(path) for path in re.findall(r'<a class="path" data-item [^>]*>([^<]+)</a>', text)]


def hidden(text):
    """Return the hidden fields of the page's last form."""
    form = text[text.rindex("<form") :] if "<form" in text else ""
    form = text[text.index('class="confirm"') :] if 'class="confirm"' in text else form
    return {
        name: html.unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    }


def entries(memex, *words):
    """Return the entries of agents' writes; Memex writes too, at any time."""
    return memex.json("audit", "--surface", "rest", *words)


def test_the_log_is_listed_newest_first_and_filtered(memex, browser):
    memex.capture("# Boiler\n\nIt is new.\n")
    listed = paths(browser.text("/activity", surface="rest"))
    assert listed[:2] == ["Captures/default/Boiler.md", "Captures/default/Filter.md"]
    key = entries(memex)[-1]["name"]
    for query in ({"key": key}, {"workspace": "default", "surface": "rest"}, {"tool": "capture_thought"}):
        assert paths(browser.text("/activity", **query))[:2] == listed[:2]
    assert set(paths(browser.text("/activity", note="Captures/default/Filter.md"))) == {"Captures/default/Filter.md"}
    assert paths(browser.text("/activity", until=LONG_AGO)) == []
    assert paths(browser.text("/activity", since=LONG_AGO, surface="rest"))[:2] == listed[:2]
    assert "No entry matches" in browser.text("/activity", key="nobody")


@pytest.mark.parametrize("address", ["/activity", "/activity/undo"])
def test_the_form_keeps_an_agent_and_a_workspace_that_are_gone(browser, address):
    text = browser.text(address, key="gone agent", workspace="gone workspace")
    assert re.findall(r"<option selected>(.*?)</option>", text) == ["gone agent", "gone workspace"]


@pytest.mark.parametrize("query", [{"since": "yesterday"}, {"workspace": "\u202enone"}, {"before": "x"}])
def test_a_wrong_address_is_answered(browser, query):
    assert browser.get("/activity", **query).status_code in (200, 400)


@pytest.mark.slow
def test_a_long_log_has_pages(memex, browser):
    for number in range(101):
        memex.capture(f"Page {number} of the log.")
    first = browser.text("/activity", tool="capture_thought")
    older = html.unescape(re.search(r'rel="next" href="([^"]+)"', first)[1])
    second = browser.text(older)
    assert len(paths(first)) == 100
    assert paths(second)
    assert not set(paths(first)) & set(paths(second))
    assert 'rel="next"' not in second


def test_an_entry_shows_what_it_changed(memex, browser):
    seq = entries(memex, "--id", "Captures/default/Filter.md")[0]["seq"]
    text = browser.text("/activity/entry", seq=seq)
    assert '<span class="added">+The filter is due in May.' in text
    assert "Undo this call" in text
    assert browser.get("/activity/entry", seq=99_999_999).status_code == 404
    assert browser.get("/activity/entry").status_code == 400


def test_markup_in_a_note_stays_text_in_the_difference(memex, browser):
    memex.capture("# Hostile\n\n<script>alert(1)</script> </pre> \u202eevil\n")
    seq = entries(memex)[-1]["seq"]
    text = browser.text("/activity/entry", seq=seq)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "\u202e" not in text


def test_a_call_is_undone_after_a_preview_and_the_undo_too(memex, browser):
    memex.capture("# Gate\n\nIt is green.\n")
    call = entries(memex)[-1]["request"]
    preview = browser.text("/activity/undo", call=call)
    assert paths(preview) == ["Captures/default/Gate.md"]
    assert (memex.vault / "Captures/default/Gate.md").exists()
    answer = browser.post("/activity/undo", **hidden(preview))
    assert answer.status_code == 303
    assert not (memex.vault / "Captures/default/Gate.md").exists()
    shown = browser.text(answer.headers["location"])
    assert "1 file was undone." in shown
    again = html.unescape(re.search(r'href="(/activity/undo\?call=[^"]+)"', shown)[1])
    browser.post("/activity/undo", **hidden(browser.text(again)))
    assert (memex.vault / "Captures/default/Gate.md").read_text().endswith("It is green.\n")
    assert ["1 file was undone." in browser.text("/activity") for _ in range(2)] == [True, False]


def test_an_undo_by_time_leaves_what_came_after_its_preview_alone(memex, browser):
    key = memex.ask("key.create", name="gardener")["key"]

    def write(text):
        headers = {"authorization": f"Bearer {key}", "x-memory-workspace": "default"}
        assert memex.client.post(f"{memex.url}/capture", headers=headers, json={"content": text}).status_code in (
            200,
            201,
        )

    write("# Hedge\n\nCut it.\n")
    write("# Lawn\n\nMow it.\n")
    lawn = memex.vault / "Captures/default/Lawn.md"
    lawn.write_text(lawn.read_text() + "\nmine\n")
    preview = browser.text("/activity/undo", key="gardener", since=LONG_AGO)
    assert paths(preview) == ["Captures/default/Hedge.md"]
    assert "1 file would be left alone" in preview
    assert "edited manually" in preview
    write("# Pond\n\nFill it.\n")
    answer = browser.post("/activity/undo", **hidden(preview))
    message = browser.text(answer.headers["location"])
    assert "1 file was undone. 1 left alone" in message
    assert not (memex.vault / "Captures/default/Hedge.md").exists()
    assert (memex.vault / "Captures/default/Pond.md").exists()
    assert lawn.read_text().endswith("mine\n")


def test_an_undo_that_can_not_be_is_explained(browser):
    for query in ({"call": "0123456789abcdef"}, {"since": "2026-01-01", "key": "nobody"}, {"since": "soon"}):
        answer = browser.get("/activity/undo", **query)
        assert answer.status_code in (400, 404)
        assert 'role="alert"' in answer.text
        assert "Undo the changes" not in answer.text
    assert browser.post("/activity/undo").status_code == 400


def test_a_call_that_wrote_nothing_offers_no_undo(memex, browser):
    key = memex.ask("key.create", name="visitor", scopes=["read"])["key"]
    headers = {"authorization": f"Bearer {key}", "x-memory-workspace": "default"}
    assert memex.client.post(f"{memex.url}/capture", headers=headers, json={"content": "x"}).status_code == 403
    (call,) = [entry["request"] for entry in entries(memex) if entry["kind"] == "denied"]
    shown = browser.text("/activity", request=call)
    assert f"These are the entries of the call <code>{call}</code>" in shown
    assert "Undo this call" not in shown


def test_the_check_of_the_log_names_files_that_it_could_not_read(memex, browser):
    path = memex.ask("get", id=memex.capture("Unread."))["path"]
    file = memex.vault / path
    text = file.read_bytes()
    file.unlink()
    file.mkdir()
    page = browser.text("/activity/check", run="1")
    file.rmdir()
    file.write_bytes(text)
    assert "Not compared: 1" in page
    assert f'<span class="path">{path}</span> <span class="detail">is a folder, not a note</span>' in page
    assert "Every file in the inbox" not in page


def test_the_log_is_checked_with_the_head_that_was_noted(memex, browser):
    assert "Check now" in browser.text("/activity/check")
    text = browser.text("/activity/check", run="1")
    head = re.search(r"<code>(\d+:[0-9a-f]{64})</code>", text)[1]
    assert "The log is whole" in text
    memex.capture("One more.")
    assert "The log is whole" in browser.text("/activity/check", run="1", head=head)
    seq, _, seal = head.partition(":")
    broken = browser.text("/activity/check", run="1", head=f"{seq}:{seal[::-1]}")
    assert "The log is broken in 1 place" in broken
    assert "the log was rewritten" in broken
    answer = browser.get("/activity/check", run="1", head="nonsense")
    assert answer.status_code == 400
    assert "a head is an entry" in html.unescape(answer.text)
