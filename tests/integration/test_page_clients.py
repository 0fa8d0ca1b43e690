"""The clients view of a running daemon: who is connected, a key revoked after a question, workspaces, settings."""

from __future__ import annotations

import pytest

from tests.support.page_browser import paged_daemon


@pytest.fixture(scope="module")
def memex(tmp_path_factory, models):
    with paged_daemon(tmp_path_factory.mktemp("clients"), models) as running:
        yield running


@pytest.fixture(scope="module")
def browser(memex):
    return memex.browser()


def test_a_key_is_listed_without_its_secret_and_revoked_after_a_question(memex, browser):
    secret = memex.json("key", "create", "--name", "robin@here", "--workspace", "default")["key"]
    page = browser.text("/clients")
    assert "robin@here" in page
    assert "never seen" in page
    assert secret not in page
    (listed,) = (key for key in memex.json("key", "list") if key["name"] == "robin@here")
    assert "Revoke the key robin@here?" in browser.text("/clients/revoke", key=listed["id"])
    assert not listed["revoked_at"]
    assert browser.post("/clients/revoke", key=listed["id"]).status_code == 303
    assert "Revoked the key robin@here" in browser.text("/clients")
    (listed,) = (key for key in memex.json("key", "list") if key["name"] == "robin@here")
    assert listed["revoked_at"]
    assert browser.post("/clients/revoke", key=listed["id"]).status_code == 404


def test_a_key_of_the_owner_can_not_be_revoked(memex, browser):
    owners = [key for key in memex.json("key", "list") if "admin" in key["scopes"]]
    assert owners
    for key in owners:
        assert browser.get("/clients/revoke", key=key["id"]).status_code == 404
        assert browser.post("/clients/revoke", key=key["id"]).status_code == 404


def test_a_workspace_is_created_and_a_name_that_can_not_be_used_stays_in_the_form(memex, browser):
    assert browser.post("/clients/workspaces", name="garden").status_code == 303
    assert "Created the workspace garden" in browser.text("/clients")
    assert {"name": "garden"} in memex.json("workspace", "list")
    refused = browser.post("/clients/workspaces", name="../up")
    assert refused.status_code == 400
    assert 'value="../up"' in refused.text


def test_settings_are_those_of_the_daemon_with_their_origin_and_meaning(browser):
    page = browser.text("/clients")
    assert "page.port" in page
    assert "MEMEX_" in page
    assert "are not the default" in page
