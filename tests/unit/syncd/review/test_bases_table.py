"""syncd/review/bases_table.py: the table of captures that wait, judged without Obsidian."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.review.bases_table import compose_table
from syncd.vault.location import locate
from tests.support.obsidian_bases import Base, Invalid, Note, parsed

WAITING = {
    "default/Plain.md": {"created_at": "2026-11-01"},
    "default/alpha/In a namespace.md": {"created_at": "2026-11-02", "promote": False},
    "default/Ticked.md": {"created_at": "2026-11-03", "promote": True},
    "work/Files/report.pdf.md": {"created_at": "2026-11-04", "type": "file"},
    "work/Filesystem/Notes.md": {"created_at": "2026-11-05"},
    "work/Kept back.md": {"created_at": "2026-11-06", "review": "later", "promote_problem": "there is one already"},
    "Reports2/A workspace.md": {"created_at": "2026-11-07"},
    "work/Reports/A namespace made by hand.md": {"created_at": "2026-11-08"},
    "work/Upper.MD": {"created_at": "2026-11-09"},
}
OTHERS = {
    "default/Dismissed.md": {"review": "dismissed"},
    "default/Promoted.md": {"promoted_at": "2026-11-01"},
    "default/Entities/Ada.md": {"type": "entity"},
    "default/Entities/By hand.md": {},
    "default/Elsewhere.md": {"type": "entity"},
    "default/Files/report.pdf": {},
    "Beside.md": {},
    "Reports/2026-11-20 Consolidation.md": {},
    "reports/Old.md": {},
    "Archive/default/Gone.md": {},
    "Review.base": {},
}


def notes(inbox: str) -> list[Note]:
    inside = {f"{inbox}/{path}": said for path, said in {**WAITING, **OTHERS}.items()}
    outside = {"Projects/Mine.md": {}, "Captures2/default/x.md": {}, f"x/{inbox}/default/y.md": {}, "Home.md": {}}
    return [Note(path, said) for path, said in {**inside, **outside}.items()]


@pytest.mark.parametrize("inbox", ["Captures", "Agents/Inbox", "Files", 'My "inbox"', "It's # mine: \\ ok", "受信箱"])
def test_the_views_list_what_waits_and_nothing_else(inbox):
    base = Base(compose_table(inbox))
    waiting = [f"{inbox}/{path}" for path in WAITING]
    assert base.rows("Waiting", notes(inbox)) == waiting
    assert base.rows("Recent", notes(inbox)) == waiting[::-1]
    assert base.rows("Problems", notes(inbox)) == [f"{inbox}/work/Kept back.md"]


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=20))
def test_any_name_of_an_inbox_gives_a_valid_base(name):
    base = Base(compose_table(name))
    kept = Note(f"{name}/default/x.md", {})
    assert base.rows("Waiting", [kept, Note(f"{name}x/default/x.md", {}), Note("default/x.md", {})]) == [kept.path]


def test_the_table_and_the_daemon_agree_on_what_a_capture_is():
    listed = set(Base(compose_table("Captures")).rows("Waiting", notes("Captures")))
    for note in notes("Captures"):
        where = locate(note.path, "Captures")
        if note.path.lower().endswith(".md") and where.scope == "vault":
            assert note.path not in listed
        if note.path in listed:
            assert where.scope == "captures"


def test_the_box_is_a_column_that_can_be_ticked():
    view = Base(compose_table("Captures")).tree["views"][0]
    assert (view["type"], view["order"][:2]) == ("table", ["file.name", "note.promote"])


def test_the_first_view_has_five_columns_and_the_second_the_rest():
    base = Base(compose_table("Captures"))
    names = {column: row["displayName"] for column, row in base.tree["properties"].items()}
    first, second = base.tree["views"][:2]
    assert [names[column] for column in first["order"]] == ["Note", "Promote", "Folder", "Summary", "Similar"]
    assert {"note.review", "note.promote_to", "note.suggested_folder", "note.suggested_links"} <= {*second["order"]}
    assert names.keys() == {column for view in base.tree["views"] for column in view["order"]}, (
        "each is shown somewhere"
    )


@pytest.mark.parametrize(
    ("properties", "folder"),
    [
        ({}, None),
        ({"suggested_folder": "Home"}, "Home"),
        ({"suggested_folder": "Home", "promote_to": "Garden"}, "Garden"),
    ],
)
def test_the_folder_is_the_one_that_a_person_named_else_the_suggested_one(properties, folder):
    assert Base(compose_table("Captures")).column("folder", Note("Captures/default/x.md", properties)) == folder


@pytest.mark.parametrize("warning", ["promote_problem", "hidden_text", "runnable_code", "unsafe_links"])
def test_each_warning_puts_a_capture_among_the_problems(warning):
    note = Note("Captures/default/x.md", {warning: ["something"]})
    assert Base(compose_table("Captures")).rows("Problems", [note]) == [note.path]


@pytest.mark.parametrize("text", ["a = 1", "bogus(1)", "file.foo", '"open', "note.x &&", "(note.x", "note.x.bogus()"])
def test_the_checker_finds_what_is_no_expression(text):
    with pytest.raises(Invalid):
        parsed(text)


@pytest.mark.parametrize(
    "text",
    [
        'file.hasTag("a", "b")',
        "note.x.isEmpty() && !note.y",
        'if(note.price, note.price.toFixed(2) + " €")',
        "link(file.path, file.name).asFile() == this",
        "(now() - file.ctime).days > 2 * 7 || file.links.length <= -1",
        "note.a[0].split(\"/\").containsAny('x', 'y')",
    ],
)
def test_the_checker_takes_what_is_an_expression(text):
    assert parsed(text)
