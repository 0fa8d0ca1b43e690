"""index/catalog/note_links.py: the links of a note, and the notes that may link to it, as a real index has them."""

from __future__ import annotations

import pytest

from index.catalog.note_links import list_candidates, list_links
from tests.support.world import World


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("links"))
    world.write("A.md", "---\nrelated: '[[Property]]'\n---\n[[b|x]] and [c](c.md#H) and [[Folder/B]] and [[#Here]]\n")
    world.write("Folder/B.md", "[[Größe]]\n")
    world.write("b.md", "nothing\n")
    world.write("C.md", "`[[A]]`\n")
    world.run()
    yield world.app.opened.notes.index
    world.close()


def test_links_are_listed_in_order_those_of_properties_last(index):
    assert [(link.kind, link.target, link.subpath) for link in list_links(index.catalog, "A.md") if link.target] == [
        ("wikilink", "b", ""),
        ("markdown", "c.md", "#H"),
        ("wikilink", "Folder/B", ""),
        ("wikilink", "Property", ""),
    ]
    assert list_links(index.catalog, "Nobody.md") == []


@pytest.mark.parametrize(
    ("path", "candidates"),
    [
        ("b.md", [("A.md", "Folder/B"), ("A.md", "b")]),
        ("Other/GRÖSSE.md", [("Folder/B.md", "Größe")]),
        ("Nobody.md", []),
        ("Other/gro\u0308ße.md", [("Folder/B.md", "Größe")]),
        ("A.md", []),
        ("Other/B.MD", [("A.md", "Folder/B"), ("A.md", "b")]),
    ],
)
def test_candidates_have_the_name_in_any_case_and_form(index, path, candidates):
    assert sorted(list_candidates(index.catalog, path)) == candidates
