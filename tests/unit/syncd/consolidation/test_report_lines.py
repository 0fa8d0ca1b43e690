"""syncd/consolidation/report_lines.py: the lines of a report as plain text, however their words look."""

from __future__ import annotations

import html

from hypothesis import given
from hypothesis import strategies as st

from syncd.consolidation.report_lines import ProposalLine, read_proposals
from syncd.consolidation.report_note import ReportEntry, WorkspaceReport, compose_report
from syncd.notes.quoted_text import quote_inline

KEY = "0123456789abcdef"


def report(**more):
    entry = ReportEntry(**{"key": KEY, "kind": "relate", "workspace": "default", "paths": ("Captures/default/A.md", "B.md"),
                           "would": ("related_to",), "reason": "They share a name.", **more})  # fmt: skip
    return compose_report("2026-01-01", [WorkspaceReport("default", (entry,))])


def test_a_line_is_read_as_words():
    (line,) = read_proposals(report())
    assert line == ProposalLine(KEY, " ", "Relate A to B as “related_to”", "They share a name.")


@given(st.text(st.sampled_from("ab [](){}|<>&*_`#^-=\\:/%$@~✅1."), max_size=40))
def test_words_are_read_as_they_were_given(words):
    (line,) = read_proposals(report(reason=f"x {words}"))
    assert line.reason == html.unescape(quote_inline(f"x {words}")).strip()


def test_a_tick_and_a_removed_reason_are_seen():
    text = report().replace("- [ ]", "- [x]").replace("\t- They share a name.\n", "")
    (line,) = read_proposals(text)
    assert (line.mark, line.reason) == ("x", "")


def test_other_lines_are_no_proposals():
    assert read_proposals(f"- [ ] mine\n- [ ] `code ^p-{KEY}`\n") == []
