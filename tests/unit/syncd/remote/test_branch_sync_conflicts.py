"""Commits that the vault's remote has, and that are in conflict or in the way of a file here, overwrite nothing."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from index.errors import Conflict
from syncd.context.generated_note import Decisions, compose_note, line_of, read_decisions
from tests.support.context_facts import fact
from tests.support.git_states import intercept, only_command, run

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("person"),
]


def test_a_conflict_is_parked_touches_no_byte_and_goes_on_once_a_person_has_merged(device):
    device.there("n.md", "theirs\n")
    device.there("more.md", "more\n")
    device.here("n.md", "ours\n")
    theirs, before, head = device.head(device.bare, "main"), device.files(), device.head()
    for _ in range(2):
        with pytest.raises(Conflict, match=r"both changed n\.md.*`git .* pull --no-rebase`"):
            device.remote.sync()
    assert (device.files(), device.head(), device.parked()) == (before, head, [theirs])
    assert device.head(device.bare, "main") == theirs
    assert device.remote.unwell.startswith("git: the vault and its remote both have new commits")
    run(device.vault, "pull", "-q", "--no-rebase", check=False)
    with pytest.raises(Conflict, match="there are unresolved conflicts"):
        device.remote.sync()
    device.here("n.md", "ours and theirs\n")
    assert device.remote.sync().sent == 2
    assert (device.parked(), device.remote.problem, device.remote.unwell) == ([], "", "")
    assert device.head() == device.head(device.bare, "main")


def test_a_context_that_two_devices_wrote_is_merged_with_the_decisions_of_both(device):
    here, there, gone = fact("Here"), fact("There"), fact("Gone")

    def note(*facts, left_out=()):
        lines = {line.mark: line for line in map(line_of, left_out)}
        return compose_note("work", 1_200, facts, Decisions(left_out=lines))

    path = "Captures/Context/work.md"
    device.there(path, note(there, gone))
    device.here(path, note(here, left_out=[gone]))
    device.here("mine.md", "mine\n")
    before = device.head()
    outcome = device.remote.sync()
    assert outcome.merged
    assert outcome.sent == 3
    text = device.text(path)
    assert text.startswith(note(here, left_out=[gone]))
    known = {line.mark: line.body for line in map(line_of, (here, there, gone))}
    assert read_decisions(text, [known]).decided == {gone.mark}
    assert text.count("There") == 2, "once in the link"
    assert device.files()["mine.md"] == b"mine\n"
    assert run(device.vault, "merge-base", "--is-ancestor", before, "HEAD") == ""
    assert run(device.vault, "status", "--porcelain") == ""
    device.there(path, note(there))
    device.there("n.md", "theirs\n")
    device.here(path, note(here))
    device.here("n.md", "ours\n")
    with pytest.raises(Conflict, match=r"both changed .*n\.md"):  # one that only a person can merge
        device.remote.sync()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("ours\n", None), ("---\na: 1\n---\n", "---\na: 2\n---\n"), (b"\xff\n", None)],
    ids=["foreign", "properties", "bytes"],
)
def test_a_file_in_the_folder_of_contexts_that_only_a_person_can_merge_is_parked(device, ours, theirs):
    made = compose_note("work", 1_200, [fact("There")], Decisions())
    path = "Captures/Context/work.md"
    device.there(path, (theirs or "") + made)
    device.here(path, ours if theirs is None else ours + made.replace("There", "Here"))
    before = device.files()
    with pytest.raises(Conflict, match=r"both changed Captures/Context/work\.md"):
        device.remote.sync()
    assert device.files() == before


@pytest.mark.parametrize("inbox", ["Captures", "My inbox"])
def test_a_context_that_one_device_deleted_and_the_other_changed_is_parked(device, inbox):
    device.remote._inbox = inbox
    path = f"{inbox}/Context/work.md"
    made = compose_note("work", 1_200, [fact("There")], Decisions())
    device.there(path, made)
    device.remote.sync()
    device.there(path, None)
    device.here(path, made.replace("There", "Here"))
    before = device.files()
    with pytest.raises(Conflict, match=rf"both changed {path}"):
        device.remote.sync()
    assert device.files() == before


def test_a_note_goes_where_it_was_put_though_its_folder_is_called_otherwise_elsewhere(device):
    device.here("Notes/b.md", "b\n")
    device.remote.sync()
    run(device.clone, "pull", "-q")
    (device.clone / "Notes").rename(device.clone / "Articles")
    device.there("n.md", "two\n")
    device.here("Notes/new.md", "new\n")
    assert device.remote.sync().merged
    assert {"Articles/b.md", "Notes/new.md"} <= device.files().keys()
    assert (device.vault / "Notes/b.md").exists() is False


def test_a_conflict_on_which_git_dies_by_its_guess_at_folders_is_parked_and_its_command_works(device):
    """A capture was promoted here and deleted there, where all that was promoted went back: Git 2.39 aborts on that."""
    device.here("Captures/a.md", "a\n" * 9)
    device.here("Captures/c.md", "c\n" * 9)
    device.here("Notes/b.md", "b\n" * 9)
    device.remote.sync()
    run(device.clone, "pull", "-q")
    (device.vault / "Notes/a.md").write_bytes((device.vault / "Captures/a.md").read_bytes())
    device.here("Captures/a.md", None)
    (device.clone / "Notes/b.md").rename(device.clone / "Captures/b.md")
    device.there("Captures/a.md", None)
    with pytest.raises(Conflict, match=r"both changed Notes/a\.md") as told:
        device.remote.sync()
    subprocess.run(["sh", "-c", only_command(told.value.message)], check=False, capture_output=True)
    assert device.repo.local_state() == "conflict"
    run(device.vault, "add", "-A")
    run(device.vault, "commit", "-qm", "mended")
    assert device.remote.sync().sent
    assert device.files().keys() >= {"Notes/a.md", "Captures/b.md"}


@pytest.mark.parametrize(("path", "text"), [("n.md", "edited\n"), ("new.md", "not committed\n")])
def test_what_is_not_committed_is_never_overwritten_and_is_named(device, path, text):
    device.here(".gitignore", "ignored.md\n")
    device.remote.sync()
    run(device.clone, "pull", "-q")
    (device.clone / path).write_text("theirs\n")
    run(device.clone, "add", "-Af")
    run(device.clone, "commit", "-qm", "x")
    run(device.clone, "push", "-q")
    device.here(path, text, commit=False)
    before, head = device.files(), device.head()
    with pytest.raises(Conflict, match=rf"local changes: {path}; commit it") as told:
        device.remote.sync()
    assert told.value.details == {"paths": [path]}
    assert (device.files(), device.head()) == (before, head)
    assert not (device.vault / ".git/index.lock").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["assume-unchanged", "skip-worktree", "ignored", "ignored folder"])
def test_what_git_overlooks_is_never_overwritten_and_the_command_that_is_told_ends_it(device, kind):
    path = "ignored it's.md" if "ignored" in kind else "n.md"
    if kind == "ignored folder":
        device.here(f"{path}/deep.md", "a person's\n", commit=False)
    else:
        device.here(path, "a person's\n", commit=False)
    if "ignored" in kind:
        (device.vault / ".git/info/exclude").write_text("ignored*\n")
    else:
        run(device.vault, "update-index", f"--{kind}", "n.md")
    device.there(path, "theirs\n")
    before = device.files()
    for _ in range(2 if "ignored" in kind else 3):  # Git sees it again, it is committed, and a person merges both
        with pytest.raises(Conflict) as told:
            device.remote.sync()
        assert device.files() == before
        if "refs/memex" in told.value.message:
            break
        subprocess.run(["sh", "-c", only_command(told.value.message)], check=True, capture_output=True)
        if "ignored" in kind:
            assert device.remote.sync().took == 1
            assert device.text(path) == "theirs\n"
            break
    assert "a person's\n" in {raw.decode() for raw in device.files().values()}


def test_edits_that_are_not_in_the_way_stay_uncommitted_and_staged_as_they_are(device):
    device.here("own.md", "own\n")
    device.here("staged.md", "staged\n", commit=False)
    run(device.vault, "add", "staged.md")
    device.here("own.md", "own, edited\n", commit=False)
    device.there("theirs.md", "theirs\n")
    before = run(device.vault, "status", "--porcelain")
    device.remote.sync()
    assert run(device.vault, "status", "--porcelain") == before == "M own.md\nA  staged.md"
    assert (device.text("own.md"), device.text("theirs.md")) == ("own, edited\n", "theirs\n")


def test_files_that_another_tool_has_brought_already_are_no_hindrance(device):
    device.there("synced.md", "by Syncthing too\n")
    device.there("n.md", "two\n")
    device.here("synced.md", "by Syncthing too\n", commit=False)
    assert device.remote.sync().took == 2
    assert run(device.vault, "status", "--porcelain") == ""
    assert device.text("n.md") == "two\n"
    assert device.head() == device.head(device.bare, "main")


def beside(device):
    """A pull while another Git works in the vault: a merge that is about to fail."""
    device.here("gone.md", "to go\n")
    run(device.vault, "push", "-q")
    device.there("gone.md", None)
    device.there("n.md", "two\n")
    device.there("new.md", "new\n")
    before, working = device.head(), device.state.parent / "git-merge"
    shutil.copy(shutil.which("sleep"), working)
    with subprocess.Popen([working, "60"], cwd=device.vault) as process:
        assert device.remote.sync(push=False).files == 3
        process.kill()
    run(device.vault, "read-tree", "-u", "--reset", before)
    assert (device.text("n.md"), run(device.vault, "status", "--porcelain") != "") == ("one\n", True)


def test_what_another_git_puts_back_when_it_fails_is_brought_again(device):
    beside(device)
    device.remote.tick()
    assert run(device.vault, "status", "--porcelain") == ""
    assert device.files() == {"n.md": b"two\n", "new.md": b"new\n"}
    run(device.vault, "read-tree", "-u", "--reset", "HEAD~1")
    device.remote._beside = None  # as if it were a minute later: then it is what its owner wants
    before = device.files()
    device.remote.tick()
    assert device.files() == before != {"n.md": b"two\n", "new.md": b"new\n"}


def test_what_a_person_has_done_meanwhile_is_not_taken_for_another_git_s_failure(device):
    beside(device)
    (device.vault / "n.md").write_text("mine\n")
    before = device.files()
    device.remote.tick()
    assert device.files() == before


def test_a_pull_that_git_breaks_off_reports_a_file_that_was_edited_meanwhile(device, tmp_path, monkeypatch):
    for name in ("a.md", "b.md"):
        device.there(name, "one\n")
    device.remote.sync()
    for name in ("a.md", "b.md"):
        device.there(name, "two\n")
    # Git writes one file, somebody edits the other, and the disk is full.
    writes = "cd \"$2\"; printf 'two\\n' > a.md; printf 'mine\\n' > b.md"
    intercept(
        monkeypatch, tmp_path, "--ff-only", f"{writes}; echo 'fatal: unable to write new index file' >&2; exit 128"
    )
    device.calls.clear()
    with pytest.raises(Conflict, match=r"finished an interrupted pull, except in b\.md, which was edited since"):
        device.remote.sync()
    assert (device.text("a.md"), device.text("b.md"), device.calls) == ("two\n", "mine\n", ["moved"])
    assert device.head() == device.head(device.bare, "main")
    assert "b.md" in device.remote.problem
