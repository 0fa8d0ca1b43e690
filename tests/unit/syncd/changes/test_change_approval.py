"""Undo of an approved change whose note was edited since: it removes the change, and no text of the owner."""

from __future__ import annotations

import shutil

import pytest

from index.document_ids import sha256
from index.errors import Conflict, InvalidArgument, NotFound
from syncd.changes.change_approval import APPLY, ChangePlans
from syncd.history.change_journal import Entry, note_step
from syncd.vault.vault import Vault
from tests.support.change_notes import change_note

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
NOTE, CHANGE = "Plan.md", "Captures/work/Change.md"


@pytest.fixture
def plan_undo(tmp_path):
    """Return the plan that undoes a change of the note from `before` to `after`."""
    (tmp_path / "Captures/work").mkdir(parents=True)
    vault = Vault(tmp_path)
    plans = ChangePlans(vault, "Captures", lambda _, __: None)
    entry = Entry(1, APPLY, "c1", "done", CHANGE, NOTE, "you", 0, "", "{}")

    def plan(before, after, now, proposal=b"A change.\n"):
        if now is not None:
            (tmp_path / NOTE).write_bytes(now)
        return plans.plan_return(entry, [note_step(NOTE, before, after), note_step(CHANGE, proposal, None)])

    yield plan
    vault.close()


@pytest.fixture
def undone(plan_undo):
    """Return the note as the undo of a change leaves it."""
    return lambda *texts: {step.path: step.after for step in plan_undo(*texts).steps}[NOTE]


@pytest.mark.parametrize("name", ["Change.md", "CHANGE.md"])
def test_a_proposal_returns_under_a_name_that_is_free_on_every_system(plan_undo, tmp_path, name):
    (tmp_path / "Captures/work" / name).write_text("mine")
    assert plan_undo(b"a\n", b"b\n", b"b\n").target == "Captures/work/Change 2.md"


def test_another_change_than_the_one_that_the_owner_saw_is_not_applied(tmp_path):
    (tmp_path / "Captures/work").mkdir(parents=True)
    (tmp_path / CHANGE).write_bytes(b"Another change.\n")
    plans = ChangePlans(Vault(tmp_path), "Captures", lambda _, __: None)
    with pytest.raises(Conflict, match="not the one that was shown"):
        plans.plan(CHANGE, shown=sha256(b"A change.\n"))


@pytest.mark.parametrize("tick", ["promote", "Promote"])
def test_a_proposal_returns_without_its_tick_and_the_problem_that_it_had(plan_undo, tick):
    proposal = f"---\nid: c1\n{tick}: true\npromote_problem: the note has changed\n---\nA change.\n".encode()
    first = plan_undo(b"a\n", b"b\n", b"b\n", proposal).steps[0]
    assert first.after == f"---\nid: c1\n{tick}: false\n---\nA change.\n".encode()


def test_nothing_returns_to_a_workspace_that_is_gone(plan_undo, tmp_path):
    (tmp_path / "Captures/work").rmdir()
    with pytest.raises(Conflict, match="the workspace 'work' no longer exists"):
        plan_undo(b"a\n", b"b\n", b"b\n")


def test_a_change_of_a_note_that_is_gone_stays_applied(plan_undo):
    with pytest.raises(NotFound, match=r"'Plan\.md' does not exist any more"):
        plan_undo(b"a\n", b"b\n", None)


@pytest.mark.parametrize(
    ("before", "added", "now", "expected"),
    [
        pytest.param(b"# List\n", b"- milk\n", b"# List\n- milk\nEggs\n", b"# List\nEggs\n", id="a line below"),
        pytest.param(b"# List\n", b"- milk\n", b"- milk\nEggs\n", b"Eggs\n", id="nothing above"),
        pytest.param(b"# List\n", b"- milk", b"# My list\n- milk", b"# My list\n", id="no line end"),
        pytest.param(b"- oat", b"\n- milk\n", b"- oats\n- milk\n", b"- oats", id="none before it"),
        pytest.param(b"- oat", b"\n- milk", b"- oat\n- milk\nEggs\n", b"- oat\nEggs\n", id="a line below that"),
        pytest.param(b"- oat", b"\n- milk\n", b"- oat\n- milk\nEggs\n", b"- oat\nEggs\n", id="both line ends"),
        pytest.param(b"- oat", b"\r\n- milk\r\n", b"- oat\r\n- milk\r\nEggs", b"- oat\r\nEggs", id="of Windows"),
        pytest.param(b"- milk\n# B\n", b"- milk\n", b"- milk\n# B\n", b"- milk\n# B\n", id="the owner's equal line"),
    ],
)
def test_appended_lines_are_removed_wherever_they_are_now(undone, before, added, now, expected):
    assert undone(before, before + added, now) == expected


@pytest.mark.parametrize(
    ("before", "added", "now"),
    [
        pytest.param(b"# List\n", b"- milk\n", b"# List\nNever buy any - milk\nEggs\n", id="at the end of a line"),
        pytest.param(b"# List\n", b"- milk", b"# List\n- milk and more\n", id="at the beginning of a line"),
        pytest.param(b"- oat", b" and milk\n", b"- soy and milk\n", id="within a line"),
    ],
)
def test_appended_text_in_a_line_of_the_owner_is_a_conflict(undone, before, added, now):
    with pytest.raises(Conflict, match="same lines"):
        undone(before, before + added, now)


@pytest.mark.parametrize("inbox", ["Captures", "captures", "CAPTURES"])
def test_a_change_of_a_capture_is_refused_in_any_letter_case_of_the_inbox(tmp_path, inbox):
    (tmp_path / inbox / "work").mkdir(parents=True)
    (tmp_path / inbox / "work/Note.md").write_text("a\n")
    vault = Vault(tmp_path)
    with pytest.raises(InvalidArgument, match="outside the inbox"):
        ChangePlans(vault, "Captures", lambda _, __: None).weigh(
            change_note("c", f"{inbox}/work/Note.md", "a\n", "b\n").encode()
        )
    vault.close()
