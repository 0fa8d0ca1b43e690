"""index/text/chunking.py: what it promises, held on the real thing."""

from __future__ import annotations

import re
import tracemalloc
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from index.model import Block, Document
from index.text.chunking import SENTENCE, Sizes, _find_passages, _read_blocks, chunk_sizes, split_document
from tests.support.documents import document

TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]{1,4}|[^\w\s]")


def count(texts: Sequence[str]) -> list[int]:
    return [len(TOKEN.findall(text)) for text in texts]


def spans(document: Document, sizes: Sizes) -> list[tuple[int, int]]:
    """Where each chunk lies in the text."""
    return [(passage.start, passage.end) for passage in _find_passages(document, sizes, count)[0]]


GRAPHEMES = [*"abc de. f!\n 日本語。が", "👩\u200d💻", "🇯🇵", "e\u0301", "👍🏽", "\u1112\u1161\u11ab", "क्षि"]
PROSE = st.lists(st.sampled_from(GRAPHEMES), min_size=1, max_size=300).map("".join)
LINE = st.text(st.sampled_from("abc |=()  日本"), min_size=1, max_size=60)
FENCE = st.lists(LINE, min_size=1, max_size=12).map(lambda lines: "```\n" + "\n".join(lines) + "\n```")
TABLE = st.lists(LINE, min_size=1, max_size=12).map(lambda lines: "\n".join(f"| {line} |" for line in lines))
PART = st.one_of(
    st.tuples(st.just("paragraph"), PROSE),
    st.tuples(st.just("list"), PROSE.map(lambda text: "- " + text)),
    st.tuples(st.just("code"), FENCE),
    st.tuples(st.just("table"), TABLE),
    st.tuples(st.just("heading"), st.sampled_from(["# One", "## Two", "### Three of it"])),
)
DOCUMENTS = st.builds(
    lambda parts, title: document(*parts, title=title),
    st.lists(PART, max_size=12),
    st.sampled_from(["", "Note", "日本の旅"]),
)
SIZES = st.builds(Sizes, st.integers(12, 80), st.integers(0, 12), st.integers(1, 10))


@given(DOCUMENTS, SIZES)
@example(document(("paragraph", "x" * 400)), Sizes(12, 4, 2))
def test_chunks_are_slices_in_order_that_cover_all_but_white_space(document, sizes):
    found = spans(document, sizes)
    if found:
        assert [chunk.text for chunk in split_document(document, sizes, count)] == [
            document.text[a:b] for a, b in found
        ]
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(found))
    covered = {at for span in found for at in range(*span)}
    assert all(at in covered for at, character in enumerate(document.text) if not character.isspace())


@given(DOCUMENTS, SIZES)
def test_no_chunk_exceeds_its_budget_but_for_a_single_grapheme(document, sizes):
    for chunk in split_document(document, sizes, count):
        whole, context = count([chunk.embedded, chunk.context])
        assert context <= sizes.context
        assert whole <= sizes.tokens or len(chunk.text.split()) == 1


@given(DOCUMENTS, SIZES)
def test_a_fence_or_a_row_is_cut_only_when_it_alone_exceeds_the_budget(document, sizes):
    room = sizes.tokens - sizes.context
    ends = [end for span in spans(document, sizes) for end in span]
    for block in document.blocks:
        text = document.text[block.start : block.end]
        if block.kind == "code" and count([text])[0] <= room:
            assert not [end for end in ends if block.start < end < block.end]
        if block.kind == "table":
            for row in re.finditer(".+", text):
                if count([row[0]])[0] <= room:
                    assert not [
                        end for end in ends if block.start + row.start() < end < block.start + len(row[0].rstrip())
                    ]


@given(DOCUMENTS, SIZES)
def test_no_grapheme_is_cut(document, sizes):
    for chunk in split_document(document, sizes, count):
        assert not re.match("[\u200d\u0301\u1161\u11ab\U0001f3fd\u094d\u0937\u093f]", chunk.text)
        assert not chunk.text.endswith(("\u200d", "🇯"))


@pytest.mark.parametrize(
    "run",
    [
        pytest.param("e" + "\u0301" * 3_000, id="accents on one letter"),
        pytest.param("\u200d" * 3_000, id="joiners"),
        pytest.param("🇯🇵" * 1_500, id="flags"),
    ],
)
def test_a_run_of_marks_that_never_ends_is_cut_like_other_text(run):
    def count_characters(texts: Sequence[str]) -> list[int]:
        return list(map(len, texts))

    chunks = split_document(document(("paragraph", run), title="Run"), Sizes(400, 0, 10), count_characters)
    assert max(len(chunk.embedded) for chunk in chunks) <= 400
    assert "".join(chunk.text for chunk in chunks) == run


def test_a_title_that_is_one_run_of_flags_is_shortened():
    (only,) = split_document(
        document(("paragraph", "We flew."), title="🇯🇵" * 200), Sizes(40, 0, 10), lambda texts: list(map(len, texts))
    )
    assert only.context == "🇯🇵" * 5


@given(DOCUMENTS)
def test_equal_documents_give_equal_chunks(document):
    assert split_document(document, Sizes(40, 5, 5), count) == split_document(document, Sizes(40, 5, 5), count)


@pytest.mark.parametrize(
    ("most", "wanted"),
    [
        pytest.param(512, Sizes(512, 64, 64), id="512/64 for a model of 512"),
        pytest.param(510, Sizes(510, 64, 63), id="512/64 for one that marks a text's ends by two of them"),
        pytest.param(254, Sizes(254, 31, 31), id="254/31 for the bundled model"),
        pytest.param(256, Sizes(256, 32, 32), id="in proportion below"),
        pytest.param(8192, Sizes(512, 64, 64), id="no more than 512 for a long one"),
    ],
)
def test_sizes_follow_the_encoder(most, wanted):
    assert chunk_sizes(most) == wanted


def test_sizes_that_are_asked_for_stay_within_what_the_encoder_reads():
    assert chunk_sizes(256, tokens=2000, overlap=900) == Sizes(256, 128, 32)


def test_a_model_of_512_tokens_gets_passages_of_512_that_share_64():
    note = document(("paragraph", " ".join(["one two six."] * 300)), title="")  # of four tokens each
    one_chunk = document(("paragraph", " ".join(["one two six."] * 100)), title="")
    for window in (510, 512, 8_192):
        assert len(split_document(one_chunk, chunk_sizes(window), count)) == 1
        found = spans(note, chunk_sizes(window))
        *whole, _ = (count([note.text[a:b]])[0] for a, b in found)
        assert all(500 <= tokens <= 512 for tokens in whole), whole
        shared = [count([note.text[c:b]])[0] for (_, b), (c, _) in pairwise(found)]
        assert shared
        assert all(60 <= tokens <= 64 for tokens in shared), shared


def test_a_short_note_is_one_chunk_under_what_its_headings_share():
    note = document(
        ("heading", "# Trip"), ("paragraph", "Pack."), ("heading", "## Day one"), ("paragraph", "Go."), title="Trip"
    )
    (only,) = split_document(note, chunk_sizes(256), count)
    assert (only.text, only.trail, only.context) == (note.text.strip(), ("Trip",), "Trip")


def test_a_note_without_text_is_found_by_its_title():
    (only,) = split_document(document(title="Stub", aliases=("Later",)), chunk_sizes(256), count)
    assert (only.text, only.context) == ("", "Stub · Later")


def test_a_note_of_nothing_has_no_chunk():
    assert split_document(document(title=""), chunk_sizes(256), count) == []


def test_text_outside_of_blocks_is_kept():
    note = replace(
        document(("paragraph", "inside")), text="before\n\ninside\n\nafter", blocks=(Block("paragraph", 8, 14, ()),)
    )
    assert [chunk.text for chunk in split_document(note, chunk_sizes(256), count)] == ["before\n\ninside\n\nafter"]


def test_a_new_section_starts_a_new_chunk_once_the_last_is_half_full():
    full, next_ = "word " * 20, "more " * 20
    note = document(("heading", "# A"), ("paragraph", full.strip()), ("heading", "# B"), ("paragraph", next_.strip()))
    first, second = split_document(note, Sizes(40, 4, 8), count)
    assert (first.trail, second.trail) == (("A",), ("B",))
    assert second.text.startswith("# B")


def test_tiny_sections_share_a_chunk():
    note = document(*[part for n in range(30) for part in (("heading", f"# H{n}"), ("paragraph", "tiny"))])
    found = split_document(note, Sizes(40, 4, 8), count)
    assert len(found) < 8
    assert all("#" in chunk.text for chunk in found)


def test_a_heading_goes_with_what_follows_it():
    note = document(("paragraph", "a " * 25), ("heading", "# Next"), ("paragraph", "b " * 20))
    assert [chunk.text.split()[0] for chunk in split_document(note, Sizes(40, 0, 8), count)] == ["a", "#"]


def test_neighbours_repeat_whole_sentences():
    sentences = [f"This is sentence number {n}." for n in range(20)]
    found = split_document(document(("paragraph", " ".join(sentences))), Sizes(60, 16, 8), count)
    assert len(found) > 2
    for before, after in pairwise(found):
        repeated = next(sentence for sentence in sentences if after.text.startswith(sentence))
        assert repeated in before.text


def test_neighbours_of_one_section_repeat_a_whole_paragraph_but_sections_repeat_nothing():
    paragraphs = [("paragraph", f"paragraph {n} has words") for n in range(10)]
    found = split_document(document(*paragraphs), Sizes(40, 12, 8), count)
    assert all(after.text.split("\n")[0] in before.text for before, after in pairwise(found))


@pytest.mark.parametrize("stop", ["。", "！", "？", "।", "؟", ".\n", "! "])
def test_a_long_paragraph_is_cut_after_a_sentence(stop):
    note = document(("paragraph", ("あいう" * 4 + stop) * 9))
    found = split_document(note, Sizes(45, 0, 3), count)
    assert len(found) > 2
    assert all(chunk.text.endswith(stop.strip()) for chunk in found)


def test_a_long_fence_is_cut_at_line_ends():
    lines = [f"call({n})" for n in range(60)]
    found = split_document(document(("code", "```py\n" + "\n".join(lines) + "\n```")), Sizes(50, 0, 4), count)
    assert len(found) > 2
    assert all(line in ["```py", "```", *lines] for chunk in found for line in chunk.text.split("\n"))


def test_the_indent_of_a_first_line_is_kept():
    lines = [f"    call({n})" for n in range(60)]
    found = split_document(document(("code", "\n".join(lines))), Sizes(50, 0, 4), count)
    assert all(chunk.text.startswith("    call") for chunk in found)


def test_a_context_names_the_title_once_and_fits():
    note = document(
        ("heading", "# Note"), ("heading", "## A very long heading " + "of words " * 20), ("paragraph", "x")
    )
    (only,) = split_document(note, chunk_sizes(256), count)
    assert only.context.startswith("Note > A very long heading of")
    assert count([only.context])[0] <= 32


def test_names_in_another_normal_form_become_composed():
    (only,) = split_document(
        document(("paragraph", "x"), title=unicodedata.normalize("NFD", "がぎ é")), chunk_sizes(256), count
    )
    assert only.context == "がぎ é"


def test_only_the_first_chunk_carries_the_aliases():
    note = document(("paragraph", "one " * 60), ("paragraph", "two " * 60), aliases=("Other", "note"))
    first, *rest = split_document(note, Sizes(80, 0, 16), count)
    assert first.context == "Note · Other"
    assert {chunk.context for chunk in rest} == {"Note"}


def test_many_short_lines_are_cut_with_little_memory():
    dense = document(("paragraph", "ab c\n" * 12_000))
    tracemalloc.start()
    try:
        chunks = split_document(dense, chunk_sizes(254), count)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(chunk.text.count("ab c") for chunk in chunks) >= 12_000
    assert peak < 200 * 12_000  # bytes a line


def test_a_long_block_is_found_without_a_copy_of_it():
    long = document(("paragraph", "word " * 20_000))
    tracemalloc.start()
    try:
        assert len(_read_blocks(long)) == 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10_000


@pytest.mark.timeout(30)
@pytest.mark.parametrize("run", ["!", ".", '."', "。", "…", ".)"])
def test_a_long_run_of_marks_is_read_once(run):
    assert [match.end() for match in SENTENCE.finditer(run * 300_000 + "x")][1:] == []


@given(st.text(st.sampled_from(".!?…\"') \na。」"), max_size=20))
def test_sentences_end_where_marks_stand_before_white_space(text):
    plain = re.compile(r"[.!?…‽]+[\"'”’»)\]]*(?=\s)|[。！？｡．؟۔।॥။።‼⁇⁈⁉]+[」』】）〉》〕”’\"')\]]*|\n")
    assert [match.span() for match in SENTENCE.finditer(text)] == [match.span() for match in plain.finditer(text)]
