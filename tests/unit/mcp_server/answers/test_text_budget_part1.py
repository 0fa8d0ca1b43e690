"""How documents share a budget: laws."""

from hypothesis import given
from hypothesis import strategies as st

from mcp_server.answers.text_budget import excerpt, shares


@given(st.lists(st.integers(0, 5_000), max_size=60), st.integers(0, 20_000))
def test_shares_fit_the_budget_and_waste_nothing(lengths, budget):
    granted = shares(lengths, budget)
    assert all(0 <= size <= length for size, length in zip(granted, lengths, strict=True))
    assert sum(granted) <= budget
    if sum(lengths) <= budget:
        assert granted == lengths
    else:
        assert sum(granted) > budget - max(1, len(lengths))


@given(st.text(), st.text(), st.integers(0, 50))
def test_an_excerpt_is_a_slice_of_the_document(content, passage, size):
    cut = excerpt(content, passage, size)
    assert cut in content
    assert len(cut) == min(size, len(content))


@given(st.text(max_size=80), st.text(min_size=1, max_size=20), st.text(max_size=80), st.integers(20, 60))
def test_an_excerpt_holds_its_passage_when_it_can(before, passage, after, size):
    assert passage in excerpt(before + passage + after, passage, size)


def test_a_passage_is_found_by_its_first_line_when_a_comment_was_left_out():
    content = "x" * 100 + "\nfirst line\n%% hidden %%\nlast line\n" + "y" * 100
    assert "first line" in excerpt(content, "first line\nlast line", 30)


def test_no_documents_share_nothing():
    assert shares([], 100) == []
