"""syncd/clients/connections.py: which key belongs to a client and an entry; tests of the command prove the rest."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from index.errors import Conflict, Unavailable
from index.timings import now_ms
from syncd.clients import connections
from syncd.clients.client_file import ClientFile, write_file
from syncd.clients.client_formats import CLIENTS
from syncd.clients.connections import (
    ConnectionRequest,
    KeyInUse,
    find_valid_keys,
    make_connection,
    parse_key_name,
    remove_connection,
    write_entry,
)
from tests.support.world import World

URL = "http://127.0.0.1:8765"


@pytest.fixture(autouse=True)
def host(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "desk.example.org")


@pytest.fixture
def world(tmp_path, monkeypatch):
    (tmp_path / "state").mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(tmp_path))
    opened = World(tmp_path)
    yield opened
    opened.close()


def asker(world, error=None, secrets=None):
    """Return the operations of the daemon; with `error`, it makes no key, and `secrets` receives the wanted secret."""

    def ask(name, arguments):
        if error is not None and name == "key.replace":
            secrets.append(arguments["secret"])
            raise error
        return world.app.operations[name](arguments, lambda _: None)

    return ask


def request_of(tmp_path, client="cursor", *, name="memex", renew=False):
    file = ClientFile(tmp_path, "client.json") if CLIENTS[client].file else None
    return ConnectionRequest(client, CLIENTS[client], name, "default", file, renew, command=("memex",))


def live(world):
    return {key.name: key.id for key in world.app.opened.keys.list() if key.revoked_at is None}


def test_the_key_of_an_entry_ends_with_it_although_the_host_has_a_new_name(world, tmp_path, monkeypatch):
    ask, request = asker(world), request_of(tmp_path)
    write_entry(ask, request, request.file, URL)
    monkeypatch.setattr("socket.gethostname", lambda: "laptop")
    removal = remove_connection(ask, request)
    assert removal.done == ("revoked the key cursor@desk", f"removed the entry 'memex' from {request.file}")
    assert (removal.notices, live(world)) == ((), {})
    write_entry(ask, request, request.file, URL)
    for host, renew in (("desk", False), ("notebook", True)):
        before = next(iter(live(world)))
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        written = write_entry(ask, request_of(tmp_path, renew=renew), request.file, URL)
        assert written.notices == (f"revoked the key {before}",)
        assert list(live(world)) == [f"cursor@{host}"]


def test_a_key_in_the_file_of_its_client_is_not_replaced_by_lines_to_paste(world, tmp_path):
    ask, request = asker(world), request_of(tmp_path)
    write_entry(ask, request, request.file, URL)
    keys = live(world)
    with pytest.raises(KeyInUse, match=r"the key cursor@desk is in .*client\.json already"):
        make_connection(ask, request, URL)
    assert live(world) == keys
    make_connection(ask, request_of(tmp_path, renew=True), URL)
    renewed = live(world)
    assert renewed != keys
    make_connection(ask, request, URL)  # the key in the file is revoked already
    assert live(world) != renewed
    (tmp_path / "client.json").write_text("{")
    make_connection(ask, request, URL)


@pytest.mark.parametrize("name", ["Caf\u00e9", "Cafe\u0301"])
def test_a_workspace_is_connected_in_whatever_unicode_form_it_is_named(world, tmp_path, name):
    (world.vault / "Captures/Cafe\u0301").mkdir(parents=True)
    request = replace(request_of(tmp_path), workspace=name)
    assert write_entry(asker(world), request, request.file, URL).changed
    assert not write_entry(asker(world), request, request.file, URL).changed


@pytest.mark.parametrize("error", [Unavailable("the disk is full"), OSError("cut"), KeyboardInterrupt()])
@pytest.mark.parametrize("before", [None, "", '{"theme": "dark"}\n', "connected"])
def test_a_key_that_was_not_made_is_in_no_file(world, tmp_path, error, before):
    request, settings = request_of(tmp_path, renew=True), tmp_path / "client.json"
    if before == "connected":
        write_entry(asker(world), request, request.file, URL)
    elif before is not None:
        settings.write_text(before)
    text, keys, secrets = settings.read_text() if settings.exists() else None, live(world), []
    with pytest.raises(type(error)) as raised:
        write_entry(asker(world, error, secrets), request, request.file, URL)
    assert raised.value is error
    assert (settings.read_text() if settings.exists() else None) == text
    assert live(world) == keys
    assert not any(secrets[0] in file.read_text() for file in tmp_path.glob("client.json*"))


@pytest.mark.parametrize("connected", [False, True])
def test_a_file_that_another_program_changed_meanwhile_stays_and_no_new_key_does(world, tmp_path, connected):
    request = request_of(tmp_path, renew=True)
    if connected:
        write_entry(asker(world), request, request.file, URL)
    keys = live(world)

    def ask(name, arguments):
        if name == "key.replace":
            (tmp_path / "client.json").write_text("{}")
        return asker(world)(name, arguments)

    with pytest.raises(Conflict, match="another program"):
        write_entry(ask, request, request.file, URL)
    assert (tmp_path / "client.json").read_text() == "{}"
    assert live(world) == keys


class Killed(BaseException):
    """Stands for a kill: nothing is cleaned up after it, because no operation answers any more."""


@pytest.mark.parametrize("name", ["memex", "work"])
@pytest.mark.parametrize("steps", range(10))
def test_a_client_whose_renewal_is_killed_keeps_a_valid_key(world, tmp_path, monkeypatch, steps, name):
    request, settings, left = request_of(tmp_path, name=name, renew=True), tmp_path / "client.json", [steps]
    write_entry(asker(world), request, request.file, URL)
    first = settings.read_text()

    def step(work, *arguments):
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        return work(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(connections, "write_file", partial(step, write_file))
        with suppress(Killed):
            write_entry(partial(step, asker(world)), request, request.file, URL)
    assert steps < 9 or left[0]  # the last one is not killed
    assert asker(world)("key.check", {"secret": secret_in(settings, name)}) is not None
    again = write_entry(asker(world), request, request.file, URL)  # it completes what was killed
    assert settings.read_text() != first
    assert asker(world)("key.check", {"secret": secret_in(settings, name)})["name"] == request.key_name
    others = set(live(world).values()) - {secret_in(settings, name).split("_")[1]}
    assert all(any(other in notice for notice in again.notices) for other in others)
    assert len(others) <= 1


def secret_in(settings, name):
    return json.loads(settings.read_text())["mcpServers"][name]["headers"]["Authorization"].removeprefix("Bearer ")


def test_a_key_that_stays_valid_is_named(world, tmp_path, monkeypatch):
    ask, request, keys = asker(world), request_of(tmp_path), world.app.opened.keys
    for end in (write_entry, remove_connection):
        key, secret = keys.create(end.__name__, workspaces=["default"], now=now_ms())
        entry = {"url": "x", "headers": {"Authorization": f"Bearer {secret}"}}
        (tmp_path / "client.json").write_text(json.dumps({"mcpServers": {"memex": entry}}))
        done = write_entry(ask, request, request.file, URL) if end is write_entry else remove_connection(ask, request)
        assert done.notices == (f"the key {key.name} is still valid; to revoke it: memex key revoke {key.id}",)
        assert key.name in live(world)
    code = request_of(tmp_path, "claude-code")
    make_connection(ask, code, URL)
    keys.create("claude-code@desk work", workspaces=None, now=now_ms())
    keys.create("claude-code@old", workspaces=None, expires_at=2, now=1)
    monkeypatch.setattr("socket.gethostname", lambda: "laptop")
    make_connection(ask, code, URL)
    id = live(world)["claude-code@desk"]
    notice = f"the key claude-code@desk is still valid; to revoke it: memex key revoke {id}"
    assert find_valid_keys(ask, code, of_other_hosts=False) == []
    assert find_valid_keys(ask, code, of_other_hosts=True) == [notice]
    assert remove_connection(ask, code).notices == (notice,)


@pytest.mark.parametrize("id", CLIENTS)
@pytest.mark.parametrize("name", ["memex", "work"])
def test_the_name_of_a_key_leads_back_to_its_client_and_entry(id, name):
    request = ConnectionRequest(id, CLIENTS[id], name, "default", None, renew=False, command=("memex",))
    assert parse_key_name(request.key_name) == (id, name)


@pytest.mark.parametrize(
    "name", ["codex", "codex@laptop", "robin@desk", "codex@desk.example.org", "codex@desk a b", "x codex@desk", ""]
)
def test_a_key_that_was_made_elsewhere_or_otherwise_has_no_client(name):
    assert parse_key_name(name) is None
