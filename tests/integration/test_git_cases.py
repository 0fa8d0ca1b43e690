"""Memex beside other programs in one folder: Git in the midst of something, obsidian-git, and what syncs files by itself."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading

import psutil
import pytest

from index.errors import Conflict, MemexError, Unavailable
from syncd.commits.commit_selection import UNREADABLE
from syncd.git import head_moves
from syncd.settings.automation import GitSettings
from tests.support.commit_crash import Rig
from tests.support.git_states import diverge, run, with_remote
from tests.support.remote_vault import SyncedDevice
from tests.support.world import World, promote

pytestmark = [pytest.mark.faults, pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")]

A = "Captures/default/A.md"
# What lies in Git's folder while somebody is at work there, or has left it unfinished.
MIDST = (
    *("index.lock", "HEAD.lock", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG"),
    *("rebase-merge", "rebase-apply", "rebase-apply/applying"),
)


@pytest.fixture(autouse=True)
def person(monkeypatch, tmp_path):
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".gitconfig").write_text("[user]\nname = Ann\nemail = ann@example.org\n")


@contextlib.contextmanager
def under_way(vault, name):
    """Somebody is at work in the repository."""
    place = vault / ".git" / name
    made = [folder for folder in (place, *place.parents) if not folder.exists()]
    place.parent.mkdir(exist_ok=True)
    if name.startswith("rebase") and "/" not in name:
        place.mkdir()
    else:
        place.write_text(run(vault, "rev-parse", "HEAD") if name.endswith("HEAD") else "")
    yield
    for one in made:
        one.rmdir() if one.is_dir() else one.unlink()


def files(root):
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


def test_while_somebody_is_at_work_nothing_is_committed_and_the_lock_is_left_alone(tmp_path):
    rig = Rig(tmp_path)
    for name in MIDST:
        rig.agent(A, f"{name}\n")
        head = rig.repo.head()
        with under_way(rig.vault, name):
            assert rig.commits.flush(0.0) == 0, name
            assert rig.commits.problem.startswith("git: "), name
            assert (rig.repo.busy_reason(), rig.repo.head()) == (name, head)
            assert (rig.vault / ".git" / name).exists()
        assert (rig.commits.flush(), rig.commits.problem) == (1, ""), name
        assert rig.held(A) == f"{name}\n".encode()
    rig.close()


def test_while_somebody_is_at_work_nothing_is_exchanged_and_what_to_do_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("syncd.remote.branch_sync.LOCKED_S", 0.0)
    device = SyncedDevice(tmp_path)
    device.here("ours.md", "ours\n")
    device.there("theirs.md", "theirs\n")
    before, tips = device.files(), (device.head(), device.head(device.bare, "main"))
    for name in MIDST:
        with under_way(device.vault, name), pytest.raises(Conflict) as told:
            device.remote.sync()
        assert told.value.details["state"] in ("locked", "mid-operation"), name
        assert (device.files(), (device.head(), device.head(device.bare, "main"))) == (
            before,
            tips,
        )
    assert device.remote.sync().sent == 2
    device.close()


def note(id, more="", text="The heron stands in the reeds."):
    return f"---\nid: {id}\ncreated_at: 2026-11-20T14:32:05.120Z\n{more}---\n{text}\n"


def jobs(world):
    """One run of each job that writes into notes, and a pass over the vault."""
    world.run()
    services = world.app.services
    services.proposal_execution.finish_pending()
    services.marked_captures.run()
    services.manual_moves.run()
    services.archive.run()
    services.review.run(threading.Event())
    services.consolidation.carry_out_ticked(threading.Event())


def test_while_git_has_not_finished_no_job_writes_into_a_note(tmp_path):
    world = World(tmp_path)
    world.git("init", "-q", "-b", "main")
    for name in ("marked", "moved", "expired", "waiting"):
        world.write(f"Captures/default/{name}.md", note(name, text=f"All about {name} [[Pond]]."))
    world.write("Notes/Pond.md", "shallow, see [[Captures/default/marked]] and [[Captures/default/moved]]\n")
    world.git("add", "-A")
    world.git("commit", "-qm", "before")
    world.app.opened.sync.ready.set()
    jobs(world)
    world.git("checkout", "-q", "--", ".")
    names = [name for name in MIDST if not name.endswith(".lock")]
    with under_way(world.vault, names[0]):
        world.write("Captures/default/marked.md", note("marked", "promote: true\n"))
        world.write("Captures/default/expired.md", note("expired", "review: dismissed\n"))
        (world.vault / "Captures/default/moved.md").rename(world.vault / "Notes/moved.md")
        before = files(world.vault)
    for name in names:
        with under_way(world.vault, name):
            for _ in range(2):
                jobs(world)
            assert files(world.vault) == before, name
    for _ in range(2):
        jobs(world)
    now = files(world.vault)
    assert {"Notes/marked.md", "Notes/moved.md", "Captures/Archive/default/expired.md"} <= now.keys()
    assert b"promoted_at" in now["Notes/moved.md"]
    assert now["Notes/Pond.md"] == b"shallow, see [[Notes/marked]] and [[Notes/moved]]\n"
    world.close()


def no_git(vault, monkeypatch):
    monkeypatch.setenv("PATH", str(vault.parent / "nowhere"))


def bare(vault, monkeypatch):
    run(vault.parent, "clone", "-q", "--bare", str(vault), str(vault.parent / "bare"))
    shutil.rmtree(vault)
    (vault.parent / "bare").rename(vault)


def broken(vault, monkeypatch):
    (vault / ".git/config").write_text("[core\n")


def dubious(vault, monkeypatch):
    if os.geteuid():
        pytest.skip("only root can give a folder away")
    for path in (vault, vault / ".git"):
        os.chown(path, 12345, 12345)


def conflict(vault, monkeypatch):
    diverge(vault)


@pytest.mark.parametrize("make", [no_git, bare, broken, dubious, conflict])
def test_where_git_can_t_help_captures_and_searches_work_and_the_way_out_is_told(tmp_path, monkeypatch, make):
    vault = with_remote(tmp_path, "vault")
    make(vault, monkeypatch)
    world = World(tmp_path)
    world.app.opened.sync.ready.set()
    world.run()
    kept = world.app.agent_access.workspace("default").capture("The whimbrel is a wader.").record
    assert world.found("whimbrel", mode="text") == [kept.path]
    told = world.app.health.facts()["git"]
    assert (told["state"], "`" in told["advice"]) == (make.__name__.replace("_", "-"), True)
    assert world.app.services.commits.flush(0.0) == 0
    with pytest.raises(Conflict, match="`"):
        world.app.services.remote.sync()
    done = promote(world, kept.id, to="Birds")
    assert (done["commit"], (world.vault / done["target"]).exists()) == ("", True)
    for _ in range(2):
        jobs(world)
    assert [one["what"] for one in world.app.operations["log"]({"id": kept.id}, lambda _: None)["events"]]
    world.close()


# Programs that sync files


def evict(file):
    """Let iCloud move a file off this machine."""
    file.rename(file.with_name(f".{file.name}.icloud"))


def fetched(file):
    file.with_name(f".{file.name}.icloud").rename(file)


def test_a_capture_that_is_not_downloaded_is_neither_committed_as_gone_nor_forgotten(tmp_path):
    rig = Rig(tmp_path)
    rig.agent(A, "one\n")
    evict(rig.vault / A)
    assert rig.commits.flush() == 0
    assert rig.commits.kept == {A: UNREADABLE}
    rig.close()
    rig.open()
    fetched(rig.vault / A)
    assert rig.commits.flush() == 1
    rig.agent(A, "two\n")
    evict(rig.vault / A)
    assert (rig.commits.flush(), rig.held(A)) == (0, b"one\n")
    fetched(rig.vault / A)
    assert (rig.commits.flush(), rig.held(A), rig.commits.kept) == (1, b"two\n", {})
    rig.close()


def test_what_is_not_downloaded_is_not_taken_for_gone_by_a_promotion(tmp_path):
    world = World(tmp_path)
    world.git("init", "-q", "-b", "main")
    file = world.write("Captures/default/Heron.md", note("c1"))
    links = world.write("Notes/Pond.md", "see [[Captures/default/Heron]]\n")
    world.run()
    world.app.opened.sync.ready.set()
    evict(file)
    with pytest.raises(MemexError):
        promote(world, "c1")
    assert files(world.vault) == {
        "Captures/default/.Heron.md.icloud": note("c1").encode(),
        "Notes/Pond.md": links.read_bytes(),
    }
    fetched(file)
    evict(links)
    done = promote(world, "c1", to="Birds")
    assert done["unread"] == ["Notes/Pond.md"], "its link is broken, and that is told"
    assert (world.vault / "Notes/.Pond.md.icloud").exists()
    world.close()


def test_copies_that_a_sync_program_set_aside_are_left_to_their_owner(tmp_path):
    world = World(tmp_path)
    world.git("init", "-q", "-b", "main")
    world.app.opened.sync.ready.set()
    space = world.app.agent_access.workspace("default")
    kept = space.capture("The heron stands in the reeds.", metadata={"title": "Heron"}).record
    original = world.vault / "Captures/default/Heron.md"
    front = original.read_text().partition("---\n")[2].partition("---\n")[0]
    copies = {}
    for mark, name in enumerate(
        ("Heron.sync-conflict-20261121-101010-ABCDEF7", "Heron (Ada's conflicted copy 2026-11-21)")
    ):
        raw = f"---\n{front}{('review: dismissed', 'expires: 2020-01-01')[mark]}\n---\nThe heron has left.\n".encode()
        copies[world.write(f"Captures/default/{name}.md", raw)] = raw
    for _ in range(3):
        jobs(world)
    assert space.get(kept.id).content == "The heron stands in the reeds."
    assert {path: path.read_bytes() for path in copies} == copies
    assert len(world.app.health.facts()["names"]["conflict_copies"]) == 2
    assert world.app.services.commits.flush() > 0
    held = world.git("ls-tree", "-r", "--name-only", "-z", "HEAD").split("\0")
    assert "Captures/default/Heron.md" in held
    assert not any("onflict" in path for path in held)
    world.close()


def test_git_s_own_folder_may_be_synced_too(tmp_path):
    """Not wise, but done: conflict copies of its files are none of its files."""
    rig = Rig(tmp_path)
    copy = "sync-conflict-20261121-101010-ABCDEF7"
    for name in ("HEAD", "index", "refs/heads/main", "logs/HEAD", "COMMIT_EDITMSG"):
        file = rig.vault / ".git" / name
        shutil.copy(file, file.with_name(f"{file.name}.{copy}"))
    for name in (f"index.{copy}.lock", "~syncthing~index.tmp", ".syncthing.HEAD.tmp", "MERGE_HEAD.orig"):
        (rig.vault / ".git" / name).write_text("")
    assert (rig.repo.local_state(), rig.repo.busy_reason(), rig.repo.read_state().branch) == ("ok", "", "main")
    rig.agent(A, "one\n")
    assert (rig.commits.flush(), rig.held(A), rig.status()) == (1, b"one\n", [])
    rig.git("switch", "-q", "--detach")
    assert rig.repo.advice(rig.repo.read_state()).endswith(" switch main`")
    rig.close()


# obsidian-git


def backup(root):
    """What obsidian-git does every few minutes: all that there is, with the remote's."""
    run(root, "add", "-A", check=False)
    run(root, "commit", "-qm", "vault backup", check=False)
    run(root, "pull", "-q", "--no-rebase", "--no-edit", check=False)
    run(root, "push", "-q", check=False)


def elsewhere(device, path, text):
    """Another device writes a note and pushes it, as often as it takes."""
    (device.clone / path).write_text(text)
    run(device.clone, "add", "-A")
    run(device.clone, "commit", "-qm", f"{path} of {device.clone.name}")
    while not run(device.bare, "branch", "--contains", device.head(device.clone), check=False):
        run(device.clone, "pull", "-q", "--no-rebase", "--no-edit", check=False)
        run(device.clone, "push", "-q", check=False)


def test_obsidian_git_backs_up_pulls_and_pushes_in_the_same_folder(tmp_path):
    device, stop, seen = SyncedDevice(tmp_path), threading.Event(), []

    def plugin():
        while not stop.is_set():
            backup(device.vault)

    other = threading.Thread(target=plugin)
    other.start()
    try:
        for number in range(12):
            device.here(f"here {number}.md", f"{number}\n", commit=False)
            elsewhere(device, f"there {number}.md", f"{number}\n")
            with contextlib.suppress(MemexError):
                seen.append(device.remote.sync())
    finally:
        stop.set()
        other.join()
    backup(device.vault)
    device.remote.sync()
    run(device.clone, "pull", "-q", "--no-rebase", "--no-edit")
    wanted = {f"{where} {number}.md": f"{number}\n".encode() for where in ("here", "there") for number in range(12)}
    assert device.files() == files(device.clone)
    assert device.files().items() <= {"n.md": b"one\n", **wanted}.items()
    # Two programs that merge in one work tree at the same moment: Git has no lock from the first look to the last, and one
    # that fails puts back what it began with. Here the other commits that at once; nothing that is ours takes a note away.
    for path in wanted.keys() - device.files().keys():
        assert run(device.vault, "log", "-1", "--diff-filter=D", "--format=%s", "--", path) == "vault backup"
    assert run(device.vault, "status", "--porcelain") == ""
    assert run(device.vault, "fsck", "--strict", "--no-dangling") == ""
    assert list((device.vault / ".git").rglob("*.lock")) == []
    device.close()


def test_a_conflict_that_obsidian_git_has_left_stops_nothing_but_git(tmp_path, monkeypatch):
    monkeypatch.setattr("syncd.commits.committer.PATIENCE_S", 0.0)
    root = tmp_path / "vault"
    (tmp_path / "remote").mkdir()
    device = SyncedDevice(tmp_path / "remote")
    device.close()
    run(tmp_path, "clone", "-q", str(device.bare), str(root))
    world = World(tmp_path, git=GitSettings(quiet_s=0.0, every_s=0.0))
    world.app.opened.sync.ready.set()
    world.run()
    world.write("n.md", "ours\n")
    device.there("n.md", "theirs\n")
    backup(root)  # which leaves markers, and says so in a note of its own
    world.write("conflict-files-obsidian-git.md", "# Conflicts\n- [[n]]\n")
    assert "<<<<<<<" in (root / "n.md").read_text()
    world.run()
    services, space = world.app.services, world.app.agent_access.workspace("default")
    kept = space.capture("thought of meanwhile").record
    assert world.found("meanwhile", mode="text") == [kept.path]
    assert world.found("conflicts", mode="text", scope="vault") == []
    defects = dict(world.app.opened.builds.scopes["vault"].index.defects())
    assert defects["n.md"].startswith("merge-conflict")
    before, head = files(root), run(root, "rev-parse", "HEAD")
    assert services.commits.flush() == 0
    with pytest.raises(Conflict, match="merge --continue"):
        services.remote.sync()
    jobs(world)
    assert (files(root), run(root, "rev-parse", "HEAD")) == (before, head)
    (root / "n.md").write_text("both\n")
    (root / "conflict-files-obsidian-git.md").unlink()
    run(root, "add", "n.md")
    run(root, "commit", "-q", "--no-edit")
    assert services.remote.sync().sent == 3
    assert run(device.bare, "show", f"main:{kept.path}").endswith("thought of meanwhile")
    assert run(device.bare, "show", "main:n.md") == "both"
    world.close()


# What a repository may ask for


def test_a_submodule_that_comes_in_is_not_fetched_and_stands_in_no_way(tmp_path):
    device = SyncedDevice(tmp_path)
    (device.clone / ".gitmodules").write_text('[submodule "sub"]\n\tpath = sub\n\turl = file:///nowhere\n')
    (device.clone / "sub").mkdir()
    run(
        device.clone,
        "update-index",
        "--add",
        "--cacheinfo",
        f"160000,{device.head(device.clone)},sub",
    )
    device.there("theirs.md", "theirs\n")
    device.here("ours.md", "ours\n")
    assert device.remote.sync().sent == 2
    assert (device.text("theirs.md"), list((device.vault / "sub").iterdir())) == ("theirs\n", [])
    assert run(device.vault, "status", "--porcelain") == ""
    device.there("theirs.md", "more\n")
    assert device.remote.sync().took == 1
    device.close()


def test_a_remote_that_is_a_program_is_not_run_and_no_process_is_left(tmp_path):
    others = psutil.Process().children(recursive=True)  # of earlier tests, as multiprocessing's tracker of resources
    device, proof = SyncedDevice(tmp_path), tmp_path / "proof"
    device.here("ours.md", "ours\n")
    device.remote.sync()
    run(device.vault, "remote", "set-url", "origin", f"ext::touch {proof}")
    with pytest.raises(Unavailable, match="not allowed"):
        device.remote.sync()
    assert not proof.exists()
    head_moves.changed_paths(device.repo, device.repo.position(), device.repo.position())
    assert [child for child in psutil.Process().children(recursive=True) if child not in others] == []
    device.close()


def test_a_history_is_never_replaced_by_a_push(tmp_path):
    """Not even where the person has set that every push is forced."""
    device = SyncedDevice(tmp_path)
    device.there("theirs.md", "theirs\n")
    theirs = device.head(device.bare, "main")
    run(device.vault, "config", "remote.origin.push", "+refs/heads/*:refs/heads/*")
    run(device.vault, "config", "push.default", "matching")
    device.here("ours.md", "ours\n")
    device.remote.sync(pull=False)
    assert run(device.bare, "merge-base", theirs, "main") == theirs
    assert device.text("theirs.md") == "theirs\n"
    device.close()
