"""syncd/cli/notes/review_file.py: the waiting captures as a file, and what a saved file means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import InvalidArgument
from syncd.cli.notes.review_file import Decision, compose_file, parse_file

TEXTS = st.text(max_size=40)


def capture(
    id="a1",
    title="Roof door",
    summary="",
    suggested_folder=None,
    by="suggestion",
    workspace="default",
    tags=None,
    links=None,
):
    return {
        "suggested_tags": tags, "suggested_links": links,
        "id": id, "path": f"{workspace}/{id}.md", "type": "note", "workspace": workspace, "title": title, "summary": summary,
        "goal": suggested_folder, "by": by, "problem": None,
    }  # fmt: skip


def decision(id, word, folder, workspace="default"):
    return Decision(f"{workspace}/{id}.md", word, folder)


WAITING = [
    capture("a1", suggested_folder="Home"),
    capture("b2", "Heat pump", "The filter is due."),
    capture("c3", "Tax"),
]


def test_the_file_shows_title_summary_and_folder():
    text = compose_file(WAITING)
    assert "\nkeep a1  Roof door  -> Home\n" in text
    assert "\nkeep b2  Heat pump\n#   The filter is due.\n" in text
    assert text.startswith("# 3 captures wait")


def test_the_file_says_why_a_capture_has_no_folder():
    waiting = [capture() | {"problem": "its `promote_to` is not a folder:\nkeep a1"}]
    assert "\nkeep a1  Roof door\n#   problem: its `promote_to` is not a folder: keep a1\n" in compose_file(waiting)


def test_the_file_says_which_captures_propose_a_change_of_a_note():
    waiting = [capture("a1"), capture("b2", "Tax") | {"type": "change"}]
    text = compose_file(waiting)
    assert "\nkeep b2  Tax\n#   an agent proposes a change of a note: " in text
    assert text.count("proposes a change") == 1
    assert parse_file(text, waiting) == []


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS | st.none()), max_size=5))
def test_a_file_that_nobody_changed_decides_nothing_whatever_the_captures_say(captures):
    waiting = [capture(f"id{n}", title, summary, folder) for n, (title, summary, folder) in enumerate(captures)]
    assert parse_file(compose_file(waiting), waiting) == []


@pytest.mark.parametrize(
    ("line", "wish"),
    [
        ("approve a1  Roof door  -> Home", decision("a1", "approve", "Home")),
        ("a a1", decision("a1", "approve", None)),
        ("APPROVE a1 x -> Deep/Folder", decision("a1", "approve", "Deep/Folder")),
        ("approve a1  Roof door  -> /", decision("a1", "approve", "")),
        ("approve a1  Roof door  ->", decision("a1", "approve", None)),
        ("d a1 whatever stands here", decision("a1", "dismiss", None)),
        ("  dismiss a1", decision("a1", "dismiss", None)),
    ],
)
def test_a_changed_line_is_a_decision(line, wish):
    assert parse_file(f"# a comment\n\n{line}\nkeep b2\n", WAITING) == [wish]


SUGGESTING = [
    capture("a1", tags=["heron", "two  words"], links=["[[A]]"]),
    capture("b2", "Heat pump", tags=["\u202eheron\napprove a1"]),
]


def test_the_file_offers_suggestions_and_takes_none_by_itself():
    text = compose_file(SUGGESTING)
    assert "\nkeep a1  Roof door\n#   + heron\n#   + two words\n#   + [[A]]\n" in text
    assert parse_file(text.replace("\nkeep ", "\napprove "), SUGGESTING) == [
        decision("a1", "approve", None),
        decision("b2", "approve", None),
    ]


def test_a_suggestion_without_its_sign_is_taken():
    text = compose_file(SUGGESTING).replace("\nkeep ", "\napprove ").replace("#   + ", "  + ")
    assert [wish.taken for wish in parse_file(text, SUGGESTING)] == [
        ("heron", "two  words", "[[A]]"),
        ("\u202eheron\napprove a1",),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("+ heron", "line 1: the capture above has no suggestion 'heron'"),
        ("approve b2\n+ [[A]]", "line 2: the capture above has no suggestion '[[A]]'"),
        ("keep a1\n+ heron", "line 2: only a capture with approve gets 'heron'"),
        ("approve zz\n+ heron", "line 2: the capture above has no suggestion"),
    ],
)
def test_a_suggestion_that_can_not_be_taken_is_a_mistake(text, words):
    with pytest.raises(InvalidArgument, match="nothing was changed") as refused:
        parse_file(text, SUGGESTING)
    assert words in refused.value.message


def test_a_deleted_line_keeps_its_capture():
    assert parse_file("", WAITING) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("aprove a1 Roof", "line 1: a line begins with keep, approve or dismiss, and not with 'aprove a1 Roof'"),
        ("keep b2\napprove zz Roof", "line 2: no capture in this file has the id 'zz'"),
        ("approve a1\ndismiss a1", "line 2: the capture a1 has a line above already"),
        ("approve", "line 1: a line begins with"),
    ],
)
def test_a_mistake_is_named_by_its_line_and_decides_nothing(text, words):
    with pytest.raises(InvalidArgument, match="nothing was changed") as refused:
        parse_file(f"{text}\n", WAITING)
    assert words in refused.value.message


def test_a_folder_that_a_rule_chose_is_left_to_the_rule():
    waiting = [capture("a1", suggested_folder="Soups", by="rule")]
    text = compose_file(waiting)
    assert "keep a1  Roof door  -> Soups\n" in text
    assert parse_file(text.replace("keep a1", "approve a1"), waiting) == [decision("a1", "approve", None)]
    changed = text.replace("keep a1", "approve a1").replace("-> Soups", "-> Home")
    assert parse_file(changed, waiting) == [decision("a1", "approve", "Home")]


FOLDERS = [
    pytest.param("A -> B/C", id="an arrow"),
    pytest.param("A  B/C   D", id="several blanks"),
    pytest.param("/".join(["A long name of a folder"] * 20), id="a long path"),
    pytest.param("A\u202eB\tC", id="hidden characters"),
]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_is_taken_as_it_is(folder):
    waiting = [capture("a1", "Roof -> door", suggested_folder=folder)]
    text = compose_file(waiting).replace("keep a1", "approve a1")
    assert parse_file(text, waiting) == [decision("a1", "approve", folder)]


@pytest.mark.parametrize("folder", FOLDERS[:3])
def test_one_part_of_a_folder_can_be_changed(folder):
    waiting = [capture("a1", "Roof -> door", suggested_folder=folder)]
    text = compose_file(waiting).replace("keep a1", "approve a1").replace(folder, f"{folder}/New")
    assert parse_file(text, waiting) == [decision("a1", "approve", f"{folder}/New")]


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=3))
def test_what_is_approved_goes_where_the_capture_says(captures):
    waiting = [capture(f"id{n}", title, suggested_folder=folder) for n, (title, folder) in enumerate(captures)]
    text = compose_file(waiting).replace("\nkeep ", "\napprove ")
    wished = ["" if folder == "/" else folder or None for _, folder in captures]
    assert [wish.folder for wish in parse_file(text, waiting)] == wished


def test_one_id_in_two_workspaces_is_told_apart():
    waiting = [capture("a1", "One"), capture("a1", "Two", workspace="at work"), capture("b2", "Three")]
    text = compose_file(waiting)
    assert [line for line in text.splitlines() if line.startswith("keep")] == [
        "keep a1  One",
        "keep a1/2  Two",
        "keep b2  Three",
    ]
    text = text.replace("keep a1/2", "dismiss a1/2").replace("keep b2", "approve b2")
    assert parse_file(text, waiting) == [decision("a1", "dismiss", None, "at work"), decision("b2", "approve", None)]
