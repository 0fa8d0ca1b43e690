"""The clients view of a running daemon: clients connected and revoked, workspaces, shares, settings."""

from __future__ import annotations

import html
import json
import os
import re
import stat

import pytest

from tests.support.page_browser import PagedMemex, paged_daemon

SECRET = re.compile(r"mx_[0-9a-f]{12}_[0-9a-f]{64}")


class WithDesktop(PagedMemex):
    """A Memex on a machine whose desktop opens files with a program that notes them."""

    @property
    def environ(self):
        programs = self.folder / "programs"
        return super().environ | {"DISPLAY": ":9", "PATH": f"{programs}:{super().environ['PATH']}"}


@pytest.fixture(scope="module")
def memex(tmp_path_factory, models):
    with paged_daemon(tmp_path_factory.mktemp("clients"), models) as running:
        running.write("References/Pump.md", "The pump.\n")
        running.write("References/Valve.md", "---\nshare: false\n---\nThe valve.\n")
        running.write("Notes/Plan.md", "The plan.\n")
        running.run("index")
        yield running


@pytest.fixture(scope="module")
def browser(memex):
    return memex.browser()


def mark(browser, client):
    """The mark of a form that connects a client."""
    return re.search('name="form" value="([0-9a-f]+)"', browser.text("/clients/connect", client=client))[1]


def live_keys(memex):
    return [key for key in memex.ask("key.list") if not key["revoked_at"] and "admin" not in key["scopes"]]


def names(memex):
    return [key["name"] for key in live_keys(memex)]


def end_all(memex):
    for key in live_keys(memex):
        memex.ask("key.revoke", name=key["id"])


def where(answer):
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def test_the_lines_of_a_new_key_are_those_of_the_command_and_shown_once(memex, browser):
    end_all(memex)
    answer = browser.post(
        "/clients/connect", client="claude-code", workspace="default", form=mark(browser, "claude-code")
    )
    assert not SECRET.search(where(answer) + answer.text)
    assert browser.client.head(where(answer)).status_code == 200  # a preview of the address does not use the key up
    shown = browser.client.get(where(answer))
    assert shown.headers["cache-control"] == "no-store"
    lines = html.unescape(re.search('<pre[^>]*id="lines"[^>]*>(.*?)</pre>', shown.text, re.DOTALL)[1])
    secret = SECRET.search(lines)[0]
    assert memex.client.get(memex.url + "/thoughts", headers={"authorization": f"Bearer {secret}"}).status_code == 200
    again = browser.client.get(where(answer))
    assert again.status_code == 404
    assert not SECRET.search(again.text + browser.text("/clients"))
    assert secret not in (memex.state / "page/page.log").read_text()
    command = memex.json("connect", "claude-code", "--renew")
    assert lines == command["lines"].replace(command["key"], secret)


def test_a_form_that_is_sent_twice_makes_one_key(memex, browser):
    end_all(memex)
    fields = {"client": "vscode", "workspace": "default", "form": mark(browser, "vscode")}
    first = where(browser.post("/clients/connect", **fields))
    (key,) = live_keys(memex)
    assert where(browser.post("/clients/connect", **fields)) == first  # as a browser follows the last press only
    assert SECRET.search(browser.client.get(first).text)
    assert where(browser.post("/clients/connect", **fields)) == first
    assert not SECRET.search(browser.client.get(first).text)
    assert key["id"] in [row["id"] for row in memex.ask("key.list") if not row["revoked_at"]]


def test_a_key_whose_lines_nobody_saw_is_named_with_the_ways_to_end_it(memex, browser):
    end_all(memex)
    lines = where(browser.post("/clients/connect", client="vscode", workspace="default", form=mark(browser, "vscode")))
    assert "If nobody copied its lines" in browser.text("/clients")
    secret = SECRET.search(browser.client.get(lines).text)[0]
    assert "Until then the key is valid" in browser.client.get(lines).text
    assert memex.client.get(memex.url + "/thoughts", headers={"authorization": f"Bearer {secret}"}).status_code == 200
    assert "If nobody copied its lines" not in browser.text("/clients")


def test_a_key_in_use_is_replaced_only_when_that_is_ticked(memex, browser):
    end_all(memex)
    secret = memex.json("connect", "vscode")["key"]
    assert memex.client.get(memex.url + "/thoughts", headers={"authorization": f"Bearer {secret}"}).status_code == 200
    fields = {"client": "vscode", "workspace": "default"}
    refused = browser.post("/clients/connect", **fields, form="a")
    assert refused.status_code == 409
    assert "tick the box" in refused.text
    assert "--renew" not in refused.text
    assert len(names(memex)) == 1
    assert "/lines" in where(browser.post("/clients/connect", **fields, form="b", renew="1"))
    assert memex.client.get(memex.url + "/thoughts", headers={"authorization": f"Bearer {secret}"}).status_code == 401
    assert "/lines" in where(browser.post("/clients/connect", **fields, form="c", name="work"))
    assert len(names(memex)) == 2


def test_a_settings_file_is_written_and_its_entry_taken_back_with_the_key(memex, browser):
    end_all(memex)
    file = memex.home / ".cursor/mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"docs": {"url": "x"}}}')
    answer = browser.post(
        "/clients/connect", client="cursor", workspace="default", write="1", form=mark(browser, "cursor")
    )
    assert where(answer) == "/clients"
    page = browser.text("/clients")
    assert f"Wrote <code>{file}</code>" in page
    assert not SECRET.search(page)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    secret = SECRET.search(file.read_text())[0]
    assert memex.client.get(memex.url + "/thoughts", headers={"authorization": f"Bearer {secret}"}).status_code == 200
    (key,) = live_keys(memex)
    assert str(file) in browser.text("/clients/revoke", key=key["id"])
    where(browser.post("/clients/revoke", key=key["id"]))
    assert "Removed the entry" in browser.text("/clients")
    assert json.loads(file.read_text()) == {"mcpServers": {"docs": {"url": "x"}}}


@pytest.mark.slow
@pytest.mark.parametrize(("client", "name"), [("claude-code", ".claude/settings.json"), ("codex", ".codex/hooks.json")])
def test_a_tick_adds_the_hook_of_the_command_and_revoking_the_key_takes_it_away(memex, browser, client, name):
    end_all(memex)
    assert f"<code>{memex.home / name}</code>" in browser.text("/clients/connect", client=client)
    fields = {"client": client, "workspace": "default", "hooks": "1", "form": mark(browser, client)}
    lines = browser.client.get(where(browser.post("/clients/connect", **fields)))
    assert "each session begins with the context of default" in lines.text
    assert SECRET.search(lines.text)
    assert not memex.json("connect", client, "--hooks")["changed"]
    (key,) = live_keys(memex)
    assert f"<code>{memex.home / name}</code>" in browser.text("/clients/revoke", key=key["id"])
    where(browser.post("/clients/revoke", key=key["id"]))
    assert "Removed the hook" in browser.text("/clients")
    assert memex.json("connect", client, "--hooks")["changed"]
    assert memex.json("connect", client, "--hooks", "--remove")["changed"]


def test_without_the_tick_and_for_other_clients_there_is_no_hook(memex, browser):
    end_all(memex)
    assert 'name="hooks"' not in browser.text("/clients/connect", client="vscode")
    fields = {"client": "claude-code", "workspace": "default", "form": mark(browser, "claude-code")}
    where(browser.post("/clients/connect", **fields))
    refused = browser.post("/clients/connect", client="vscode", workspace="default", hooks="1", form="h")
    assert "/lines" in where(refused)
    assert not memex.json("connect", "claude-code", "--hooks", "--remove")["changed"]


def test_a_hook_that_can_not_be_added_is_named_and_the_key_is_shown(memex, browser):
    end_all(memex)
    file = memex.home / ".claude/settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text("{")
    fields = {"client": "claude-code", "workspace": "default", "hooks": "1", "form": mark(browser, "claude-code")}
    lines = browser.client.get(where(browser.post("/clients/connect", **fields))).text
    assert "The hook was not added" in lines
    assert SECRET.search(lines)
    assert file.read_text() == "{"
    file.unlink()


def test_a_settings_file_that_can_not_be_edited_is_named_and_no_key_is_made(memex, browser):
    end_all(memex)
    file = memex.home / ".gemini/settings.json"
    file.parent.mkdir()
    file.write_text("{")
    refused = browser.post("/clients/connect", client="gemini", workspace="default", write="1", form="d")
    assert refused.status_code == 400
    assert "was not changed" in refused.text
    assert file.read_text() == "{"
    assert names(memex) == []


def test_a_settings_file_that_can_not_be_opened_leaves_the_form_and_does_not_hide_that_the_key_is_revoked(
    memex, browser
):
    end_all(memex)
    file = memex.home / ".codex/config.toml"
    file.parent.mkdir(exist_ok=True)
    os.mknod(file, stat.S_IFSOCK | 0o600)
    refused = browser.post("/clients/connect", client="codex", workspace="default", write="1", form="e")
    assert refused.status_code == 503
    assert str(file) in refused.text
    assert 'action="/clients/connect"' in refused.text
    assert names(memex) == []
    where(browser.post("/clients/connect", client="codex", workspace="default", form=mark(browser, "codex")))
    (key,) = live_keys(memex)
    assert where(browser.post("/clients/revoke", key=key["id"])) == "/clients"
    page = browser.text("/clients")
    assert f"Revoked the key {key['name']}" in page
    assert "may still contain the entry" in page
    assert names(memex) == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"client": "vscode", "write": "1"}, 400),
        ({"client": "vscode", "name": "a b"}, 400),
        ({"client": "vscode", "workspace": "nowhere"}, 404),
        ({"client": "x"}, 400),
    ],
    ids=[
        "a client that writes itself",
        "a name that no client takes",
        "a workspace that is not there",
        "an unknown client",
    ],
)
def test_a_connection_that_can_not_be_made_makes_no_key(memex, browser, fields, status):
    end_all(memex)
    assert browser.post("/clients/connect", **fields, form="e").status_code == status
    assert names(memex) == []


def test_a_client_that_memex_does_not_know_has_no_form(browser):
    assert browser.get("/clients/connect", client="x").status_code == 404


def test_a_key_is_listed_without_its_secret_and_revoked_after_a_question(memex, browser):
    secret = memex.ask("key.create", name="robin@here", workspaces=["default"])["key"]
    page = browser.text("/clients")
    assert "robin@here" in page
    assert "never seen" in page
    assert secret not in page
    (listed,) = (key for key in memex.ask("key.list") if key["name"] == "robin@here")
    assert "Revoke the key robin@here?" in browser.text("/clients/revoke", key=listed["id"])
    assert not listed["revoked_at"]
    assert browser.post("/clients/revoke", key=listed["id"]).status_code == 303
    browser.client.head("/clients")  # the message waits for a page that a person sees
    assert "Revoked the key robin@here" in browser.text("/clients")
    (listed,) = (key for key in memex.ask("key.list") if key["name"] == "robin@here")
    assert listed["revoked_at"]
    assert browser.post("/clients/revoke", key=listed["id"]).status_code == 404


def test_a_key_of_the_owner_can_not_be_revoked(memex, browser):
    owners = [key for key in memex.ask("key.list") if "admin" in key["scopes"]]
    assert owners
    for key in owners:
        assert browser.get("/clients/revoke", key=key["id"]).status_code == 404
        assert browser.post("/clients/revoke", key=key["id"]).status_code == 404


def test_a_workspace_is_created_and_a_name_that_can_not_be_used_stays_in_the_form(memex, browser):
    assert browser.post("/clients/workspaces", name="garden").status_code == 303
    assert "Created the workspace garden" in browser.text("/clients")
    browser.post("/clients/workspaces", name="garden")
    assert "The workspace garden exists already" in browser.text("/clients")
    assert {"name": "garden"} in memex.ask("workspace.list")
    refused = browser.post("/clients/workspaces", name="../up")
    assert refused.status_code == 400
    assert 'value="../up"' in refused.text


def test_workspaces_show_their_notes_and_clients(memex, browser):
    memex.capture("The filter is due in May.")
    end_all(memex)
    memex.ask("key.create", name="robin", workspaces=["default"])
    assert "1 note · 1 client" in browser.text("/clients")


def test_a_folder_is_shared_after_a_preview_and_no_longer(memex, browser):
    asked = {"workspace": "default", "path": "References"}
    preview = browser.text("/clients/shares/add", **asked)
    assert "References/Pump.md" in preview
    assert "References/Valve.md" in preview.partition("Withheld")[2]
    assert memex.ask("share.list") == []
    assert where(browser.post("/clients/shares/add", **asked)) == "/clients/shares?workspace=default"
    page = browser.text("/clients/shares", workspace="default")
    assert "Shared <code>References</code> with default" in page
    assert "References/Pump.md" in page.partition("Agents can read now")[2]
    assert "References/**" in browser.text("/clients")
    memex.ask("share.add", workspace="default", paths=["Notes/Plan.md"])
    question = browser.text("/clients/shares/remove", workspace="default", path="References/**")
    assert "could no longer read 1 note, and still read 1 through other shares" in question
    assert "References/Pump.md" in question
    assert "Notes/Plan.md" not in question
    assert len(memex.ask("share.list")[0]["entries"]) == 2
    gone = {"workspace": "default", "path": "References/**"}
    where(browser.post("/clients/shares/remove", **gone))
    assert memex.ask("share.list")[0]["entries"] == ["Notes/Plan.md"]
    where(browser.post("/clients/shares/remove", **gone))
    assert "is no longer shared" in browser.text("/clients/shares", workspace="default")
    memex.ask("share.remove", workspace="default", paths=["Notes/Plan.md"])
    assert "Nothing in your vault is shared" in browser.text("/clients/shares", workspace="default")


@pytest.mark.parametrize("path", ["../up", "**", "Captures", ""])
def test_a_path_that_can_not_be_shared_stays_in_the_form(memex, browser, path):
    for refused in (
        browser.get("/clients/shares/add", workspace="default", path=path),
        browser.post("/clients/shares/add", workspace="default", path=path),
    ):
        assert refused.status_code == 400
        assert f'name="path" list="folders" value="{path}"' in refused.text
    assert memex.ask("share.list") == []


def test_a_preview_of_a_share_names_its_workspace(browser):
    for step in ("add", "remove"):
        answer = browser.get(f"/clients/shares/{step}", path="References/**")
        assert (answer.status_code, "names no workspace" in answer.text) == (400, True), step


def test_the_answer_of_a_change_is_not_fetched_again(browser):
    for path in ("/clients/shares/add", "/clients/workspaces"):
        refused = browser.post(path, workspace="default", path="../out", name="../out")
        assert (refused.status_code, " data-answer" in refused.text) == (400, True), path
    assert " data-answer" not in browser.text("/clients/shares")


def test_a_workspace_that_is_not_there_has_no_shares(browser):
    assert browser.get("/clients/shares", workspace="nowhere").status_code == 404


@pytest.mark.slow
def test_what_is_never_shared_is_named_with_its_origin(tmp_path, models):
    class Withholding(WithDesktop):
        @property
        def environ(self):
            return super().environ | {"MEMEX_CONFIG": str(self.folder / "memex.toml")}

    (tmp_path / "memex.toml").write_text('[share]\nnever = ["Private"]\n')
    (tmp_path / "programs").mkdir()
    opener = tmp_path / "programs/xdg-open"
    opener.write_text('#!/bin/sh\nprintf %s "$1" > "$0.opened"\n')
    opener.chmod(0o700)
    with paged_daemon(tmp_path, models, kind=Withholding) as memex:
        browser = memex.browser()
        page = browser.text("/clients/shares", workspace="default")
        assert "<code>Private</code>" in page
        assert str(tmp_path / "memex.toml") in page
        assert "Open the settings file" in browser.text("/clients")
        where(browser.post("/clients/settings"))
        assert (tmp_path / "programs/xdg-open.opened").read_text() == str(tmp_path / "memex.toml")
        assert "Opened <code>" in browser.text("/clients")
        assert memex.json("config", "--open")["opened"]


def test_settings_are_those_of_the_daemon_with_their_origin_and_meaning(browser):
    page = browser.text("/clients")
    assert "page.port" in page
    assert "MEMEX_" in page
    assert "changed from the default" in page
