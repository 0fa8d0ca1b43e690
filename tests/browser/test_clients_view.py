"""The clients view in a real browser: accessible, on a phone too; clients connected, folders shared and keys revoked."""

from __future__ import annotations

import re

import pytest

SECRET = re.compile(r"mx_[0-9a-f]{12}_[0-9a-f]{64}")
PAGES = (
    "/clients/connect?client=codex",
    "/clients/connect?client=other",
    "/clients/shares?workspace=default",
    "/clients/shares/add?workspace=default&path=Projects",
    "/clients/shares/remove?workspace=default&path=Home.md",
)


@pytest.mark.slow  # test_every_view looks at the view too
@pytest.mark.parametrize("size", [{"width": 360, "height": 700}, {"width": 1280, "height": 900}], ids=["phone", "wide"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_clients_are_accessible_and_fit(browser, demo, scheme, size):
    tab = browser.open(demo.one_time_link(), colorScheme=scheme, viewport=size)
    tab.goto("/clients")
    tab.click(".settings summary >> nth=1")
    assert tab.axe == []
    assert tab.value("document.documentElement.scrollWidth") <= size["width"]
    assert tab.problems == {}


def test_a_key_is_revoked_with_the_keyboard(demo, tab):
    demo.ask("key.create", name="robin@here", workspaces=["default"])
    tab.press("g", "c")
    tab.wait('#clients li:has-text("robin@here")')
    tab.call("focus", '#clients li:has-text("robin@here") [data-item]')
    tab.press("Enter")
    tab.wait('h1:has-text("Revoke the key robin@here?")')
    tab.call("focus", "button.danger")
    tab.press("Enter")
    tab.wait('main:has-text("Revoked the key robin@here")')


@pytest.mark.slow
@pytest.mark.parametrize("size", [{"width": 360, "height": 700}, {"width": 1280, "height": 900}], ids=["phone", "wide"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_of_connections_and_shares_are_accessible_and_fit(browser, demo, scheme, size):
    demo.ask("share.add", workspace="default", paths=["Home.md"])
    tab = browser.open(demo.one_time_link(), colorScheme=scheme, viewport=size)
    for address in PAGES:
        tab.goto(address)
        assert tab.axe == [], address
        assert tab.value("document.documentElement.scrollWidth") <= size["width"]
    assert tab.problems == {}


def test_a_client_is_connected_with_the_keyboard_and_its_key_is_shown_once(demo, browser):
    tab = browser.open(demo.one_time_link(), permissions=["clipboard-read", "clipboard-write"])
    tab.press("g", "c")
    tab.wait('#connect-title:has-text("Connect a client")')
    tab.call("focus", 'a[href="/clients/connect?client=vscode"]')
    tab.press("Enter")
    tab.wait('h1:has-text("Connect VS Code")')
    tab.call("focus", "button.primary")
    tab.press("Enter")
    tab.wait("#lines")
    assert tab.axe == []
    lines = tab.call("textContent", "#lines")
    assert SECRET.search(lines)
    tab.click("[data-copy=lines]")
    tab.wait('button:has-text("Copied")')
    assert tab.call("evaluate", "navigator.clipboard.readText()") == lines
    assert not SECRET.search(tab.path)
    before = demo.ask("key.list")
    tab.call("reload")
    tab.wait('h1:has-text("There is no key to show")')
    tab.call("goBack")
    tab.call("goForward")
    tab.wait('h1:has-text("There is no key to show")')
    assert demo.ask("key.list") == before
    tab.call("forgive")  # the page that has no key left answers 404
    assert tab.problems == {}


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_a_folder_is_shared_and_no_longer(browser, demo, script):
    tab = browser.open(demo.one_time_link(), javaScriptEnabled=script)
    tab.goto("/clients/shares?workspace=work")
    tab.fill("#path", "Projects/Heron")
    tab.click('button:has-text("Preview")')
    tab.wait('#readable-title:has-text("Agents could read")')
    tab.click("button.primary")
    tab.wait('#shared:has-text("Projects/Heron/**")')
    tab.click('a:has-text("Stop sharing")')
    tab.wait("#lost-title")
    tab.click("button.danger")
    tab.wait('#shared:has-text("Nothing in your vault is shared")')
