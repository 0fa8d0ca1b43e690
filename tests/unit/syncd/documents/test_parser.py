"""Bytes to documents: golden notes, the laws of blocks and text, and what hostile notes cost."""

# ruff: noqa: SIM905 - a row of samples reads best as a row

import dataclasses
import json
import os
import re
import time
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from index.model import Document
from syncd.documents import agent_paths, entity_node, parser
from syncd.notes import markdown_outline
from syncd.notes.front_matter import compose
from syncd.notes.inline_syntax import scan
from syncd.notes.markdown_outline import MOST_MARKS, parse_outline
from tests.support.example_counts import examples
from tests.support.parsed_notes import names, parse, parsed
from tests.support.paths import GOLDEN

NOTES = sorted(path.relative_to(GOLDEN / "notes").as_posix() for path in (GOLDEN / "notes").rglob("*.md"))


def pieces(document):
    return [(block.kind, document.text[block.start : block.end]) for block in document.blocks]


def shown(document: Document):
    """The document as JSON, each block with its text instead of its offsets."""
    shape = dataclasses.asdict(document) | {"metadata": dict(document.metadata)}
    shape["blocks"] = [
        {"kind": block.kind, "trail": block.trail, "text": document.text[block.start : block.end]}
        for block in document.blocks
    ]
    return json.dumps(shape, ensure_ascii=False, indent=1) + "\n"


@pytest.mark.parametrize("path", NOTES)
def test_a_golden_note_is_parsed_as_before(path):
    document = parse((GOLDEN / "notes" / path).read_bytes(), path, mtime_ms=1_700_000_000_000)
    expected = GOLDEN / "documents" / f"{path}.json"
    if os.environ.get("GOLDEN") == "write":
        expected.parent.mkdir(parents=True, exist_ok=True)
        expected.write_text(shown(document), encoding="utf-8")
    assert shown(document) == expected.read_text(encoding="utf-8")


marks = st.sampled_from(
    "# ## - 1. > ``` ~~~ ` $ $$ % %% <!-- --> <div> </div> <pre> | |-|-| [[ ]] ![[ [ ]( ) [^1]: [a]: #tag - [x] --- === \\ \t"
    " > [!note] a b 日本 　 \r \x00 \u2028 \ufeff *** !".split(" ")
) | st.sampled_from(["\n", "\n\n", "\r\n", " ", "    "])
bodies = st.lists(marks | st.text(max_size=3), max_size=60).map("".join)


@given(bodies)
@examples(1_000)
def test_all_text_lies_in_blocks_that_neither_overlap_nor_touch_white_space(body):
    found = parse_outline(body)
    at = 0
    for block in found.blocks:
        assert not found.text[at : block.start].strip()
        piece = found.text[block.start : block.end]
        assert piece
        assert piece == piece.strip()
        assert block.start >= at
        at = block.end
    assert not found.text[at:].strip()


@given(bodies)
@example("%%\r#\n")
@examples(500)
def test_the_text_is_the_body_line_for_line_less_what_is_hidden(body):
    found = parse_outline(body)
    ends = re.compile(r"\r\n|\r|\n")
    assert ends.findall(found.text) == ends.findall(body)
    left = iter(body)
    assert all(character in left for character in found.text if character != " ")
    if "%%" not in body and "<!--" not in body:
        assert found.text == body
    count = len(ends.findall(body)) + 1
    assert all(0 <= item.line < count for item in [*found.links, *found.headings])
    assert all(0 <= line < count for line in found.task_lines)


@pytest.mark.slow
@given(
    st.binary() | bodies.map(str.encode) | st.tuples(bodies, bodies).map(lambda p: f"---\n{p[0]}\n---\n{p[1]}".encode())
)
@examples(1_000)
def test_any_bytes_are_a_document(raw):
    document = parsed(raw)
    assert document == parsed(raw)
    json.dumps(document.metadata)
    shown(document).encode()


@given(bodies)
def test_a_capture_comes_back_as_it_went_in(body):
    document = parsed(compose({"id": "a"}, body), "Captures/default/a.md")
    assert document.content == body
    assert document.claimed_id == "a"


@pytest.mark.parametrize("body", ["a\n\n%%\nhidden", "a\n\n<!--\nhidden"])
def test_what_an_open_comment_hides_is_listed(body):
    document = parsed(body)
    assert document.text.strip() == "a"
    assert names(document) == ["unclosed-comment"]
    assert document.writable


def test_blocks_are_whole_and_know_their_headings():
    document = parsed("p\n\n# A\n- a\n\n  b\n## B\n```\n# no\n```\n### C\n> [!x]\n> q\n\n# D\n| a |\n|-|\n| b |\n")
    assert pieces(document) == [
        ("paragraph", "p"),
        ("heading", "# A"),
        ("list", "- a\n\n  b"),
        ("heading", "## B"),
        ("code", "```\n# no\n```"),
        ("heading", "### C"),
        ("callout", "> [!x]\n> q"),
        ("heading", "# D"),
        ("table", "| a |\n|-|\n| b |"),
    ]
    assert [block.trail for block in document.blocks] == [
        (), (), ("A",), ("A",), ("A", "B"), ("A", "B"), ("A", "B", "C"), (), ("D",),
    ]  # fmt: skip


HUNDRED = 100_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "[[", "![[a", "[", "](", "[x](y '", "[a](<", ">", "- ", "`", "$a", "$$x\n", "%%x\n", "%% ", "a <!-- ", "<!-- \n", "<a ",
        "#a ", "\\", "> a\n", "> > > > > a\n", "|-\n", "a|\n", "```\n", "<div>\n", "[a]: b 'x", "<<<<<<<\n", "<<<<<<<\n=======\n",
        "---\n", "{{", "\t", "\r", "1. a\n", "- a\n\n", "> a\n- b\n",
    ],
)  # fmt: skip
def test_a_hostile_body_takes_bounded_time(text):
    raw = (text * (HUNDRED // len(text))).encode()
    began = time.process_time()
    parsed(raw)
    assert time.process_time() - began < 5  # measured: 0.9 s at most


@pytest.mark.parametrize(
    "body",
    [
        "\n".join("  " * n + "- a" for n in range(300)),
        "\n".join(">" * n + " a" for n in range(1, 400)),
        "- " * 1_000 + "a",
    ],
    ids=["lists", "quotes", "on one line"],
)
def test_deep_nesting_is_searchable_and_listed(body):
    document = parsed(body)
    assert "deep-nesting" in names(document)
    assert len(document.text) == len(body)


def test_a_note_of_very_many_lines_is_read_as_paragraphs():
    document = parsed("> [[a]]\n> a\n\n" * 15_000)
    assert names(document) == ["unread-markdown"]
    assert len(document.links) == 15_000
    assert pieces(document)[0][0] == "paragraph"
    assert len(pieces(document)) <= 45, "a block for a thousand lines: as many as there are would fill the memory"


def test_lists_that_are_nested_in_each_of_many_lines_need_little_memory(monkeypatch):
    """A fiftieth of the limit: memory is measured slowly, and grows with the tokens."""
    assert markdown_outline.MOST_TOKENS == 150_000
    monkeypatch.setattr(markdown_outline, "MOST_TOKENS", 3_000)
    body = f"{'- > ' * 14}[[a]]\n" * 120
    parse_outline("- a\n")  # the grammar is loaded
    tracemalloc.start()
    try:
        outline = parse_outline(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    (defect,) = outline.defects
    assert (
        str(defect)
        == "unread-markdown: Memex did not read its structure (it has more than 3,000 lists, quotes and other elements); its text is searchable"
    )
    assert len(outline.links) == 120
    assert peak < (6 << 20) / 5


@pytest.mark.slow
def test_a_list_of_many_lines_is_read():
    outline = parse_outline("- a\n  - [ ] b\n" * 9_999)
    assert (len(outline.task_lines), outline.defects) == (9_999, [])


@pytest.mark.slow
def test_a_table_of_many_cells_needs_little_memory():
    cells = 20_000
    table = f"{'|[[a]]' * cells}\n{'|-' * cells}\n\nBehind it.\n"
    parse_outline("| a |\n|---|\n")  # the grammar is loaded
    tracemalloc.start()
    try:
        outline = parse_outline(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [block.kind for block in outline.blocks] == ["table", "paragraph"]
    assert len(outline.links) == cells
    assert peak < 1_000 * cells


def test_a_note_of_very_many_links_tells_that_it_sees_only_the_first():
    document = parsed("[[a]] #t " * 11_000 + "\n\n[[b]]\n")
    assert names(document) == ["many-marks"]
    assert len(document.links) == MOST_MARKS // 2 + 1
    assert "[[b]]" in document.text


def test_a_scan_takes_every_kind_of_mark_in_one_pass():
    found = scan("#a [[b]] %%#c%% `#d` [e](f)")
    assert [tag for _, tag in found.tags] == ["a", "c"]
    assert [link.target for _, link in found.links] == ["b", "f"]
    assert found.hidden == [(9, 15)]


def test_the_page_of_an_entity_is_parsed_once(monkeypatch):
    pages, page_of = [], parser.page_of

    def count(body):
        pages.append(body)
        return page_of(body)

    for module, name in ((parser, "page_of"), (agent_paths, "parse_page"), (entity_node, "parse_page")):
        monkeypatch.setattr(module, name, count)
    body = "## Observations\n- a fact ^o1\n\n## Relations\n- knows:: [[Ada 2|Ada]]\n"
    document = parse(f"---\ntype: entity\n---\n{body}".encode(), "Captures/default/Entities/Bo.md", mtime_ms=1)
    assert document.node and document.content == body
    assert pages == [body]
