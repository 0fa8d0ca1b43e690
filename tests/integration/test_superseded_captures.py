"""A capture that a newer one replaces: it is still found, behind those that say as much, and answers say that it is stale."""

from __future__ import annotations

import pytest

from index.model import Hit
from index.search.fusion import demote_superseded
from tests.support.live_server import running
from tests.support.mcp_agent import member
from tests.support.parsed_notes import parse
from tests.support.world import until


@pytest.fixture(scope="module")
def rim(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rim")) as served:
        yield served


def mark(file, link):
    """What a person, or an accepted proposal, writes into a note."""
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("\n---\n", f"\nsuperseded_by: {link}\n---\n", 1), encoding="utf-8")


def test_a_replaced_note_says_so_in_every_answer_and_gives_way(rim):
    space = rim.space()
    with member(space, "2026-07-28") as one:
        old = space.capture("The heron gauge listens on port 8123 at the weir")["id"]
        new = space.capture("The heron gauge listens on port 9999 at the weir now")["id"]
        query = "heron gauge listens on port 8123 at the weir"
        found = one.listed("semantic_search", query=query)
        assert [hit["document_id"] for hit in found] == [old, new]
        assert not any("stale" in hit or "superseded_by" in hit for hit in found)
        mark(space.file_of(old), f'"[[{space.file_of(new).stem}]]"')
        until(lambda: one.good("get_thought", id=old).get("stale"))
        found = one.listed("semantic_search", query=query)
        assert [hit["document_id"] for hit in found] == [new, old]
        assert (found[1]["stale"], found[1]["superseded_by"]) == (True, new)
        for tool, field, where in (("kb_search", "document_id", "results"), ("memory_search", "memo_id", "items")):
            hits = {hit[field]: hit for hit in one.good(tool, query=query)[where]}
            assert (hits[old]["stale"], hits[old]["superseded_by"]) == (True, new)
            assert "stale" not in hits[new]
        assert "superseded_by" not in one.good("get_thought", id=old)["metadata"]


def test_a_link_that_leads_out_of_the_workspace_names_nothing(rim):
    own, other = rim.space(), rim.space()
    with member(own, "2026-07-28") as one:
        theirs = other.capture("A zebra of the other workspace")["id"]
        mine = own.capture("A zebra of mine")["id"]
        mark(own.file_of(mine), f'"[[{other.file_of(theirs).stem}]]"')
        until(lambda: one.good("get_thought", id=mine).get("stale"))
        assert "superseded_by" not in one.good("get_thought", id=mine)
        assert theirs not in str(one.good("semantic_search", query="zebra"))


def test_no_agent_sets_it(rim):
    with member(rim.space(), "2026-07-28") as one:
        code, error = one.ask("capture_thought", content="x", metadata={"Superseded_By": "[[y]]"})
        assert code == "INVALID_ARGUMENT"
        assert "superseded_by" in error["message"].casefold()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('"[[Newer]]"', "Newer"),
        ('"[[Captures/work/Newer.md#Part|the newer]]"', "Captures/work/Newer.md"),
        ("Newer", "Newer"),
        ("", None),
        ('""', None),
        ("[Newer]", "Newer"),
        ('\n  - "[[Newer]]"', "Newer"),  # as Obsidian writes a property of the type List
        ("[[Newer]]", "Newer"),  # without quotes, YAML reads a list in a list
        ("[[Newer|the newer]]", "Newer"),
        ("[[Newer#Part]]", "Newer"),
        ("[]", None),
    ],
)
def test_it_is_read_from_the_property(written, read):
    raw = f"---\nid: a\nsuperseded_by: {written}\n---\nText\n".encode()
    assert parse(raw, "Captures/work/Old.md", mtime_ms=0).superseded_by == read
    assert parse(raw, "Notes/Old.md", mtime_ms=0).superseded_by is None


@pytest.mark.parametrize("written", ['["[[Newer]]", "[[Newest]]"]', "{link: Newer}"])
def test_several_links_are_a_defect(written):
    raw = f"---\nid: a\nsuperseded_by: {written}\n---\nText\n".encode()
    document = parse(raw, "Captures/work/Old.md", mtime_ms=0)
    assert (document.superseded_by, [defect.name for defect in document.defects]) == (None, ["bad-successor"])
    assert parse(raw, "Notes/Old.md", mtime_ms=0).defects == ()


def test_what_a_capture_suggests_to_its_owner_is_no_link_of_its():
    raw = b'---\nsuggested_similar:\n  - "[[Diary]]"\nsee: "[[Plan]]"\n---\n[[Text]]\n'
    assert [link.target for link in parse(raw, "Captures/work/A.md", mtime_ms=0).links] == ["Plan", "Text"]


def test_a_stale_hit_counts_less_and_equals_keep_their_order():
    class Row:
        def __init__(self, stale):
            self.superseded_by = "New" if stale else None
            self.path, self.workspace = "Captures/default/A.md", "default"

    hits = [
        Hit(Row(stale), n, "", "", score) for n, (stale, score) in enumerate([(True, 0.8), (False, 0.5), (False, 0.5)])
    ]
    ordered = demote_superseded(hits)
    assert [hit.ord for hit in ordered] == [1, 2, 0]
    assert ordered[-1].score == 0.4
