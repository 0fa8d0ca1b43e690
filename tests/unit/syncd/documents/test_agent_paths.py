"""Addresses: the path of a note as agents know it."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.model import Record
from syncd.documents import agent_paths
from syncd.documents.agent_paths import (
    assign_addresses,
    bare_path,
    base_of,
    possible_stems,
    strip_number,
    texts_in_brackets,
)
from syncd.vault.path_rules import file_name

ROOT = "Captures/work/"


def note(path, title=None, *, id="00000000-x", made=0):
    blank = dict.fromkeys(Record.__dataclass_fields__)
    return replace(
        Record(**blank), id=id, path=ROOT + path, title=title or path.rpartition("/")[2][:-3], created_at=made
    )


def shown(*notes):
    return {record.path.removeprefix(ROOT): address for address, record in assign_addresses(notes, ROOT).items()}


@pytest.mark.parametrize(
    ("path", "title", "address"),
    [
        pytest.param("Rent.md", "Rent", "Rent.md", id="its own name"),
        pytest.param("Rent 2.md", "Rent", "Rent.md", id="a number, as the name was taken"),
        pytest.param("a b/Rent 12.md", "Rent", "a b/Rent.md", id="in a namespace"),
        pytest.param("Rent 2.md", "Rent 2", "Rent 2.md", id="a number that is part of the title"),
        pytest.param("Rent 2 3.md", "Rent 2", "Rent 2.md", id="both"),
        pytest.param("Rent 2.md", None, "Rent 2.md", id="a person's own file"),
        pytest.param("Rent 2.md", "Something else", "Rent.md", id="a number that the earlier title may have brought"),
        pytest.param("Rent 2 3.md", "Something else", "Rent 2.md", id="one number is added at most"),
        pytest.param("Rent.md", "Something else", "Rent.md", id="a title of another name"),
        pytest.param("a b 2.md", "a/b", "a b.md", id="a title that is no file name"),
        pytest.param("Rent 2.MD", "Rent", "Rent.MD", id="an ending in capitals"),
    ],
)
def test_an_address_leaves_out_the_number_that_a_taken_name_brought(path, title, address):
    assert shown(note(path, title)) == {path: address}


def test_the_name_of_a_title_is_formed_once_for_many_notes(monkeypatch):
    formed = []
    monkeypatch.setattr(agent_paths, "file_name", lambda title: formed.append(title) or file_name(title))
    for number in range(2, 100):
        assert strip_number(f"Zugfahrt {number}.md", "Zugfahrt", "note") == "Zugfahrt.md"
        assert strip_number(f"Zug {number}.md", f"Zug {number}", "note") == f"Zug {number}.md"
    assert formed == ["Zugfahrt"]


def test_of_two_with_one_title_the_older_has_the_plain_address():
    first = note("Rent 3.md", "Rent", id="ffffffff-1", made=1)
    second = note("Rent 2.md", "Rent", id="aaaaaaaa-2", made=2)
    third = note("Rent.md", "Rent", id="bbbbbbbb-3", made=3)
    told = {"Rent 3.md": "Rent.md", "Rent 2.md": "Rent (aaaaaaaa).md", "Rent.md": "Rent (bbbbbbbb).md"}
    assert shown(first, second, third) == shown(third, second, first) == told


NAMES = st.sampled_from(
    ["Rent", "Rent 2", "Rent 3", "Rent (00000001)", "Rent (00000001) 2", "Rent 2 2", "b/Rent", "b/Rent 2", "2", " 2"]
)
TITLES = st.sampled_from(["its own", "none", "Something else"])
IDS = st.sampled_from(["{at:08x}-0000", "A{at}B2-7F1C1C52", "user-prefs_{at}", "r{at}"])
NOTES = st.lists(st.tuples(NAMES, st.integers(0, 9), TITLES, IDS), unique_by=lambda made: made[0])


def titled(name, title):
    """The title of a note: its name without a number, none, or another one."""
    plain = re.sub(r" \d+$", "", name).rpartition("/")[2]
    return {"its own": plain, "none": None}.get(title, title)


def ids_of(notes):
    """Return everything that `Index.known_ids` knows of these notes."""
    return {id for one in notes for id in (one.id, one.id[:8])}


def test_brackets_of_a_title_are_no_addition():
    address = "Meeting (Anna) (0a1b2c3d).md"
    assert texts_in_brackets([address, "a (b) 2.pdf.md", "a(c).md", "(d).md", "(e) f.md"]) == {"Anna", "0a1b2c3d", "b"}
    assert base_of(address, {"0a1b2c3d"}) == bare_path("Meeting (Anna) 2.md", {"0a1b2c3d"}) == "Meeting (Anna)"
    assert base_of(address, ()) == "Meeting (Anna) (0a1b2c3d)"


@given(NOTES)
def test_every_note_has_an_address_and_is_found_among_those_alike(made):
    """The law; and those with one `bare` form are all that it takes to tell them apart."""
    notes = [
        note(f"{name}.md", titled(name, title), id=id.format(at=at), made=when)
        for at, (name, when, title, id) in enumerate(made)
    ]
    whole, ids = assign_addresses(notes, ROOT), ids_of(notes)
    assert sorted(record.path for record in whole.values()) == sorted(one.path for one in notes)
    for address, record in whole.items():
        alike = [one for one in notes if bare_path(one.path.removeprefix(ROOT), ids) == bare_path(address, ids)]
        assert assign_addresses(alike, ROOT).get(address) == record


@given(NOTES)
def test_a_note_is_told_from_all_others_by_those_of_its_base_whose_files_begin_like_it(made):
    notes = [
        note(f"{name}.md", titled(name, title), id=id.format(at=at), made=when)
        for at, (name, when, title, id) in enumerate(made)
    ]
    ids = ids_of(notes)
    for address, record in assign_addresses(notes, ROOT).items():
        own = base_of(address, ids)
        begins = tuple(f"{ROOT}{stem}{more}" for stem in possible_stems(own) for more in (".md", " "))
        competing = [
            one
            for one in notes
            if one.path.startswith(begins)
            and base_of(strip_number(one.path.removeprefix(ROOT), one.title, one.type), ids) == own
        ]
        assert assign_addresses(competing, ROOT).get(address) == record
