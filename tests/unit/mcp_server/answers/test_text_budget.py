"""What a text costs its reader, held against a tokenizer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.answers.text_budget import cut_excerpt, estimate_tokens, share_budget
from tests.support.paths import ROOT
from tests.support.token_count import counted

HIT = {
    "chunk_id": "6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11#3",
    "title": "Hybrid search notes",
    "source_path": "alpha/Hybrid search notes.md",
    "tags": ["hybrid-search", "lancedb"],
    "score": 0.8123,
    "created_at": "2026-11-20T14:32:05.120Z",
    "updated_at": None,
}
ENGLISH = "Hybrid search fuses full text and vectors by their ranks; see the figures in the table below. "
JAPANESE = "検索は全文とベクトルを順位で合わせる。表の数字を見てください。"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(HIT, separators=(",", ":")), id="JSON"),
        pytest.param(ENGLISH * 5, id="English"),
        pytest.param(JAPANESE * 3, id="Japanese"),
        pytest.param((ROOT / "README.md").read_text(encoding="utf-8")[:8_000], id="Markdown"),
        pytest.param((ROOT / "mcp_server/answers/line_ranges.py").read_text(encoding="utf-8"), id="code"),
    ],
)
def test_the_estimate_is_near_what_a_tokenizer_counts(text):
    assert 0.95 <= estimate_tokens(text) / counted(text) <= 1.3


@given(st.text(), st.text())
def test_more_text_never_costs_less(one, other):
    assert estimate_tokens("") == 0
    assert estimate_tokens(one + other) >= max(estimate_tokens(one), estimate_tokens(other)) - 1
    assert estimate_tokens(one) <= 2 * len(one)


@given(st.lists(st.integers(0, 5_000), max_size=60), st.integers(0, 20_000))
def test_shares_fit_the_budget_and_waste_nothing(lengths, budget):
    granted = share_budget(lengths, budget)
    assert all(0 <= size <= length for size, length in zip(granted, lengths, strict=True))
    assert sum(granted) <= budget
    if sum(lengths) <= budget:
        assert granted == lengths
    else:
        assert sum(granted) > budget - max(1, len(lengths))


@given(st.text(), st.text(), st.integers(0, 50))
def test_an_excerpt_is_a_slice_of_the_document(content, passage, size):
    cut = cut_excerpt(content, passage, size)
    assert cut in content
    assert len(cut) == min(size, len(content))


@given(st.text(max_size=80), st.text(min_size=1, max_size=20), st.text(max_size=80), st.integers(20, 60))
def test_an_excerpt_holds_its_passage_when_it_can(before, passage, after, size):
    assert passage in cut_excerpt(before + passage + after, passage, size)


def test_a_passage_is_found_by_its_first_line_when_a_comment_was_left_out():
    content = "x" * 100 + "\nfirst line\n%% hidden %%\nlast line\n" + "y" * 100
    assert "first line" in cut_excerpt(content, "first line\nlast line", 30)


def test_no_documents_share_nothing():
    assert share_budget([], 100) == []
