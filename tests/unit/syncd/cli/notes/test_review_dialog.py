"""syncd/cli/notes/review_dialog.py: what a person sees and what each key does; test_review.py presses them at a real terminal."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from index.errors import NotFound
from syncd.cli.notes.review_dialog import CHANGE_WIDTH, LINES, Dialog, ask_folder, format_capture

SHOWN: dict[str, Any] = {
    **dict.fromkeys(
        ["source", "tags", "problem", "suspicious", "runs", "unsafe_links", "suggested_tags", "suggested_links"]
    ),
    "title": "T",
    "content": "words",
    "goal": "Home",
    "by": "setting",
    "reason": "the setting promote.folder",
    "folders": [],
    "similar": [],
    "file": "x",
}


def seen(path):
    return {"ids": [path], "shown": {path: f"digest of {path}"}}


class Owner:
    """A daemon that does all that is asked, and records it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.gone: set[str] = set()
        self.failing: set[str] = set()
        self.changed = ""

    def __call__(self, operation, arguments):
        if operation == "review.show":
            if arguments["id"] in self.gone:
                raise NotFound("no capture waits")
            return {**SHOWN, "path": arguments["id"], "digest": f"digest of {arguments['id']}{self.changed}"}
        self.asked.append((operation, arguments))
        (id,) = arguments["ids"]
        if operation in self.failing:
            return {"failed": [{"error": {"message": "it is taken"}}], "returned": []}
        done = [{"target": f"{operation}:{id}"}]
        return {"failed": [], {"promote": "promoted", "review.dismiss": "archived"}.get(operation, "returned"): done}


def run(keys, paths=("a", "b", "c"), owner=None):
    pressed = iter(keys)
    dialog = Dialog(owner or Owner(), [{"path": path} for path in paths], lambda _: next(pressed, "q"))
    dialog.run()
    return dialog


def test_keys_decide_and_each_capture_is_asked_about_once():
    dialog = run("ads")
    assert dialog.ask.asked == [("promote", {**seen("a"), "to": None}), ("review.dismiss", seen("b"))]
    assert [step.deed for step in dialog.steps] == ["approved", "dismissed", "skipped"]


@pytest.mark.parametrize("keys", ["x", "#", "1", "é", ["\x1b[A"], "?"])
def test_a_key_that_means_nothing_changes_nothing(keys):
    dialog = run(keys)
    assert (dialog.ask.asked, dialog.number, dialog.steps) == ([], 0, [])


@pytest.mark.parametrize(
    ("entered", "taken"),
    [(["2"], ["[[B]]"]), (["9", "1, 2"], ["heron", "[[B]]"]), (["all"], ["heron", "[[B]]"]), ([""], None)],
)
def test_suggestions_are_taken_with_the_capture_that_is_approved(monkeypatch, entered, taken):
    monkeypatch.setitem(SHOWN, "suggested_tags", ["heron"])
    monkeypatch.setitem(SHOWN, "suggested_links", ["[[B]]"])
    answers = iter(entered)
    monkeypatch.setattr("click.prompt", lambda *_, **__: next(answers))
    dialog = run("taa")
    assert dialog.ask.asked == [
        ("promote", {**seen("a"), "to": None} | ({"take": taken} if taken else {})),
        ("promote", {**seen("b"), "to": None}),
    ]


def test_without_suggestions_none_are_asked_for():
    assert run("ta").ask.asked == [("promote", {**seen("a"), "to": None})]


@pytest.mark.parametrize("keys", ["\r", " ", "S"])
def test_enter_and_the_space_bar_skip(keys):
    assert run(keys).number == 1


def test_steps_are_taken_back_the_last_one_first():
    dialog = run("asduuuu")
    assert (dialog.number, dialog.steps) == (0, [])
    assert dialog.ask.asked[2:] == [
        ("unarchive", {"ids": ["review.dismiss:c"]}),
        ("unpromote", {"ids": ["promote:a"]}),
    ]
    assert [capture["path"] for capture in dialog.waiting] == ["unpromote:promote:a", "b", "unarchive:review.dismiss:c"]


def test_a_step_that_can_t_be_taken_back_stays():
    owner = Owner()
    owner.failing = {"unpromote"}
    dialog = run("au", owner=owner)
    assert (dialog.number, [step.deed for step in dialog.steps]) == (1, ["approved"])


def test_a_decision_that_fails_leaves_the_capture_where_it_is(capsys):
    owner = Owner()
    owner.failing = {"promote"}
    dialog = run("a", owner=owner)
    assert (dialog.number, dialog.steps) == (0, [])
    assert "it is taken" in capsys.readouterr().err


def test_a_capture_that_somebody_decided_on_meanwhile_is_passed_over():
    owner = Owner()
    owner.gone = {"a"}
    assert run("a", owner=owner).ask.asked == [("promote", {**seen("b"), "to": None})]


def test_a_change_is_said_to_be_applied(capsys):
    class Applying(Owner):
        def __call__(self, operation, arguments):
            answer = super().__call__(operation, arguments)
            return (
                {"failed": [], "promoted": [{"target": "Plan.md", "applied": True}]} if "promoted" in answer else answer
            )

    run("a", paths=("a",), owner=Applying())
    assert "applied to Plan.md\n" in capsys.readouterr().out


def test_an_approval_reports_what_is_left_to_do(capsys):
    class Reporting(Owner):
        def __call__(self, operation, arguments):
            answer = super().__call__(operation, arguments)
            if "promoted" in answer:
                answer["promoted"][0] |= {"lost": [["Menu.md", "./A"]], "left_out": ["Today.md"]}
            return answer

    run("a", paths=("a",), owner=Reporting())
    out = capsys.readouterr().out
    assert (
        "→ promote:a\n  broken link in Menu.md: ./A\n  not committed, because it has edits of yours: Today.md\n" in out
    )


def test_a_capture_that_changed_after_it_was_shown_is_shown_again(capsys):
    class Changing(Owner):
        def __call__(self, operation, arguments):
            if operation == "promote" and not self.changed:
                self.changed, self.failing = " after a change", {"promote"}
            elif operation == "promote":
                self.failing = set()
            return super().__call__(operation, arguments)

    dialog = run("aa", paths=("a",), owner=Changing())
    assert [arguments["shown"]["a"] for _, arguments in dialog.ask.asked] == [
        "digest of a",
        "digest of a after a change",
    ]
    assert capsys.readouterr().out.count("words") == 2
    assert [step.deed for step in dialog.steps] == ["approved"]


@pytest.mark.parametrize(
    ("goal", "typed", "folder"),
    [
        (None, "\n\nHome\n", "Home"),
        (None, "\n/\n", ""),
        ("", "\n", ""),
        ("Home", "\n", "Home"),
        ("Home", "/\n", ""),
    ],
)
def test_the_vault_itself_is_a_folder_that_is_named(goal, typed, folder):
    with CliRunner().isolation(input=typed):
        assert ask_folder({**SHOWN, "goal": goal}) == folder


CAPTURE: dict[str, Any] = {
    "title": "Roof door",
    "path": "Captures/default/Roof door.md",
    "source": "claude",
    "tags": ["roof", "door"],
    "problem": None,
    "suspicious": [],
    "runs": [],
    "unsafe_links": [],
    "content": "It sticks.\n",
    "goal": "Home",
    "by": "setting",
    "reason": "the setting promote.folder",
    "folders": [],
    "suggested_tags": None,
    "suggested_links": None,
    "similar": [{"kind": "extends", "path": "Home/Doors.md", "excerpt": "The doors of the house."}],
}


def test_a_card_has_the_text_and_what_is_suggested():
    assert format_capture(CAPTURE, "1 of 2").splitlines() == [
        "── 1 of 2: Roof door",
        "   Captures/default/Roof door.md",
        "   from: claude",
        "   tags: roof, door",
        "",
        "  It sticks.",
        "",
        "   folder: Home  (the setting promote.folder)",
        "   extends: Home/Doors.md",
        "      The doors of the house.",
    ]


def test_a_long_text_is_cut_and_nothing_in_it_steers_the_terminal():
    shown = format_capture({**CAPTURE, "content": "\x1b[2J\n" * (LINES + 5)}, "1 of 1")
    assert "\x1b" not in shown
    assert "… 5 more lines: e" in shown


def test_a_long_line_of_a_change_says_how_much_of_it_is_not_shown():
    lines = f"@@ -1 +1,2 @@\n one\n+{'x' * CHANGE_WIDTH}yz\n"
    change = {"target": "A.md", "reason": "r", "fit": "fits", "diff": lines, "view": ""}
    shown = format_capture({**CAPTURE, "change": change}, "1 of 1")
    assert f"  +{'x' * (CHANGE_WIDTH - 1)}… 3 more characters: e\n" in shown
