"""Which states of a file are ours to commit."""

from __future__ import annotations

import pytest

from syncd.commits.own_changes import CommitBatch, trace_steps
from syncd.history.digest_chain import Entry


def entry(before, after, *, kind="update", surface="mcp", **more):
    return Entry(0, 0, kind, surface, before=before, after=after, **more)


@pytest.mark.parametrize(
    ("trail", "now", "head", "steps"),
    [
        pytest.param([("", "a")], "a", [""], 1, id="a new note"),
        pytest.param([("a", "b"), ("", "a")], "b", [""], 2, id="a new note, changed"),
        pytest.param([("a", "b"), ("", "a")], "b", ["a"], 1, id="changed since it was committed"),
        pytest.param([("a", ""), ("", "a")], "", ["a"], 1, id="deleted"),
        pytest.param([("", "a")], "b", [""], None, id="edited since"),
        pytest.param([("b", "c"), ("", "a")], "c", [""], None, id="edited in between"),
        pytest.param([("b", "c"), ("", "a")], "c", ["b"], 1, id="edited in between, and the edit committed"),
        pytest.param([], "a", [""], None, id="never written by us"),
        pytest.param([("", "a")], "a", ["x"], None, id="another note in HEAD"),
        pytest.param([("", "a")], "a", ["x", "a"], 0, id="in HEAD already"),
        pytest.param([("a", ""), ("", "a"), ("b", "")], "", ["b"], 3, id="deleted, made again and deleted"),
    ],
)
def test_a_state_is_ours_if_the_log_leads_to_it_from_the_one_of_head(trail, now, head, steps):
    found = trace_steps([entry(*one) for one in trail], now, head)
    assert (None if found is None else len(found)) == steps


@pytest.mark.parametrize("more", [{"kind": "moved"}, {"kind": "kept"}, {"surface": "file"}])
def test_a_step_that_a_person_took_is_none_of_ours(more):
    assert trace_steps([entry("", "a", **more)], "a", [""]) is None


ENRICHED = [
    entry("a", "b", surface="daemon", tool="enrichment"),
    entry("", "a", tool="capture_thought", key="k1", name="claude", id="i"),
]
DELETED = [entry("x", "", tool="delete", key="k2", name="chat", id="j")]
REPORT = [entry("", "z", surface="daemon", tool="report")]


def test_what_one_agent_wrote_is_committed_in_its_name():
    batch = CommitBatch({"A.md": ENRICHED, "F/x.pdf": ENRICHED, "C.md": REPORT})
    assert batch.author == "claude"
    assert batch.message == (
        "claude: 2 notes and 1 file added\n\n- added A.md\n- added F/x.pdf\n- added C.md\n\nMemex-Agent: claude\n"
    )


def test_a_commit_of_several_agents_names_each_once_and_who_wrote_what():
    batch = CommitBatch({"A.md": ENRICHED, "B.md": DELETED, "C.md": REPORT, "D.md": ENRICHED})
    assert batch.author == "Memex"
    assert batch.message == (
        "chat, claude: 3 notes added, 1 note deleted\n\n"
        "- added A.md (claude)\n- added C.md\n- added D.md (claude)\n- deleted B.md (chat)\n\n"
        "Memex-Agent: chat\nMemex-Agent: claude\n"
    )


def test_what_the_owner_s_commands_wrote_is_not_counted_as_an_agent_s():
    added = [entry("", "x", surface="cli", tool="addfile")]
    batch = CommitBatch({"A.md": ENRICHED, "B.md": added, "C.md": REPORT})
    assert batch.author == "Memex"
    assert batch.message == (
        "claude, command line: 3 notes added\n\n"
        "- added A.md (claude)\n- added B.md (command line)\n- added C.md\n\n"
        "Memex-Agent: claude\n"
    )
    batch = CommitBatch({"B.md": added})
    assert (batch.author, batch.message) == ("Memex", "Memex: 1 note added\n\n- added B.md\n")


def test_what_memex_wrote_by_itself_names_no_agent():
    batch = CommitBatch({"C.md": REPORT})
    assert (batch.author, batch.message) == ("Memex", "Memex: 1 note added\n\n- added C.md\n")


def test_of_many_agents_the_subject_tells_the_number():
    steps = {f"{n}.md": [entry("", "z", key=f"k{n}", name=f"agent {n}")] for n in range(5)}
    assert CommitBatch(steps).message.startswith("5 agents: 5 notes added\n")
