"""What a text costs its reader, held against a tokenizer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.answers.text_budget import tokens
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
    assert 0.95 <= tokens(text) / counted(text) <= 1.3


@given(st.text(), st.text())
def test_more_text_never_costs_less(one, other):
    assert tokens("") == 0
    assert tokens(one + other) >= max(tokens(one), tokens(other)) - 1
    assert tokens(one) <= 2 * len(one)
