"""One line of time for a note: entries of the log, commits, and what neither of them saw."""

from __future__ import annotations

import hashlib
import shutil
import subprocess

import pytest

from index.errors import Conflict, InvalidArgument, NotFound
from syncd.cli.main import run_command
from syncd.git.note_commits import list_commits
from syncd.graph.node_request import NewNode
from syncd.history.audit_log import Author, acting_as
from syncd.history.note_history import Event, merge_events
from syncd.history.write_lineage import PROMOTED
from tests.support.agent_writes import by, capture, delete, space, undo, update
from tests.support.git_history import commit, log
from tests.support.world import World, answering

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.git("init", "-q", "-b", "main")
    made.run()
    yield made
    made.close()


def whats(told):
    return [(one["what"], one["key"] or one["author"] or one["surface"]) for one in told["events"]]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(lambda vault: init(vault), "and Git has no commit of it", id="an empty history"),
        pytest.param(
            lambda vault: init(vault.parent),
            "and Memex does not read the history of {parent}, because the vault is a subfolder of it; "
            "Git shows it: git -C {vault} log --follow -- 'By Ann.md'",
            id="a subfolder",
        ),
        pytest.param(
            lambda vault: (init(vault), (vault / ".git/HEAD").write_text("nothing\n")),
            "and Memex can't read the history: Git can't read the repository: run `git -C {vault} fsck` to see what is damaged",
            id="a damaged repository",
        ),
    ],
)
def test_a_note_without_history_names_the_reason(tmp_path, make, reason):
    world = World(tmp_path)
    make(world.vault)
    world.write("By Ann.md", "text\n")
    world.run()
    with pytest.raises(NotFound) as refused:
        log(world, "By Ann.md")
    world.close()
    assert str(refused.value).endswith(reason.format(vault=world.vault, parent=world.vault.parent))


def init(folder):
    subprocess.run(["git", "init", "-q", folder], check=True)


def test_a_note_is_followed_over_edits_a_move_a_promotion_and_its_deletion(world):
    kept = capture(world, "# Salt\n\nand sun, over several lines\n\nso that Git knows it again\n")
    commit(world, "Capture", kept.created_at)
    update(world, kept.id, "# Salt\n\nand rain, over several lines\n\nso that Git knows it again\n", key="codex")
    changed = next(one for one in log(world, kept.id, patch=True)["events"] if one["what"] == "update")
    assert {"-and sun, over several lines", "+and rain, over several lines"} <= set(changed["diff"])
    file = world.vault / kept.path
    (world.vault / "Notes").mkdir()
    moved = world.vault / "Notes/Salt of the sea.md"
    file.rename(moved)
    moved.write_bytes(moved.read_bytes() + b"\nmine\n")
    world.run()
    told = log(world, kept.id)
    assert sorted(whats(told)) == sorted(
        [("create", "claude"), ("commit", "Ann"), ("update", "codex"), ("edit", "file")]
    )
    commit(world, "Mine now", told["events"][-1]["at"])
    told = log(world, "Notes/Salt of the sea.md", patch=True)
    assert told["path"] == "Notes/Salt of the sea.md"
    last = told["events"][-1]
    assert (last["what"], last["subject"], last["source"]) == ("commit", "Mine now", kept.path)
    assert "+mine" in last["diff"]
    made = next(one for one in told["events"] if one["what"] == "create")
    assert "+# Salt" in made["diff"]
    moved.unlink()
    commit(world, "Gone", last["at"] + 2000)
    world.run()
    assert [one["subject"] for one in log(world, "Notes/Salt of the sea.md")["events"]] == [
        "Capture",
        "Mine now",
        "Gone",
    ]
    assert ("create", "claude") in whats(log(world, kept.id))


@pytest.mark.parametrize("written_first", [False, True], ids=["moved first", "written at the new place first"])
def test_a_manual_move_of_an_entity_is_one_event(world, written_first):
    with by(tool="create_entities"):
        path = space(world).nodes.create([NewNode("Zoe", "person")])[0].path
    new = "Captures/default/Entities/Ada.md"
    world.run()
    (world.vault / path).rename(world.vault / new)
    world.run()
    if not written_first:
        world.app.opened.unlogged_changes.log_hand_edits()
    with by(tool="add_observations"):
        space(world).nodes.add_observations([("Ada", ["one"])])
    for _ in range(2):  # before it is logged that the file left its old place, and after
        events = [(one["what"], one["source"], one["path"]) for one in log(world, "Ada")["events"]]
        assert events == [("create", "", path), ("moved", path, new), ("update", "", new)]
        world.app.opened.unlogged_changes.log_hand_edits()
    (world.vault / new).rename(world.vault / path)  # and back
    world.run()
    world.app.opened.unlogged_changes.log_hand_edits()
    assert [(one["what"], one["source"], one["path"]) for one in log(world, "Zoe")["events"]] == [
        *events,
        ("moved", new, path),
    ]
    (world.vault / path).unlink()
    world.run()
    world.app.opened.unlogged_changes.log_hand_edits()
    assert [one["what"] for one in log(world, path)["events"]] == ["create", "moved", "update", "moved", "delete"]


def test_what_was_taken_back_is_marked_and_the_newest_are_shown(world):
    kept = capture(world, "one")
    update(world, kept.id, "two")
    call = undo(world, kept.id)["undo"]
    told = log(world, kept.id)
    assert [(one["what"], one["undone"]) for one in told["events"]] == [
        ("create", False),
        ("update", True),
        ("update", False),
    ]
    assert told["events"][-1]["request"] == call
    short = log(world, kept.path, limit=1)
    assert (short["events"], short["more"]) == (told["events"][-1:], 2)
    with pytest.raises(NotFound):
        log(world, "nowhere.md")
    with pytest.raises(InvalidArgument):
        log(world, kept.id, limit=-1)


def test_a_text_that_nobody_keeps_has_no_differences(world):
    kept = capture(world, "one")
    update(world, kept.id, "two")
    update(world, kept.id, "three")
    shutil.rmtree(world.state / "past")
    diffs = [one["diff"] for one in log(world, kept.id, patch=True)["events"]]
    assert diffs == [None, None, None]


def test_the_text_before_an_entry_is_read_back(world):
    kept = capture(world, "# Salt\n\none\n")
    update(world, kept.id, "# Salt\n\ntwo\n")
    created, updated = log(world, kept.id)["events"]
    assert world.app.services.history.text_before(kept.id, updated["entry"]) == (
        kept.path,
        world.app.services.history.overwritten.read(created["after"]),
    )
    answer = world.app.operations["log.before"]({"id": kept.id, "entry": updated["entry"]}, lambda _: None)
    assert answer["path"] == kept.path
    assert answer["content"].endswith("one\n")


def test_a_text_that_never_was_is_not_found(world):
    kept, other = capture(world, "# Salt\n\none\n"), capture(world, "# Sugar\n\none\n")
    (created,) = log(world, kept.id)["events"]
    for id, entry, text in (
        (kept.id, created["entry"], "the note was created then"),
        (other.id, created["entry"], "no entry"),
        (kept.id, 999, "no entry"),
    ):
        with pytest.raises(NotFound, match=text):
            world.app.services.history.text_before(id, entry)


def test_an_entry_shows_its_lines_also_after_memex_added_to_them(world):
    kept = capture(world, "# Salt\n\none line\n")
    with acting_as(Author("daemon", "review")):
        raw, _ = world.app.opened.vault.read(kept.path)
        world.app.opened.vault.replace(kept.path, raw + b"\nadded\n", digest=hashlib.sha256(raw).hexdigest())
    world.run()
    update(world, kept.id, "# Salt\n\ntwo lines\n")
    entries = world.app.operations["audit.list"]({}, lambda _: None)
    shown = [world.app.operations["audit.show"]({"entry": entry["seq"]}, lambda _: None) for entry in entries]
    assert [entry["additions"] for entry in shown] == [["review"], [], []]
    assert {"+one line", "+added"} <= set(shown[0]["diff"])
    assert shown[1]["diff"] is None
    assert {"-one line", "+two lines"} <= set(shown[2]["diff"])
    events = log(world, kept.id, patch=True)["events"]
    assert [(event["diff"], event["additions"]) for event in events] == [
        (entry["diff"], entry["additions"]) for entry in shown
    ]
    assert [event["restorable"] for event in events] == [False, True, False]
    assert [entry["never_kept"] for entry in [*shown, *events]] == [False, True, False] * 2


def test_a_note_that_a_person_deleted_has_no_event_at_a_made_up_time(world, memex):
    kept = capture(world, "# Salt\n")
    (world.vault / kept.path).unlink()
    world.run()
    assert [event["what"] for event in log(world, kept.id)["events"]] == ["create", "removed"]
    assert memex("log", kept.id)[1].splitlines()[1].endswith("  deleted outside Memex after this time")


def test_a_path_is_data_for_git(world):
    names = ["--all.md", ":(top)x.md", "a*b.md", "line\nbreak.md", "- - ü 会議.md", "'\"$(x).md"]
    for name in names:
        world.write(name, f"{name} is what it says\n")
    world.write("plain.md", "x")
    commit(world, "\1:100644 100644 a b M\n\n-- x", 10**12)
    for name in names:
        found = list_commits(world.app.opened.repo, name)
        assert [one.path for one in found] == ([] if "\n" in name else [name]), name
    assert len(list_commits(world.app.opened.repo, "plain.md")) == 1
    assert list_commits(world.app.opened.repo, "a?b.md") == []


def test_a_note_that_only_a_person_wrote_is_not_called_missing(world):
    world.write("Plan.md", "# Plan\n")
    world.run()
    with pytest.raises(NotFound, match=r"no change of Plan\.md is recorded"):
        log(world, "Plan")


def test_without_git_there_is_the_log_alone(tmp_path):
    world = World(tmp_path)
    try:
        kept = capture(world, "one")
        assert whats(log(world, kept.id)) == [("create", "claude")]
    finally:
        world.close()


# The commands


@pytest.fixture
def memex(world, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(world.vault.parent))
    options = ["--vault", str(world.vault), "--state", str(world.state)]

    def run(*words):
        number = run_command([*words, *options])
        told = capsys.readouterr()
        return number, told.out, told.err

    with answering(world):
        yield run


def test_the_commands_tell_and_take_back(world, memex):
    kept, other = capture(world, "# One\n\nfirst\n"), capture(world, "# Two\n\x1b[31m red")
    update(world, kept.id, "# One\n\nsecond\n")
    delete(world, other.id, key="codex")
    number, out, _ = memex("log", "-p", kept.id)
    assert number == 0
    assert "-first" in out
    assert "+second" in out
    assert "created" in out
    assert "\x1b" not in memex("log", "-p", other.path)[1]
    number, out, _ = memex("undo", "--since", "1h", "--key", "codex", "--dry-run")
    assert (number, "brought back" in out, "nothing was changed" in out) == (0, True, True)
    number, out, _ = memex("undo", "--yes", "--since", "1h", "--key", "codex")
    assert (number, "brought back" in out) == (0, True)
    nothing = "nothing to undo: no write by an agent matches, or all are undone already\n"
    assert memex("undo", "--yes", "--since", "1h", "--key", "codex")[1] == nothing
    again = out.rpartition(" undo ")[2].strip()
    assert memex("undo", "--yes", again)[0] == 0
    assert not (world.vault / other.path).exists()
    world.write(kept.path, "mine")
    number, out, _ = memex("undo", "--yes", kept.id)
    assert (number, "left alone: 1" in out) == (5, True)
    assert memex("undo", "--yes", "--since", "1m", "--workspace", "nowhere")[0] == 4
    (world.vault / "Captures/empty").mkdir()
    assert memex("undo", "--yes", "--since", "1m", "--workspace", "empty")[1] == nothing
    assert memex("undo", "--yes", "nothing-of-that-name")[0] == 4
    number, _, err = memex("undo", "--yes", "--since", "1h", "--key", "nobody")
    assert (number, "no key named 'nobody'" in err, "codex" in err) == (4, True, True)
    assert (
        memex("undo")[0] == memex("undo", kept.id, "--since", "1h")[0] == memex("undo", kept.id, "--key", "x")[0] == 2
    )


def test_a_path_that_is_no_unicode_is_known_to_git_alone(world, memex):
    path = "caf\udce9.md"
    for words in (["log"], ["undo", "--yes"], ["unpromote"]):
        assert memex(*words, path)[0] == 4
    (world.vault / path).write_text("Latin 1\n")
    world.git("add", "-A")
    world.git("commit", "-qm", "by hand")
    assert "by hand" in memex("log", path)[1]


def test_it_asks_before_it_takes_many_back(world, memex, monkeypatch):
    for text in ("one", "two"):
        capture(world, text)
    import io

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    number, _, err = memex("undo", "--since", "1h")
    assert number == 130
    assert "in 2 files?" in err
    assert len(space(world).recent()) == 2
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert memex("undo", "--since", "1h")[0] == 0
    assert space(world).recent() == []


def test_an_undo_is_committed_like_any_write(world):
    capture(world, "one")
    assert world.app.services.commits.flush() == 1
    undo(world)
    assert world.app.services.commits.flush() == 1
    assert world.git("ls-files") == ""
    assert world.git("status", "--porcelain") == ""


def test_a_promotion_is_left_to_its_own_way_back(world):
    kept = capture(world, "one")
    (told,) = world.app.operations["promote"]({"ids": [kept.id], "to": "Notes"}, lambda _: None)["promoted"]
    with pytest.raises(Conflict, match="memex unpromote"):
        undo(world, kept.id)
    assert [one["reason"] for one in undo(world)["skipped"]] == [PROMOTED]
    assert (world.vault / told["target"]).exists()
    assert ("create", "claude") in whats(log(world, told["target"]))
    world.app.operations["unpromote"]({"ids": [kept.id]}, lambda _: None)
    with pytest.raises(Conflict, match=r"`unpromote`.*: memex promote promotes the capture again"):
        undo(world, kept.id)
    world.app.operations["review.dismiss"]({"ids": [kept.id]}, lambda _: None)
    with pytest.raises(Conflict, match="memex unarchive"):
        undo(world, kept.id)
    world.app.operations["unarchive"]({"ids": [kept.id]}, lambda _: None)
    with pytest.raises(Conflict, match=r"`unarchive`.*: memex review dismiss archives the capture again"):
        undo(world, kept.id)


def test_a_promotion_is_one_event_that_says_who_wanted_it(world, memex):
    world.git("config", "user.name", "Ann")
    world.git("config", "user.email", "ann@example.org")
    kept = capture(world, "# One\n\ntext of some lines\n")
    world.app.services.commits.flush()
    (told,) = world.app.operations["promote"]({"ids": [kept.id], "to": "Notes"}, lambda _: None)["promoted"]
    wanted = {("create", "claude"), ("commit", "claude"), ("promote", "Ann")}
    events = log(world, kept.id, patch=True)["events"]
    assert set(whats({"events": events})) == wanted
    assert len(events) == 3
    last = next(one for one in events if one["what"] == "promote")
    assert (last["source"], last["path"], last["commit"]) == (told["source"], told["target"], told["commit"])
    assert any(line.startswith("+promoted_at:") for line in last["diff"])
    line = f"promoted by Ann  {told['source']} → {told['target']}  commit {told['commit'][:10]}"
    assert line in memex("log", told["target"])[1]
    world.app.operations["unpromote"]({"ids": [kept.id]}, lambda _: None)
    assert set(whats(log(world, kept.id))) == {*wanted, ("unpromote", "Ann")}
    world.write(kept.path, (world.vault / kept.path).read_bytes() + b"mine")
    assert ("edit", "file") in whats(log(world, kept.id))
    world.run()
    (made,) = world.app.operations["review.dismiss"]({"ids": [kept.id]}, lambda _: None)["archived"]
    told = log(world, kept.id)
    assert {("edit", "file"), ("dismiss", "Ann")} <= set(whats(told))
    assert told["path"] == made["target"]


def event(at, what, name, before="", after=""):
    return Event(at, what, "Note.md", commit=name if what == "commit" else "", before=before, after=after)


def test_what_happened_within_a_second_of_git_is_told_in_its_order():
    made = event(1_100, "create", "", "", "one")
    changed = event(1_400, "update", "", "one", "two")
    again = event(1_700, "update", "", "two", "three")
    first, second = event(1_000, "commit", "c1", "", "blob1"), event(1_000, "commit", "c2", "blob1", "blob2")
    third = event(1_000, "commit", "c3", "blob2", "blobX")  # of a text that nobody logged
    held = {"blob1": "one", "blob2": "two", "blobX": "other", "": ""}
    told = merge_events([made, changed, again], [first, second, third], held.get)
    assert told == [made, first, changed, second, again, third]
    assert merge_events([], [first, second, third], held.get) == [first, second, third]


def test_a_commit_of_what_was_there_before_stands_before_the_change():
    changed = event(1_400, "update", "", "one", "two")
    kept = event(1_000, "commit", "c1", "", "blob1")
    assert merge_events([changed], [kept], {"blob1": "one"}.get) == [kept, changed]


def test_commits_of_one_second_are_told_in_the_order_of_git(world):
    (world.vault / "Note.md").write_text("a\n")
    at = 1_700_000_000_000
    commit(world, "first", at)
    (world.vault / "Note.md").write_text("a\nb\n")
    commit(world, "second", at)
    (world.vault / "Note.md").write_text("a\nb\nc\n")
    commit(world, "third", at)
    assert [one["subject"] for one in log(world, "Note.md")["events"]] == ["first", "second", "third"]


@pytest.mark.parametrize(
    ("operation", "number"),
    [
        ("audit.show", "entry"),
        ("audit.list", "before"),
        ("audit.prune", "before"),
        ("undo", "since"),
        ("node.list", "days"),
    ],
)
def test_a_number_of_twenty_digits_is_refused_as_too_large(world, operation, number):
    with pytest.raises(InvalidArgument, match="too large"):
        world.app.operations[operation]({number: 10**20 - 1}, lambda _: None)
