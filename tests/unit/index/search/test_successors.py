"""index/search/successors.py: a link is followed in the index, whatever a search has found."""

from __future__ import annotations

import pytest

from index.catalog.catalog import Catalog
from index.document_ids import path_id
from index.model import Stat
from index.search.successors import LONGEST, Successors
from tests.support.documents import note


@pytest.fixture
def catalog(tmp_path):
    made = Catalog(tmp_path / "notes.db")
    yield made
    made.close()


def successors(catalog, links):
    """The titles of the successors of A, where each note of `links` links to the next."""
    notes = [
        note(f"Captures/{path}{'' if path.endswith('.MD') else '.md'}", "text", superseded_by=newer)
        for path, newer in links.items()
    ]
    catalog.write(upserts=[(one, Stat(1, 1, 1), 1, True) for one in notes])
    return [
        record.title
        for record in Successors(catalog).find([path_id("Captures/w/A.md")]).get(path_id("Captures/w/A.md"), ())
    ]


@pytest.mark.parametrize(
    ("links", "titles"),
    [
        pytest.param({"w/A": None}, [], id="no link"),
        pytest.param({"w/A": "B"}, [], id="a link to nothing"),
        pytest.param({"w/A": "B", "w/B": "c.md", "w/sub/C": None}, ["B", "C"], id="a chain"),
        pytest.param({"w/A": "sub/B", "w/B": None, "w/sub/B.MD": None}, ["B.MD"], id="an ending in capitals"),
        pytest.param({"w/A": "sub/B.MD", "w/B": None, "w/sub/B": None}, ["B"], id="a link with capitals"),
        pytest.param({"w/A": "B", "w/B": "C"}, ["B"], id="a chain that breaks off"),
        pytest.param({"w/A": "B", "other/B": None}, [], id="another workspace"),
        pytest.param({"w/A": "B", "w/B": "A"}, ["B"], id="a circle"),
        pytest.param({"w/A": "A"}, [], id="itself"),
    ],
)
def test_a_chain_of_links_is_followed_inside_the_workspace(catalog, links, titles):
    assert successors(catalog, links) == titles


def test_each_link_of_many_chains_is_read_once_and_a_chain_has_an_end(catalog, monkeypatch):
    count = 3 * LONGEST
    notes = [note(f"Captures/w/N{n}.md", "text", superseded_by=f"N{n + 1}") for n in range(count)]
    catalog.write(upserts=[(one, Stat(1, 1, 1), 1, True) for one in notes])
    reads, read = [], catalog.records_at
    monkeypatch.setattr(catalog, "records_at", lambda paths: reads.append(1) or read(paths))
    found = Successors(catalog).find([path_id(one.path) for one in notes])
    assert len(found) == count
    assert max(map(len, found.values())) == LONGEST
    assert len(reads) <= count
