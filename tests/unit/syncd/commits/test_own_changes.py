"""Which states of a file are ours to commit."""

from __future__ import annotations

import pytest

from syncd.commits.own_changes import author_of, batch_message, group_by_author, trace_steps
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


def test_a_commit_is_of_one_author_and_names_all_who_wrote():
    one = [
        entry("a", "b", surface="daemon", tool="enrichment"),
        entry("", "a", tool="capture_thought", key="k1", name="claude", id="i"),
    ]
    two = [entry("x", "", tool="delete", key="k2", name="chat", id="j")]
    three = [entry("", "z", surface="daemon", tool="report")]
    assert author_of(one) == "claude"
    found = list(group_by_author([("A.md", one), ("F/x.pdf", one), ("B.md", two), ("C.md", three)]))
    assert [(batch.author, list(batch.steps)) for batch in found] == [
        ("", ["C.md"]), ("chat", ["B.md"]), ("claude", ["A.md", "F/x.pdf"]),
    ]  # fmt: skip
    assert [batch_message(batch).partition("\n")[0] for batch in found] == [
        "Capture 1 note (memex)", "Delete 1 note (chat)", "Capture 1 note and 1 file (claude)",
    ]  # fmt: skip
    assert batch_message(found[2]).endswith(
        "Memex-Tool: enrichment\nMemex-Tool: capture_thought\nMemex-Key: claude\nCapture-Id: i\n"
    )
