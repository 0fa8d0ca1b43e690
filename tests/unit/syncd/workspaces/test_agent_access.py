"""Workspaces are removed only when they are empty, and a failure names its reason."""

from __future__ import annotations

import pytest

from index.errors import InvalidArgument, PermissionDenied, Unavailable
from mcp_server.operations.caller import Caller, resolve_workspace, visible_workspaces, with_workspace
from mcp_server.operations.operation import OperationRunner
from mcp_server.protocol import resources
from syncd.history.audit_log import Author
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


def test_a_workspace_with_notes_is_not_removed(world):
    world.app.agent_access.workspace("default").capture("kept")
    with pytest.raises(InvalidArgument, match="is not empty"):
        world.app.agent_access.delete_workspace("default")


def test_a_workspace_is_its_folder_in_whatever_unicode_form(world):
    composed, folder = "Caf\u00e9", "Cafe\u0301"
    (world.vault / "Captures" / folder).mkdir(parents=True)
    access, operations = world.app.agent_access, world.app.operations
    record = access.workspace(composed).capture("A heron.").record
    assert record.path == f"Captures/{folder}/A heron.md"
    assert operations["workspace.create"]({"name": composed}, lambda _: None) == {"name": folder, "created": False}
    operations["key.create"]({"name": "theirs", "workspaces": [composed]}, lambda _: None)
    (key,) = [key for key in access.keys.list() if key.name == "theirs"]
    for name in (composed, folder):
        caller = with_workspace(Caller(key), name)
        assert visible_workspaces(access, caller) == [folder]
        assert resolve_workspace(access, caller).get(record.id).content == "A heron."
        assert resources.find_note(access, Caller(key), resources.note_uri(name, "A heron.md"))[1].id == record.id
    access.log_denied(Author("mcp"), PermissionDenied("the key lacks a scope"), composed)
    assert world.app.opened.audit.find(1)[0].workspace == folder
    assert OperationRunner(access, world.app.opened.settings)._visible_workspaces(Caller(key)) == {folder}
    access.workspace(folder).delete(record.id)
    operations["workspace.delete"]({"name": composed}, lambda _: None)
    assert folder not in access.workspaces()
    assert access.create_workspace(folder).name == composed


def test_a_vault_that_is_away_is_named_as_the_reason(world):
    access = world.app.agent_access
    access.create_workspace("work")
    away = world.vault.with_name("away")
    workspace, access.workspace = access.workspace("work"), lambda _: workspace
    world.vault.rename(away)
    try:
        with pytest.raises(Unavailable):
            access.delete_workspace("work")
    finally:
        away.rename(world.vault)
