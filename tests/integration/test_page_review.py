"""The review view of the page, over HTTP with a running daemon: cards, decisions, batches, conflicts, editing and undo."""

from __future__ import annotations

import html
import re
import secrets
import shutil
from urllib.parse import quote

import pytest

from syncd.daemon.control_socket import call
from syncd.page.web.templates import link
from tests.support.change_notes import change_note
from tests.support.local_daemon import local_page

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with local_page(tmp_path_factory.mktemp("review")) as memex:
        memex.write("Projects/Heron.md", "The heron station.\n")
        memex.write("Notes/Home.md", "My home.\n")
        memex.commit("Begin")
        memex.ask("index")
        yield memex


@pytest.fixture
def memex(running):
    """The daemon, with a vault in which nothing waits."""
    waiting = [row["path"] for row in ask(running, "review.list", limit=1000)["waiting"]]
    if waiting:
        ask(running, "review.dismiss", ids=waiting)
    return running


@pytest.fixture(scope="module")
def browser(running):
    return running.browser()


def ask(memex, operation, **arguments):
    return call(memex.state, operation, arguments, timeout=60)


def capture(memex, title, text=""):
    """Capture a note, and return its path; without a text, one that no other note has."""
    text = text or f"The filter of {secrets.token_hex(8)} is due in May."
    return ask(memex, "get", id=memex.capture(text, metadata={"title": title}))["path"]


def form(text, *, id="card"):
    """The hidden fields of the first form below the element with this id."""
    part = text[text.index(f'id="{id}"') :].partition("</form>")[0]
    fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', part)
    return {name: html.unescape(value) for name, value in fields}


def card(browser, path):
    return form(browser.text("/review", capture=path))


def where(answer):
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def follow(browser, answer):
    return browser.client.get(where(answer), follow_redirects=True).text


def test_without_captures_nothing_waits(browser):
    assert "Nothing waits for a decision" in browser.text("/review")


def test_the_view_leads_to_the_oldest_capture(memex, browser):
    path = capture(memex, "Filter")
    capture(memex, "Second")
    assert where(browser.get("/review")) == link("/review", capture=path)
    text = browser.text("/review", capture=path)
    assert "2 captures wait" in text
    assert "is due in May." in text
    assert '<option value="Projects">' in text
    assert '<option value="Captures/default">' not in text


def test_a_capture_is_promoted_in_one_commit_and_undone(memex, browser):
    path, other = capture(memex, "Valve"), capture(memex, "Second")
    answer = browser.post("/review/promote", **card(browser, path), to="Projects")
    assert where(answer) == link("/review", capture=other)
    text = follow(browser, answer)
    assert "<code>Projects/Valve.md</code>" in text
    assert (memex.vault / "Projects/Valve.md").exists()
    assert not (memex.vault / path).exists()
    assert "Projects/Valve.md" in memex.git("show", "--name-only", "--format=%b", "HEAD")
    fields = form(text, id="main")
    assert path in follow(browser, browser.post("/review/undo", **fields))
    assert (memex.vault / path).exists()
    assert not (memex.vault / "Projects/Valve.md").exists()
    assert "undone already" in follow(browser, browser.post("/review/undo", **fields))


def test_a_proposed_change_is_shown_with_its_diff_applied_and_undone(memex, browser):
    note, before = "Projects/Sluice.md", "# Sluice\n\nopen\n"
    file, path = memex.write(note, before), "Captures/default/Change of Sluice.md"
    memex.write(path, change_note("c1", note, before, before.replace("open", "<shut>")))
    memex.ask("index")
    text = browser.text("/review", capture=path)
    assert "-open\n+&lt;shut&gt;" in text
    assert "Apply <kbd>" in text
    assert 'id="to"' not in text
    assert ">change</span>" in text
    done = follow(browser, browser.post("/review/promote", **card(browser, path)))
    assert f"Applied: <code>{note}</code>" in done
    assert file.read_text() == "# Sluice\n\n<shut>\n"
    assert f'<span class="path">{note}</span>' in browser.text("/activity/undo", call=note)
    assert path in follow(browser, browser.post("/review/undo", **form(done, id="main")))
    assert file.read_text() == before
    file.write_text(before.replace("open", "stuck"))
    memex.ask("index")
    assert "in the same lines" in browser.text("/review", capture=path)
    refused = browser.post("/review/promote", **card(browser, path))
    assert refused.status_code == 409
    assert 'class="changes"' not in refused.text
    assert "stuck" in file.read_text()
    file.unlink()
    memex.ask("index", accept_removals=True)
    assert "does not exist any more" in browser.text("/review", capture=path)


def test_a_capture_goes_into_the_root_a_pressed_folder_or_the_one_that_was_shown(memex, browser):
    for title, entered, target in (
        ("One", {"to": "/"}, "One.md"),
        ("Two", {"folder": quote("/Projects")}, "Projects/Two.md"),
        ("Three", {"to": "Notes"}, "Notes/Three.md"),
        ("Four", {"to": ""}, "Notes/Four.md"),
    ):
        where(browser.post("/review/promote", **card(browser, capture(memex, title)), **entered))
        assert (memex.vault / target).exists()


SUGGESTIONS = 'suggested_tags:\n  - pond\n  - birds\nsuggested_links:\n  - "[[Home]]"\n  - "[[Heron]]"\n---\n'


def capture_with_suggestions(memex, title):
    path = capture(memex, title)
    file = memex.vault / path
    head, _, body = file.read_text().rpartition("---\n")
    file.write_text(f"{head}{SUGGESTIONS}{body}")
    ask(memex, "index")
    return path


def test_only_the_suggestions_that_are_ticked_are_promoted_with_the_capture(memex, browser):
    path = capture_with_suggestions(memex, "Tidy")
    text = browser.text("/review", capture=path)
    assert re.findall(r'name="take" value="([^"]+)" data-press="([a-z])"', text) == [
        ("pond", "a"), ("birds", "b"), ("[[Home]]", "c"), ("[[Heron]]", "h"),
    ]  # fmt: skip
    answer = browser.post("/review/promote", **card(browser, path), to="Projects", take=["birds", "[[Home]]"])
    note = (memex.vault / "Projects/Tidy.md").read_text()
    assert "birds" in note
    assert note.endswith("\n\n[[Home]]\n")
    assert "pond" not in note
    assert "[[Heron]]" not in note
    follow(browser, browser.post("/review/undo", **form(follow(browser, answer), id="main")))
    assert SUGGESTIONS in (memex.vault / path).read_text()
    assert not (memex.vault / path).read_text().endswith("[[Home]]\n")


def test_a_refused_decision_keeps_the_ticks_and_a_made_up_suggestion_changes_nothing(memex, browser):
    path = capture_with_suggestions(memex, "Kept")
    fields = card(browser, path)
    refused = browser.post("/review/promote", **fields, to="Projects/../..", take="birds")
    assert refused.status_code == 409
    assert re.search(r'value="birds" [^>]*checked', refused.text)
    assert not re.search(r'value="pond" [^>]*checked', refused.text)
    made_up = browser.post("/review/promote", **fields, to="Projects", take="[[Nothing]]")
    assert made_up.status_code == 409
    assert "has no suggestion" in made_up.text
    assert (memex.vault / path).exists()


def test_a_card_shows_who_captured_it_when_and_where(memex, browser):
    secret = memex.ask("key.create", name="robin", workspaces=["default"])["key"]
    body = {"content": "The sluice needs grease.", "source": "field notes", "metadata": {"tags": ["sluice"]}}
    headers = {"authorization": f"Bearer {secret}", "x-memory-workspace": "default"}
    assert memex.client.post(memex.url + "/capture", json=body, headers=headers).is_success
    path = ask(memex, "review.list", limit=1)["waiting"][0]["path"]
    properties = browser.text("/review", capture=path).partition('<dl class="properties">')[2].partition("</dl>")[0]
    values = dict(re.findall(r"<dt>(\w+)</dt><dd[^>]*>(.*?)</dd>", properties))
    assert values["agent"] == "robin"
    assert values["workspace"] == "default"
    assert values["source"] == "field notes"
    assert "sluice" in values["tags"]
    assert "<time" in values["created"]
    mine = ask(memex, "get", id=ask(memex, "capture", content="I oil it in May.")["id"])["path"]
    assert "<dt>agent</dt><dd>you</dd>" in browser.text("/review", capture=mine)


def test_the_queue_of_one_workspace_is_decided_on_its_own(memex, browser):
    ask(memex, "workspace.create", name="garden")
    here = capture(memex, "Here")
    there = ask(memex, "get", id=ask(memex, "capture", content="Leeks in March.", workspace="garden")["id"])["path"]
    text = browser.text("/review", workspace="garden", capture=there)
    assert "1 capture waits" in text
    assert here not in text.partition('id="queue"')[2]
    text = follow(browser, browser.post("/review/dismiss", **form(text)))
    assert "Nothing in the workspace garden waits" in text
    text = follow(browser, browser.post("/review/undo", **form(text, id="main")))
    assert 'name="workspace" value="garden"' in text
    assert "Leeks in March." in text
    ask(memex, "review.dismiss", ids=[there])


def test_a_capture_is_dismissed_and_comes_back(memex, browser):
    path = capture(memex, "Filter")
    text = follow(browser, browser.post("/review/dismiss", **card(browser, path)))
    assert not (memex.vault / path).exists()
    follow(browser, browser.post("/review/undo", **form(text, id="main")))
    assert (memex.vault / path).exists()


def test_a_batch_is_decided_at_once_and_is_one_step(memex, browser):
    paths = [capture(memex, title) for title in ("North", "South", "East")]
    text = browser.text("/review", capture=paths[2])
    picks = [html.unescape(value) for value in re.findall(r'type="checkbox" name="pick" value="([^"]+)"', text)]
    answer = browser.post("/review/promote", **form(text, id="queue") | {"pick": picks[:2], "to": "Projects"})
    assert where(answer) == link("/review", capture=paths[2])
    text = follow(browser, answer)
    assert "Promoted 2 captures" in text
    assert (memex.vault / "Projects/North.md").exists()
    follow(browser, browser.post("/review/undo", **form(text, id="main")))
    assert all((memex.vault / path).exists() for path in paths)


def test_a_batch_without_a_tick_decides_nothing(memex, browser):
    path = capture(memex, "Filter")
    answer = browser.post("/review/dismiss", **form(browser.text("/review", capture=path), id="queue"))
    assert "Nothing was ticked" in follow(browser, answer)
    assert (memex.vault / path).exists()


@pytest.mark.parametrize("deed", ["promote", "dismiss"])
def test_a_capture_that_changed_under_an_open_card_is_shown_in_both_versions(memex, browser, deed):
    path = capture(memex, "Filter")
    fields = card(browser, path)
    file = memex.vault / path
    file.write_text(file.read_text().replace("due in May", "due in June"))
    ask(memex, "index")
    answer = browser.post(f"/review/{deed}", **fields, to="Projects")
    assert answer.status_code == 409
    assert "As you saw it" in answer.text
    assert "<mark> May.</mark>" in answer.text
    assert "<mark> June.</mark>" in answer.text
    assert 'value="Projects"' in answer.text or deed == "dismiss"
    assert file.exists()
    where(browser.post(f"/review/{deed}", **form(answer.text), to="Projects"))
    assert not file.exists()


def test_a_name_that_is_taken_is_named_and_the_folder_kept(memex, browser):
    path = "Captures/default/Heron.md"
    memex.write(path, "---\nid: heron\n---\nAnother heron.\n")
    ask(memex, "index")
    answer = browser.post("/review/promote", **card(browser, path), to="Projects")
    assert answer.status_code == 409
    assert "<code>Projects/Heron.md</code> already exists" in answer.text
    assert 'class="changes"' not in answer.text
    assert (memex.vault / path).exists()


def test_a_refusal_says_that_no_line_changed_if_only_properties_did(memex, browser):
    path = capture(memex, "Filter")
    fields = card(browser, path)
    file = memex.vault / path
    file.write_text(file.read_text().replace("---\n", "---\nmood: calm\n", 1))
    ask(memex, "index")
    answer = browser.post("/review/dismiss", **fields)
    assert answer.status_code == 409
    assert "No line of its text changed" in answer.text


def test_a_capture_that_was_decided_elsewhere_no_longer_waits(memex, browser):
    path = capture(memex, "Filter")
    fields = card(browser, path)
    ask(memex, "review.dismiss", ids=[path])
    assert "It no longer waits" in browser.text("/review", capture=path)
    answer = browser.post("/review/promote", **fields)
    assert answer.status_code == 409
    assert "It no longer waits" in answer.text


def test_a_text_is_edited_and_the_edit_undone(memex, browser):
    path = capture(memex, "Filter", "\nOne\n\ttwo <b>&amp;\u200b\n")
    shown = browser.text("/review/edit", capture=path)
    fields = form(shown, id="main")
    assert "two &lt;b&gt;&amp;amp;\u200b" in shown
    text = fields["shown"].replace("two", "three").replace("\n", "\r\n")
    answer = browser.post("/review/edit", **fields, text=text)
    page = follow(browser, answer)
    assert "\tthree <b>&amp;\u200b\n" in (memex.vault / path).read_bytes().decode()
    follow(browser, browser.post("/review/undo", **form(page, id="main")))
    assert "\ttwo <b>&amp;\u200b\n" in (memex.vault / path).read_bytes().decode()


def test_an_unchanged_text_writes_nothing(memex, browser):
    path = capture(memex, "Filter", "One\n\ntwo\n")
    fields = form(browser.text("/review/edit", capture=path), id="main")
    before = (memex.vault / path).read_bytes()
    answer = browser.post("/review/edit", **fields, text=fields["shown"].replace("\n", "\r\n"))
    assert "unchanged" in follow(browser, answer)
    assert (memex.vault / path).read_bytes() == before


def test_a_text_that_somebody_changed_meanwhile_is_shown_beside_the_entered_one(memex, browser):
    path = capture(memex, "Filter")
    fields = form(browser.text("/review/edit", capture=path), id="main")
    ask(memex, "updatenote", id=path, text="The filter is due in June.")
    answer = browser.post("/review/edit", **fields, text="The filter was changed.")
    assert answer.status_code == 409
    assert "The note as it is now" in answer.text
    assert "The filter was changed.</textarea>" in answer.text
    assert "June" in (memex.vault / path).read_text()
    where(browser.post("/review/edit", **form(answer.text, id="main"), text="The filter was changed in June."))
    assert "was changed in June" in (memex.vault / path).read_text()


@pytest.mark.parametrize("is_by_hand", [False, True])
def test_a_text_whose_note_has_other_properties_now_is_not_compared(memex, browser, is_by_hand):
    path = capture(memex, "Filter")
    fields = form(browser.text("/review/edit", capture=path), id="main")
    file = memex.vault / path
    if is_by_hand:
        file.write_text(file.read_text().replace("---\n", "---\nmood: calm\n", 1))
        ask(memex, "index")
    else:
        ask(memex, "updatenote", id=path, tags=["calm"])
    answer = browser.post("/review/edit", **fields, text="My text.")
    assert answer.status_code == 409
    reason = "a person has just edited the note" if is_by_hand else "Only its properties changed"
    assert reason in answer.text
    assert "The note as it is now" not in answer.text
    assert "My text.</textarea>" in answer.text
    assert "My text." not in file.read_text()


def test_a_text_is_refused_with_the_reason_if_the_properties_cannot_be_read(memex, browser):
    path = "Captures/default/Broken.md"
    file = memex.write(path, "---\ntitle: a: b: c\ntags: [x\n---\nLine one\n")
    ask(memex, "index")
    fields = form(browser.text("/review/edit", capture=path), id="main")
    for _ in range(2):
        answer = browser.post("/review/edit", **fields, text="My text.")
        assert answer.status_code == 409
        assert "properties can't be read" in html.unescape(answer.text)
        assert "Only its properties changed" not in answer.text
        fields = form(answer.text, id="main")
    assert "Line one" in file.read_text()
    file.unlink()
    ask(memex, "index", accept_removals=True)


def test_a_text_without_a_version_overwrites_nothing(memex, browser):
    path = capture(memex, "Filter")
    fields = form(browser.text("/review/edit", capture=path), id="main") | {"version": "9" * 5_000}
    answer = browser.post("/review/edit", **fields, text="My text.")
    assert answer.status_code == 400
    assert "My text.</textarea>" in answer.text
    assert "My text." not in (memex.vault / path).read_text()


@pytest.mark.slow
def test_a_text_survives_a_daemon_that_is_gone(memex, browser):
    path = capture(memex, "Filter")
    fields, token = form(browser.text("/review/edit", capture=path), id="main"), browser.csrf
    memex.stop()
    headers = {"origin": browser.page, "sec-fetch-site": "same-origin"}
    answer = browser.client.post("/review/edit", data=fields | {"csrf": token, "text": "My text."}, headers=headers)
    assert answer.status_code == 503
    assert "My text.</textarea>" in answer.text
    assert browser.get("/review").status_code == 503
    memex.serve()


def test_a_similar_note_is_compared_side_by_side(memex, browser):
    path = capture(memex, "Heron station", "The heron station, again.")
    assert ask(memex, "review.show", id=path)["similar"][0]["path"] == "Projects/Heron.md"
    text = browser.text("/review", capture=path, compare="Projects/Heron.md")
    assert "This capture" in text
    assert "<mark>" in text


def test_a_path_with_hidden_characters_is_decided_on(memex, browser):
    name = "Captures/default/Zero\u200bwidth \u202egnp.md"
    memex.write(name, "---\nid: zero\n---\nHidden.\n")
    ask(memex, "index")
    fields = card(browser, name)
    where(browser.post("/review/dismiss", **fields))
    assert not (memex.vault / name).exists()


def test_a_live_region_leaves_the_message_for_the_page(memex, browser):
    path = capture(memex, "Valve")
    answer = browser.post("/review/dismiss", **card(browser, path))
    browser.client.get("/", headers={"x-refresh": "1"})
    assert "Dismissed: " in follow(browser, answer)


@pytest.mark.slow
def test_a_step_is_undone_only_while_it_is_the_last_one(memex, browser):
    first, second = capture(memex, "First step"), capture(memex, "Second step")
    old = form(follow(browser, browser.post("/review/dismiss", **card(browser, first))), id="main")
    new = form(follow(browser, browser.post("/review/dismiss", **card(browser, second))), id="main")
    assert "another one came after it" in follow(browser, browser.post("/review/undo", **old))
    assert second in follow(browser, browser.post("/review/undo", **new))
    assert first in follow(browser, browser.post("/review/undo", **old))


@pytest.mark.slow
def test_a_text_beyond_what_a_card_shows_is_named_and_never_called_the_same(memex, browser):
    beginning = "A sentence that both versions begin with.\n\n" * 600
    path = capture(memex, "Long", f"{beginning}The end.")
    page = browser.text("/review", capture=path)
    assert "more characters: read them in Obsidian" in page
    note = ask(memex, "get", id=path)
    ask(memex, "updatenote", id=path, text=f"{beginning}Another end.", version=note["version"])
    answer = browser.post("/review/promote", **form(page))
    assert answer.status_code == 409
    assert "No line of its text changed" not in answer.text
    assert "only their beginnings are compared" in answer.text
    assert re.search('data-body="([0-9a-f]+)"', page)[1] != re.search('data-body="([0-9a-f]+)"', answer.text)[1]
