"""syncd/clients/connections.py: a key's name leads back to its client; tests of the command prove the rest."""

from __future__ import annotations

import pytest

from syncd.clients.client_formats import CLIENTS
from syncd.clients.connections import ConnectionRequest, parse_key_name


@pytest.fixture(autouse=True)
def host(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "desk.example.org")


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
