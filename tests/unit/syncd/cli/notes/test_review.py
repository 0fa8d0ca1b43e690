"""The commands for what waits, on a real vault and at a real terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress

import pytest

from index.names import fold
from syncd.cli.main import run_command
from syncd.cli.notes.review_dialog import format_capture
from syncd.promotion.promoted_note import PromotionRule
from syncd.settings.automation import PromoteSettings
from tests.support.paths import ROOT
from tests.support.world import World, answering, until

KEYS = r"\[\?\]: "
SOUP = "Simmer leeks and potatoes in vegetable stock until soft, then blend the soup."


@pytest.fixture
def world(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("MEMEX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "state").mkdir(mode=0o700)
    world = World(tmp_path)
    for name in ("Leek soup", "Onion soup", "Pea soup"):
        world.write(f"Recipes/{name}.md", f"---\ntags: [recipe]\n---\n{SOUP} {name}.\n")
    for number, name in enumerate(("First", "Second", "Third", "Fourth"), 1):
        front = f"id: {name.lower()}\ncreated_at: 2026-11-0{number}T10:00:00.000Z"
        world.write(f"Captures/default/{name}.md", f"---\n{front}\n---\n{SOUP} {name}.\n")
    world.run()
    world.app.services.review.run()
    monkeypatch.setenv("MEMEX_VAULT", str(world.vault))
    monkeypatch.setenv("MEMEX_STATE", str(world.state))
    with answering(world):
        yield world


def said(capfd, *words, fails=0):
    capfd.readouterr()
    assert run_command(list(words)) == fails, capfd.readouterr().err
    return capfd.readouterr().out


def test_hidden_characters_are_named_and_shown_as_escapes(world, capfd):
    front = "id: fifth\ncreated_at: 2026-11-05T10:00:00.000Z"
    world.write("Captures/default/Fifth.md", f"---\n{front}\n---\nA soup \u202eof \x1b[2Jpeas\U000e0041.\n")
    world.run()
    world.app.services.review.run()
    written = (world.vault / "Captures/default/Fifth.md").read_text("utf-8")
    assert "hidden_text:\n" in written
    assert [kind in written for kind in ("- ansi", "- bidi", "- tag")] == [True] * 3
    assert written.endswith("A soup \u202eof \x1b[2Jpeas\U000e0041.\n")
    told = json.loads(said(capfd, "review", "--json"))["waiting"]
    assert [capture["suspicious"] for capture in told] == [[], [], [], [], ["ansi", "bidi", "tag"]]
    line = next(line for line in said(capfd, "review").splitlines() if line.startswith("fifth"))
    assert "hidden text" in line
    shown = said(capfd, "search", "soup of peas", "--limit", "20")
    assert not {"\u202e", "\x1b", "\U000e0041"} & set(shown)
    assert "\\u{202e}" in shown
    raw = said(capfd, "search", "soup of peas", "--limit", "20", "--json")
    assert "A soup \u202eof" in raw, "what a script reads is the text as it is"


def test_where_nobody_sits_at_a_terminal_it_is_a_list(world, capfd):
    assert said(capfd, "review", "--limit", "1").splitlines()[-1] == "… and 3 more; to list more: --limit"
    text = said(capfd, "review")
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["first", "second", "third", "fourth"]
    assert "Recipes" in text
    told = json.loads(said(capfd, "review", "--json"))
    assert told["total"] == 4
    first = told["waiting"][0]
    assert (first["id"], first["suggested_folder"], first["promote"]) == ("first", "Recipes", False)
    assert first["suggested_similar"]
    (world.vault / "Captures/other").mkdir()
    assert json.loads(said(capfd, "review", "--json", "--workspace", "other"))["waiting"] == []
    assert run_command(["review", "--workspace", "nope"]) == 4
    assert "no workspace 'nope'" in capfd.readouterr().err


def test_the_list_marks_a_capture_that_proposes_a_change_of_a_note(world, capfd):
    world.write("Captures/default/Change.md", "---\nid: fifth\ntype: change\n---\nA change.\n")
    world.run()
    lines = {line.split()[0]: line.split() for line in said(capfd, "review").splitlines()}
    assert "change" in lines["fifth"]
    assert "change" not in lines["first"]


def test_code_that_obsidian_may_run_is_told_before_the_note_is_opened(world, capfd):
    front = "id: fifth\ncreated_at: 2026-11-05T10:00:00.000Z"
    world.write("Captures/default/Fifth.md", f"---\n{front}\n---\n{SOUP}\n\n```js-engine\nx\n```\n[a](file:b)\n")
    world.run()
    told = json.loads(said(capfd, "review", "--json"))["waiting"]
    assert [capture["runs"] for capture in told] == [[], [], [], [], ["JS Engine"]]
    assert [capture["unsafe_links"] for capture in told] == [[], [], [], [], ["file"]]
    assert "runs code, unsafe links" in said(capfd, "review").splitlines()[-1]
    shown = format_capture({**told[-1], "content": "x", "goal": None, "similar": []}, "1 of 1")
    assert "holds code that Obsidian may run: JS Engine" in shown
    assert "links that may open files or programs: file" in shown


def test_scripts_decide_by_ids(world, capfd):
    done = json.loads(said(capfd, "review", "approve", "first", "--json"))
    assert [one["target"] for one in done["promoted"]] == ["Recipes/First.md"]
    done = json.loads(said(capfd, "review", "dismiss", "second", "Captures/default/Third.md", "--json"))
    assert [one["target"] for one in done["archived"]] == [
        f"Captures/Archive/default/{name}.md" for name in ("Second", "Third")
    ]
    assert "Captures/Archive/default/Second.md" in said(capfd, "unarchive", "--limit", "10000")
    assert len(json.loads(said(capfd, "unarchive", "--limit", "1", "--json"))) == 1
    said(capfd, "unarchive", "second")
    assert {one["id"] for one in json.loads(said(capfd, "review", "--json"))["waiting"]} == {"second", "fourth"}
    said(capfd, "review", "dismiss", "nobody", fails=4)
    assert "2 captures wait for your decision" in said(capfd, "status")


def test_approve_reports_the_links_as_promote_does(world, capfd):
    world.write("Menu.md", "[[Captures/default/First]]\n\n```dataview\nLIST FROM [[Captures/default/First]]\n```\n")
    world.run()
    assert said(capfd, "review", "approve", "first", "--to", "Kitchen").splitlines() == [
        "Captures/default/First.md → Kitchen/First.md",
        "  links kept in 1 other file",
        "  change this manually in Menu.md: a Dataview query",
    ]


class Terminal:
    """A person at `memex review`."""

    def __init__(self, editor: str, *words: str, **more: str) -> None:
        environ = os.environ | {"PYTHONPATH": str(ROOT), "EDITOR": editor, "TERM": "xterm", "NO_COLOR": "1", **more}
        self._end, follower = pty.openpty()
        command = [sys.executable, "-m", "syncd.cli", "review", *words]
        self._running = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environ)
        os.close(follower)
        self._heard = ""

    def prompted(self, words: str = KEYS) -> str:
        """What is told until these words."""
        while not re.search(words, self._heard):
            self._heard += os.read(self._end, 65_536).decode()
        told, self._heard = self._heard, ""
        return told

    def pressed(self, key: str, words: str = KEYS) -> str:
        """What is told once this key was pressed."""
        os.write(self._end, key.encode())
        return self.prompted(words)

    def typed(self, line: str, words: str = KEYS) -> str:
        """What is told once this line was typed."""
        return self.pressed(f"{line}\n", words)

    def ended(self, key: str = "q") -> tuple[int, str]:
        """The exit code after this key, and what was told."""
        with suppress(OSError):  # the terminal has ended
            self.pressed(key, "(?!)")
        os.close(self._end)
        return self._running.wait(30), self._heard


def script(tmp_path, *lines):
    """An editor that does this to the file."""
    editor = tmp_path / "editor"
    editor.write_text("\n".join(["#!/bin/sh", *lines]))
    editor.chmod(0o755)
    return str(editor)


def test_a_person_goes_through_them_by_single_keys(world, tmp_path):
    terminal = Terminal(script(tmp_path, 'echo Edited. >> "$1"'))
    told = terminal.prompted()
    assert "1 of 4: First" in told
    assert "folder: Recipes" in told
    assert "Leek soup.md" in told
    assert "→ Recipes/First.md" in (told := terminal.pressed("a"))
    assert "2 of 4, 1 approved: Second" in told
    assert "Edited." in terminal.pressed("e")
    terminal.pressed("f", r"number.*: ")
    assert "→ Kitchen/Second.md" in terminal.typed("Kitchen")
    assert "→ Captures/Archive/default/Third.md" in (told := terminal.pressed("d"))
    assert "4 of 4, 2 approved, 1 dismissed: Fourth" in told
    code, told = terminal.ended()
    assert (code, "2 approved, 1 dismissed, 1 left" in told) == (0, True)
    until(lambda: (world.vault / "Kitchen/Second.md").is_file())
    assert "Edited." in (world.vault / "Kitchen/Second.md").read_text()
    assert (world.vault / "Captures/default/Fourth.md").is_file()


def test_each_step_can_be_taken_back_and_an_unknown_key_says_so(world):
    terminal = Terminal("false")
    terminal.prompted()
    assert "there is no step to undo" in terminal.pressed("u")
    told = terminal.pressed("x")
    assert "'x' does nothing here" in told
    assert "1 of 4" not in told, "the card is not shown again"
    assert "undo the last step" in terminal.pressed("?")
    terminal.pressed("a")
    terminal.pressed("d")
    terminal.pressed("s")
    assert "3 of 4, 1 approved, 1 dismissed: Third" in terminal.pressed("u")
    assert "← Captures/default/Second.md" in (told := terminal.pressed("u"))
    assert "2 of 4, 1 approved: Second" in told
    assert "← Captures/default/First.md" in (told := terminal.pressed("u"))
    assert "1 of 4: First" in told
    assert terminal.ended()[0] == 0
    assert sorted(file.name for file in (world.vault / "Captures/default").glob("*.md")) == [
        "First.md", "Fourth.md", "Second.md", "Third.md",
    ]  # fmt: skip


def test_a_slip_neither_ends_the_round_nor_makes_a_folder(world):
    terminal = Terminal("false")
    terminal.prompted()
    assert "1 of 4: First" in (told := terminal.pressed("e"))
    assert "EDITOR" in told
    terminal.pressed("f", r"number.*: ")
    terminal.typed("7", r"y/N.*: ")
    terminal.typed("n", r"number.*: ")
    assert "→ Recipes/First.md" in terminal.typed("1")
    assert terminal.ended()[0] == 0
    assert not (world.vault / "7").exists()


def test_a_terminal_without_single_keys_takes_lines(world):
    terminal = Terminal("false", TERM="dumb")
    terminal.prompted()
    assert "→ Recipes/First.md" in terminal.typed("a")
    assert terminal.ended("q\n")[0] == 0


def test_the_state_in_which_the_file_is_saved_is_the_wish(world, tmp_path):
    edit = script(
        tmp_path, 'sed -i -e "s/^keep first/a first/" -e "s/^keep third/dismiss third/" -e "/^keep fourth/d" "$1"'
    )
    code, told = Terminal(edit, "--editor").ended("")
    assert code == 0, told
    assert "Captures/default/First.md → Recipes/First.md" in told
    assert "Captures/default/Third.md → Captures/Archive/default/Third.md" in told
    assert (world.vault / "Captures/default/Second.md").is_file() and (
        world.vault / "Captures/default/Fourth.md"
    ).is_file()


def test_a_capture_that_changes_while_the_file_is_open_is_not_decided(world, tmp_path):
    inbox = world.vault / "Captures/default"
    edit = script(
        tmp_path,
        f'for name in First Third; do echo Rewritten. >> "{inbox}/$name.md"; done',
        f"{sys.executable} -m syncd.cli index",
        'sed -i -e "s/^keep first/approve first/" -e "s/^keep second/approve second/" -e "s/^keep third/dismiss third/" "$1"',
    )
    code, told = Terminal(edit, "--editor").ended("")
    assert told.count("the capture changed after it was shown") == 2, told
    assert "Recipes/Second.md" in told
    assert code != 0
    assert sorted(file.name for file in inbox.glob("*.md")) == ["First.md", "Fourth.md", "Third.md"]


def test_a_capture_whose_link_a_decision_of_the_file_updates_is_decided_too(world, tmp_path):
    second = "Captures/default/Second.md"
    for path in (second, "Captures/default/Third.md"):
        world.write(path, (world.vault / path).read_text() + "See [[Captures/default/First]].\n")
    world.run()
    edit = script(
        tmp_path,
        'sed -i -e "s/^keep first.*/approve first -> A/" -e "s/^keep second.*/approve second -> B/" -e "s/^keep third/dismiss third/" "$1"',
    )
    code, told = Terminal(edit, "--editor").ended("")
    assert code == 0, told
    assert (world.vault / "A/First.md").is_file()
    assert (world.vault / "B/Second.md").is_file()
    assert not (world.vault / "Captures/default/Third.md").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "code", "words"),
    [
        (["true"], 0, "nothing was decided"),
        (['sed -i -e "s/^keep first/aprove first/" -e "s/^keep third/dismiss third/" "$1"'], 2, "nothing was changed"),
        (["exit 1"], 2, "editor"),
    ],
)
def test_a_file_that_is_left_wrong_or_unsaved_changes_nothing(world, tmp_path, lines, code, words):
    ended, told = Terminal(script(tmp_path, *lines), "--editor").ended("n\n")
    assert ended == code, told
    assert words in told.replace("\r\n", " ")
    assert len(list((world.vault / "Captures/default").glob("*.md"))) == 4


def test_a_suggestion_that_is_kept_in_the_file_joins_the_note(world, tmp_path):
    edit = script(tmp_path, 'sed -i -e "s/^keep/approve/" -e "/^approve first/,/^$/s/^# *+/+/" "$1"')
    code, told = Terminal(edit, "--editor").ended("")
    assert code == 0, told
    assert "tags:\n  - recipe\n" in (world.vault / "Recipes/First.md").read_text()
    assert "recipe" not in (world.vault / "Recipes/Second.md").read_text()


def test_a_file_with_a_mistake_is_opened_again_as_it_was_saved(world, tmp_path):
    edit = script(
        tmp_path,
        f'if [ -e {tmp_path}/once ]; then sed -i "s/^aprove first/approve first/" "$1"',
        f'else touch {tmp_path}/once; sed -i -e "s/^keep first/aprove first/" -e "s/^keep third/dismiss third/" "$1"; fi',
    )
    code, told = Terminal(edit, "--editor").ended("y\n")
    assert code == 0, told
    assert "line 7" in told or "a line begins with" in told
    assert "Recipes/First.md" in told
    assert "Captures/Archive/default/Third.md" in told


def test_the_file_is_for_a_person_alone(world, capfd):
    said(capfd, "review", "--editor", fails=2)
    said(capfd, "review", "--editor", "--json", fails=2)


def test_where_answers_go_elsewhere_nothing_is_asked(world):
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "syncd.cli", "review"]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, check=True, stdin=follower, capture_output=True, text=True, env=environ, timeout=60)
    os.close(leader)
    os.close(follower)
    assert "Fourth" in found.stdout
    assert "[q]uit" not in found.stdout


@pytest.mark.parametrize(
    ("front", "goal", "by"),
    [
        ("promote_to: kitchen/", "Kitchen", "you"),
        ("promote_to: ../x", None, ""),
        ("tags: [soup/clear]", "Soups", "rule"),
        ("suggested_folder: Recipes", "Recipes", "suggestion"),
        ("x: 1", "Notes", "setting"),
    ],
)
def test_the_folder_that_is_shown_is_the_one_it_goes_to(tmp_path, front, goal, by):
    world = World(tmp_path, promote=PromoteSettings(rules=(PromotionRule("Soups", tag="soup"),)))
    (world.vault / "Kitchen").mkdir()
    world.write("Captures/default/X.md", f"---\nid: x\n{front}\n---\nwords\n")
    world.run()
    shown = world.app.operations["review.show"]({"id": "x"}, lambda _: None)
    (listed,) = world.app.operations["review.list"]({}, lambda _: None)["waiting"]
    planned = world.app.operations["promote"]({"ids": ["x"], "dry_run": True}, lambda _: None)
    world.close()
    assert shown["by"] == by
    assert (listed["goal"], listed["by"]) == (shown["goal"], by)
    assert fold(str(shown["goal"])) == fold(str(goal))
    if goal is None:
        assert listed["problem"] == shown["problem"] == planned["failed"][0]["error"]["message"]
    else:
        assert [(one["target"], one["chosen"]) for one in planned["planned"]] == [(f"{goal}/X.md", by)]
