"""The note view in a real browser: the note, its links and its history, a change taken back, and hostile notes that run nothing."""

from __future__ import annotations

import shutil
from urllib.parse import urlencode

import pytest

from tests.support.page_browser import paged_daemon
from tests.support.paths import ROOT
from vault_fixtures import gnarly as gnarly_vault

PATHS = "[...document.querySelectorAll('{} a[data-item]')].map(link => new URL(link.href).searchParams.get('path'))"


def forgive(tab, status):
    """Accept that the console reports an answer with this status, which the test asked for."""
    assert [error for error in tab.call("forgive") if status not in error] == []


def _is_found(demo, words):
    """Whether a note of the vault has these words, and is indexed."""
    return demo.ask("search", query=words, scope="vault", mode="text")["hits"]


def show(tab, path):
    tab.goto(f"/note?{urlencode({'path': path})}")


def test_a_note_shows_its_text_properties_and_links_both_ways(tab):
    show(tab, "Projects/Heron/Heron battery.md")
    tab.wait('h1:has-text("Heron battery")')
    assert "Four lithium iron phosphate cells" in tab.text
    assert "in trial" in tab.text
    paths = tab.value(PATHS.format("#links"))
    assert "Projects/Heron/Heron enclosure.md" in paths
    assert "Captures/default/Passive cooling for outdoor battery boxes.md" in paths
    tab.click('#body a:has-text("Keeping heat out")')
    tab.wait('h1:has-text("Heron enclosure")')


def test_a_note_is_found_and_read_with_the_keyboard_alone(tab):
    tab.press("/")
    tab.wait("input[type=search]")
    tab.type("battery box cool")
    tab.wait('#hits .title:has-text("Passive cooling")')
    tab.wait("body[data-settled]")
    tab.press("ArrowDown", "Enter")
    tab.wait('h1:has-text("Passive cooling")')


def test_a_change_is_previewed_and_taken_back(demo, tab):
    id = demo.capture("The pump at the weir needs oil.\n")
    demo.ask("updatenote", id=id, text="The pump at the weir needs grease.\n")
    show(tab, id)
    tab.wait('#body:has-text("grease")')
    tab.click("#history summary >> nth=0")
    tab.wait('.diff .removed:has-text("oil")')
    tab.click('#history a:has-text("Undo this") >> nth=0')
    tab.wait('h1:has-text("Undo this change?")')
    tab.wait('.diff .added:has-text("grease")')
    tab.click('button:has-text("Undo")')
    tab.wait('.message:has-text("Undone")')
    tab.wait('#body:has-text("oil")')
    tab.goto("/")
    assert "Undone" not in tab.text


def test_what_the_reader_opened_stays_open_when_the_note_changes(demo, tab):
    id = demo.capture("The ladder is at the weir.\n")
    show(tab, demo.ask("get", id=id)["path"])
    tab.click("#history summary >> nth=0")
    tab.wait('.diff .added:has-text("ladder")')
    demo.ask("updatenote", id=id, text="The ladder is in the shed.\n")
    tab.wait('#body:has-text("shed")')
    tab.wait("#history li >> nth=1")
    tab.wait('.diff .added:has-text("at the weir")')


def test_a_change_that_you_edited_since_stays_and_both_texts_show(demo, tab):
    id = demo.capture("The weir gate is open.\n")
    path = demo.ask("get", id=id)["path"]
    demo.ask("updatenote", id=id, text="The weir gate is shut.\n")
    show(tab, path)
    tab.click("#history summary >> nth=0")
    tab.click('#history a:has-text("Undo this") >> nth=0')
    tab.wait('button:has-text("Undo")')
    file = demo.vault / path
    file.write_text(file.read_text().replace("is shut", "is half open"))
    demo.until(lambda: "half open" in demo.ask("get", id=id)["content"])
    tab.click('button:has-text("Undo")')
    tab.wait('h1:has-text("Something changed in the meantime")')
    assert "half open" in tab.text
    assert "is open" in tab.text
    assert "half open" in file.read_text()
    assert tab.axe == []
    forgive(tab, "409")


def test_a_version_from_before_an_edit_outside_memex_is_restored(demo, tab):
    file = demo.write("Weir.md", "The weir is shut.\n")
    demo.git("add", "Weir.md")
    demo.git("commit", "-q", "-m", "Describe the weir")
    demo.until(lambda: _is_found(demo, "weir shut"))
    file.write_text("The weir is open.\n")
    demo.until(lambda: _is_found(demo, "weir open"))
    show(tab, "Weir.md")
    tab.click("#history summary >> nth=0")
    tab.click('#history a:has-text("Restore this version")')
    tab.wait('.diff .removed:has-text("is open")')
    tab.wait('.diff .added:has-text("is shut")')
    assert tab.axe == []
    file.write_text("The weir is half open.\n")
    tab.click('button:has-text("Restore")')
    tab.wait('[role=alert]:has-text("changed after it was shown")')
    tab.wait('.diff .removed:has-text("half open")')
    assert file.read_text() == "The weir is half open.\n"
    tab.click('button:has-text("Restore")')
    tab.wait('.message:has-text("The text before is in commit")')
    assert file.read_text() == "The weir is shut.\n"
    assert "The weir is half open." in demo.git("log", "-p", "-2", "--", "Weir.md")
    tab.click('#history summary:has-text("restored")')
    tab.click('#history a:has-text("Undo this")')
    tab.click('button:has-text("Undo")')
    tab.wait('#body:has-text("half open")')
    forgive(tab, "409")


def test_a_deleted_note_can_be_restored(demo, tab):
    id = demo.capture("Short-lived.\n")
    path = demo.ask("get", id=id)["path"]
    demo.ask("delete", id=id)
    answer = demo.browser().client.get("/note", params={"path": path})
    assert answer.status_code == 404
    assert "This note no longer exists" in answer.text
    show(tab, path)
    tab.click("#history summary >> nth=0")
    tab.click('#history a:has-text("Undo this") >> nth=0')
    tab.click('button:has-text("Undo")')
    tab.wait('#body:has-text("Short-lived")')
    forgive(tab, "404")


HOSTILE = """# <img src=x onerror=alert(1)>

<script>alert(1)</script> <svg onload=alert(1)> <iframe src="javascript:alert(1)"></iframe>

[a](javascript:alert(1)) ![b](https://tracker.example/x.png) <style>*{display:none}</style>

[[<b onmouseover=alert(1)>]] [[Heron|<img src=https://tracker.example/y>]] `</code><script>alert(1)</script>`

| a |
|:-:|
| <form action=https://evil.example><input autofocus onfocus=alert(1)> |

```<script>
</code></pre><script>alert(1)</script>
```
"""


def test_a_hostile_note_runs_nothing_and_loads_nothing(demo, tab):
    name = "Hostile <script>alert(1)<!script>.md"
    file = demo.write(name, HOSTILE)
    demo.until(lambda: _is_found(demo, "tracker"))
    show(tab, name)
    assert "alert(1)" in tab.text
    tab.goto("/search?q=script+alert")
    tab.goto("/search?" + urlencode({"q": HOSTILE[:200], "folder": '"><script>alert(1)</script>'}))
    file.unlink()


@pytest.fixture(scope="module")
def gnarly(browser, tmp_path_factory, models):
    """A daemon on a vault with every shape of file, and a hostile note."""
    folder = tmp_path_factory.mktemp("gnarly")
    gnarly_vault.build(folder / "vault")
    shutil.copytree(ROOT / "vault_fixtures/demo/Captures", folder / "vault/Captures", dirs_exist_ok=True)
    (folder / "vault/Hostile <script>alert(1)<!script>.md").write_text(HOSTILE)
    with paged_daemon(folder, models) as memex:
        yield memex


@pytest.mark.slow
def test_no_note_of_any_shape_runs_or_loads_anything(browser, gnarly):
    tab = browser.open(gnarly.one_time_link())
    notes = [path.relative_to(gnarly.vault).as_posix() for path in sorted(gnarly.vault.rglob("*.md"))]
    assert len(notes) > 20
    for path in notes[:80]:
        if path.isprintable():
            tab.goto(f"/note?{urlencode({'path': path})}")
    tab.goto("/search?q=script+alert")
    tab.goto("/search?" + urlencode({"q": HOSTILE[:200], "folder": '"><script>alert(1)</script>'}))
    problems = tab.problems
    problems["console"] = [text for text in problems.get("console", []) if "404" not in text and "400" not in text]
    assert {kind: found for kind, found in problems.items() if found} == {}
