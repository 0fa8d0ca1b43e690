"""syncd/vault/location.py: where a path stands."""

import pytest

from index.errors import InvalidArgument
from syncd.vault.location import VAULT, NoteLocation, check_workspace_name, locate, namespace_path


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("Projects/Rover.md", VAULT, id="the vault proper"),
        pytest.param("Captures/Review.base", VAULT, id="beside the workspaces"),
        pytest.param("Captures/note.md", VAULT, id="a note beside the workspaces is no capture"),
        pytest.param("Captures/Context/default.md", VAULT, id="contexts are generated"),
        pytest.param("Captures/Reports/2026-11-20 Consolidation.md", VAULT, id="reports are for people"),
        pytest.param("Captures/Archive/default/Old.md", VAULT, id="what was set aside is for people"),
        pytest.param("captures/default/a.md", VAULT, id="the inbox's name is exact"),
        pytest.param("Other/Captures/default/a.md", VAULT, id="an inbox elsewhere is none"),
        pytest.param("Captures/default/a.md", NoteLocation("captures", "default", "default", "note"), id="top level"),
        pytest.param("Captures/work/alpha/a.md", NoteLocation("captures", "work", "alpha", "note"), id="a namespace"),
        pytest.param(
            "Captures/work/a/b/c.md", NoteLocation("captures", "work", "a/b", "note"), id="a deeper namespace"
        ),
        pytest.param(
            "Captures/work/Entities/Ada.md", NoteLocation("captures", "work", "default", "entity"), id="a node"
        ),
        pytest.param(
            "Captures/work/alpha/Files/r.pdf.md", NoteLocation("captures", "work", "alpha", "file"), id="a file"
        ),
    ],
)
def test_a_path_says_where_it_stands(path: str, expected: NoteLocation):
    assert locate(path, "Captures") == expected


def test_the_inbox_may_be_a_folder_of_a_folder():
    assert locate("Agents/Inbox/work/a.md", "Agents/Inbox") == NoteLocation("captures", "work", "default", "note")
    assert locate("Agents/work/a.md", "Agents/Inbox") == VAULT


@pytest.mark.parametrize("name", ["", "\u200b", "\u3164", "\u00ad\ufe0f"])
def test_a_folder_that_nobody_can_see_is_neither_a_workspace_nor_a_namespace(name: str):
    for check in (check_workspace_name, namespace_path):
        with pytest.raises(InvalidArgument, match="use letters"):
            check(name)
