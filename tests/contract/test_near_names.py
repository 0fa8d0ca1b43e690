"""A slip is answered with the nearest name: to the owner, who may know all names, and to nobody else."""

import pytest

from index.errors import NotFound
from tests.support.world import World


@pytest.fixture
def world(tmp_path):
    opened = World(tmp_path)
    opened.app.agent_access.create_workspace("garden")
    opened.app.agent_access.workspace("default").capture("Heat pump\n\nThe filter is due in May.")
    yield opened
    opened.close()


def refusal(world, operation, **given):
    with pytest.raises(NotFound) as refused:
        world.app.operations[operation](given, lambda _: None)
    return refused.value.message


ASKED = [
    ("get", {"id": "Heat pmup"}, "Heat pump"),
    ("log", {"id": "Heat pmup"}, "Heat pump"),
    ("undo", {"id": "Heat pmup"}, "Heat pump"),
    ("delete", {"id": "heat"}, "Heat pump"),
    ("promote", {"ids": ["Heat pmup"]}, None),
    ("enrich", {"id": "Heat pmup"}, "Heat pump"),
    ("review.show", {"id": "Heat pmup"}, "Heat pump"),
    ("capture", {"content": "x", "workspace": "gardne"}, "garden"),
    ("node.list", {"workspace": "gardne"}, "garden"),
    ("key.revoke", {"name": "nobody"}, None),
    ("job.run", {"name": "promotoin"}, "promotion"),
]


def test_the_owner_is_told_the_nearest_name(world):
    for operation, given, near in ASKED:
        if operation == "promote":
            (failed,) = world.app.operations[operation](given, lambda _: None)["failed"]
            assert 'Did you mean "Heat pump"?' in failed["error"]["message"], operation
            continue
        message = refusal(world, operation, **given)
        assert (f'Did you mean "{near}"?' in message) is (near is not None), message


def test_a_workspace_that_is_there_is_never_called_missing(world):
    assert "workspace" not in refusal(world, "get", id="nothing of the kind", workspace="default")


def test_what_agents_may_be_told_names_no_other_workspace(world):
    with pytest.raises(NotFound) as refused:
        world.app.agent_access.workspace("gardne")
    assert "garden" not in refused.value.message.replace("gardne", "")
    assert refused.value.details == {"workspace": "gardne"}
