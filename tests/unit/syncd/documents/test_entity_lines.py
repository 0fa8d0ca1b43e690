"""What the lines of an entity's note say, in the forms in which people write them, and what hostile ones cost."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.documents.entity_lines import find_ids, parse_page
from tests.support.example_counts import examples


def facts(text):
    """(ordinal or None, content) of each observation, in the order of lines."""
    return [(item.mark.ordinal if item.mark else None, item.content) for item in parse_page(text).items]


def stated(text):
    return [(to.says.type, to.says.target) for _, field in parse_page(text).fields for to in field.targets]


UNDER = "## Observations\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("- a\n* b ^o2\n+ c ^O3\n1. d\n2) e ^o5\n", [(None, "a"), (2, "b"), (3, "c"), (None, "d"), (5, "e")], id="any marker"),
        pytest.param("- a ^o1  \n- b ^o2\t\n-   c   ^o3\n-\td ^o4\n", [(1, "a"), (2, "b"), (3, "c"), (4, "d")], id="loose blanks"),
        pytest.param("- a\n  b\n  ^o3\n", [(3, "a\nb")], id="the id on a line of its own"),
        pytest.param("- a\n\n  b\n\n      ^o3\n", [(3, "a\n\nb")], id="the same, with blank lines and more indentation"),
        pytest.param("- a\n  b ^o3\n", [(3, "a\nb")], id="a line that was wrapped by hand"),
        pytest.param("- a ^o3\n  b\n", [(3, "a\nb")], id="a line added below"),
        pytest.param("- a ^o3\n    - child ^o9\n", [(3, "a\n  - child ^o9")], id="a nested list below, with an id of its own"),
        pytest.param("- a\n    - child ^o9\n", [(None, "a\n  - child ^o9")], id="an id that is the child's alone"),
        pytest.param("- a\n\t- child\n", [(None, "a\n- child")], id="a child under a tab"),
        pytest.param("- a\n  b\n  ^o3\n    - child\n", [(3, "a\nb\n  - child")], id="a child added below the id"),
        pytest.param("1. a\n   b\n   ^o3\n", [(3, "a\nb")], id="a numbered item"),
        pytest.param("-     code\n", [(None, "code")], id="an item that begins with code"),
        pytest.param("- a ^o7 ^o3\n", [(3, "a ^o7")], id="only the last id counts"),
        pytest.param("- a ^o7\n  ^o7\n  ^o3\n", [(3, "a ^o7\n^o7")], id="also on lines of their own"),
        pytest.param("- a^o3\n- b^\n- c ^\n- d ^o_3\n- e ^要約\n- f ^o3.\n", [(None, text) for text in ("a^o3", "b^", "c ^", "d ^o_3", "e ^要約", "f ^o3.")], id="what is no block id"),
        pytest.param("- \n-\n- ^o3\n* * *\n- - -\n---\n", [(None, ""), (None, ""), (3, "")], id="emptied items, and rules"),
        pytest.param("- a\nprose ^o3\n\nmore prose\n- b\n", [(None, "a"), (None, "b")], id="prose in between"),
        pytest.param("- a\n### Later\n- b\n#### Much later\n- c\n## Sources\n- no\n", [(None, "a"), (None, "b"), (None, "c")], id="deeper headings"),
        pytest.param("- a\n\nSources\n---\n- no\n", [(None, "a")], id="an underlined heading"),
        pytest.param("- a\n# Top\n- no\n###### Observations ######\n- b\n", [(None, "a"), (None, "b")], id="two sections"),
        pytest.param("- a\n#### Relations\n- knows:: [[X]]\n", [(None, "a")], id="relations, which are never observations"),
        pytest.param("```\n- no\n## no\n```\n- a\n~~~~ x\n- no\n~~~\n- no\n~~~~\n- b\n", [(None, "a"), (None, "b")], id="code"),
        pytest.param("%%\n- no\n%%\n- a\n<!--\n- no\n-->\n- b\n%% one %%\n- c\n", [(None, "a"), (None, "b"), (None, "c")], id="comments"),
        pytest.param("- a\n  ```\n  open\n- b\n  <!-- open\n- c\n  %%\n- d\n", [(None, "a\n```\nopen"), (None, "b\n<!-- open"), (None, "c\n%%"), (None, "d")], id="what is open in an item ends with it"),
        pytest.param("```\n- no\n", [], id="code that is not closed"),
        pytest.param("> - quoted\n\n    - code\n\n   - a\n  - b\n   c\n", [(None, "a"), (None, "b")], id="quotes, code, and an indented list"),
        pytest.param("- knows:: [[X]]\n", [(None, "knows:: [[X]]")], id="a relation in the wrong place is a fact"),
        pytest.param("- a\r\n  b\r\n  ^o1\r\n- c ^o2\r\n", [(1, "a\nb"), (2, "c")], id="CRLF"),
        pytest.param("- a\r  b ^o1\r- c ^o2", [(1, "a\nb"), (2, "c")], id="CR, and no last line end"),
        pytest.param("- a\u2028b\x0cc\x85d ^o1\n", [(1, "a\u2028b\x0cc\x85d")], id="what Python takes for line ends"),
        pytest.param("- 事実\u3000^o1\n- حقيقة ^o2\n", [(1, "事実"), (2, "حقيقة")], id="other scripts"),
    ],
)  # fmt: skip
def test_observations_are_read_as_people_write_them(text, found):
    assert facts(UNDER + text) == found


@pytest.mark.parametrize(
    ("item", "found"),
    [
        pytest.param("- a ^b-1\n", (None, "a", "^b-1"), id="made by a link"),
        pytest.param("- a ^o0\n", (None, "a", "^o0"), id="almost an ordinal"),
        pytest.param("- a ^o03\n", (None, "a", "^o03"), id="with a zero"),
        pytest.param("- a ^1234567890123456\n", (None, "a", "^1234567890123456"), id="a long one"),
        pytest.param("- a ^o4 ^b\n", (4, "a", "^b"), id="behind ours"),
        pytest.param("- a ^b ^o4\n", (4, "a", "^b"), id="before ours"),
        pytest.param("- a  ^o4\t^b \n", (4, "a", "^b"), id="loose blanks"),
        pytest.param("- a\n  b\n  ^o4 ^b\n", (4, "a\nb", "^b"), id="on our line"),
        pytest.param("- a\n  b\n  ^b ^o4\n", (4, "a\nb", "^b"), id="on our line, before ours"),
        pytest.param("- a\n  b ^b\n", (None, "a\nb", "^b"), id="at the end of the paragraph"),
        pytest.param("- a ^b\n    - child ^c\n", (None, "a\n  - child ^c", "^b"), id="above a nested list"),
        pytest.param("- a\n    - child ^c\n", (None, "a\n  - child ^c", ""), id="that of a nested item"),
        pytest.param("- a\n  - child\n  ^c\n", (None, "a\n- child\n^c", ""), id="that of a nested item, below it"),
        pytest.param("- a\n  - child\n    ^c\n", (None, "a\n- child\n  ^c", ""), id="that of a nested item, in it"),
        pytest.param("- a\n  - child\n\n  ^b\n", (None, "a\n- child", "^b"), id="on a line of its own"),
        pytest.param("- > a\n  > b ^c\n", (None, "> a\n> b ^c", ""), id="in a quote, where it is none"),
        pytest.param("- a ^o4\n  b ^b\n", (4, "a\nb", "^b"), id="a line was added below ours"),
        pytest.param("- a ^b\n  ^o4\n", (4, "a ^b", ""), id="a text that ends like one, as it is written"),
        pytest.param("- a ^b ^c\n", (None, "a ^b", "^c"), id="only the last one"),
        pytest.param("- a ^o3 ^b ^o4\n", (4, "a ^o3", "^b"), id="two of ours"),
        pytest.param("- ^b\n", (None, "", "^b"), id="of an item that was emptied"),
        pytest.param("- 事実\u3000^b\r\n", (None, "事実", "^b"), id="other scripts, and CRLF"),
    ],
)
def test_a_person_s_block_id_is_no_part_of_the_observation(item, found):
    (one,) = parse_page(UNDER + item).items
    assert (one.mark.ordinal if one.mark else None, one.content, one.anchor.text if one.anchor else "") == found


@pytest.mark.parametrize(
    "heading",
    [
        "# Observations",
        "###### observations",
        "  ## OBSERVATIONS ##",
        "##\tObservations  ",
        "Observations\n===",
        "Observations\n---",
        "- list\n\n# Observations",
        "- list\n# Observations",
        "text\n# Observations",
    ],
)
def test_any_level_and_letter_case_of_the_heading_will_do(heading):
    assert facts(f"{heading}\n- a\n") == [(None, "a")]


@pytest.mark.parametrize(
    "heading",
    [
        "Observations",
        "#Observations",
        "## Observations about her",
        "    ## Observations",
        "- list\n  ## Observations",
        "> ## Observations",
        "```\n## Observations",
        "> [!note]\n> ## Observations",
        "####### Observations",
    ],
)
def test_what_is_no_heading_begins_no_observations(heading):
    assert facts(f"{heading}\n- a\n") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("- knows:: [[B]]\n* likes:: [[C|see]]\nbare:: [[D#H]]\n> quoted:: [[E]]\n    - nested:: [[F]]\n- [x] task:: [[No]]\n", [("knows", "B"), ("likes", "C"), ("bare", "D"), ("quoted", "E"), ("nested", "F")], id="lines"),
        pytest.param("Met [mentor:: [[B]]] and [[C]] in [where:: Turin].\n", [("mentor", "B")], id="in a sentence"),
        pytest.param("- knows:: [[B]], [[C]] and [[D.md]]\n", [("knows", "B"), ("knows", "C"), ("knows", "D.md")], id="several links"),
        pytest.param("```\nknows:: [[B]]\n```\n`knows:: [[B]]`\n- `x` knows:: [[B]]\n", [], id="code"),
        pytest.param("- step\n  ```\n  knows:: [[B]]\n  ```\n  knows:: [[C]]\n- ```\n  knows:: [[B]]\n- knows:: [[D]]\n", [("knows", "C"), ("knows", "D")], id="code in a list"),
        pytest.param("> ```\n> knows:: [[B]]\n\nknows:: [[C]]\n", [("knows", "C")], id="code in a quote"),
        pytest.param("text\n\n    knows:: [[B]]\n\n    likes:: [[B]]\n\nknows:: [[C]]\n", [("knows", "C")], id="indented code"),
        pytest.param("%%\nknows:: [[B]]\n%%\n%% knows:: [[B]] %%\n<!--\nknows:: [[B]]\n-->\n<!-- knows:: [[B]] -->\nknows:: [[C]] %% [[D]] %%\n", [("knows", "C"), ("knows", "D")], id="comments"),
        pytest.param("## Observations\n- knows:: [[B]]\nknows:: [[B]]\n## Relations\n- knows:: [[C]]\n", [("knows", "C")], id="observations"),
        pytest.param("knows:: ![[B]] [B](B.md) [[#here]]\n| knows:: [[B]] |\n## knows:: [[B]]\n:: [[B]]\n" + "x" * 101 + ":: [[B]]\n", [], id="embeds, Markdown links, own headings, tables, headings, no type, a long one"),
        pytest.param("- a:b:: [[C]]\n- cafe\u0301:: [[C]]\n-   日本 語 :: [[C]]\n- - x:: [[C]]\n", [("a:b", "C"), ("caf\xe9", "C"), ("日本 語", "C"), ("- x", "C")], id="types"),
    ],
)  # fmt: skip
def test_relations_are_read_as_people_write_them(text, found):
    assert stated(text) == found


def test_ids_are_found_with_the_blank_before_them():
    text = "## Observations\r\n- a ^o1\r\n- b\r\n  c\r\n  ^o2 ^c\r\n- none\r\n- d ^d\r\n"
    assert [text[start:end] for start, end in find_ids(parse_page(text))] == [" ^o1", " ^o2", " ^c", " ^d"]


marks = st.sampled_from(
    ["## Observations", "# Relations", "- ", "1. ", "* ", "  ", "    ", "\t", "```", "~~~", "%%", "<!--", "-->", "> ", "::", "[[x]]", "[k:: [[x]]]", "^o1", " ^o22", " ^b", "---", "===", "`", "word", "\n", "\n\n", "\r\n", "\r"]
)  # fmt: skip


@given(st.lists(marks | st.text(max_size=2), max_size=60).map("".join))
@examples(500)
def test_every_line_is_kept_and_each_item_and_field_has_lines_of_its_own(body):
    page = parse_page(body)
    assert "".join(page.lines) == body
    at = 0
    for item in page.items:
        assert at <= item.first < item.behind <= len(page.lines)
        at = item.behind
    owned = {line for item in page.items for line in range(item.first, item.behind)}
    assert not owned & {line for line, _ in page.fields}
    for item in page.items:
        if item.mark:
            assert page.lines[item.mark.line][item.mark.start : item.mark.end].casefold() == f"^o{item.mark.ordinal}"
        if item.anchor:
            assert page.lines[item.anchor.line][item.anchor.start : item.anchor.end] == item.anchor.text
        assert item.content == item.content.strip()
    for section in page.sections.values():
        assert section.first < section.inner <= section.behind <= len(page.lines)


SIZE = 100_000
HOSTILE = {
    "one long line": UNDER + "- " + "x" * SIZE,
    "list marks in list marks": UNDER + "- " * (SIZE // 2),
    "blanks": UNDER + "- a" + " " * SIZE + "x\n" + " " * SIZE,
    "ids": UNDER + "- " + "^o1 " * (SIZE // 4),
    "signs of ids": UNDER + "- " + "^" * SIZE,
    "a long id": UNDER + "- " + "x ^" + "y" * SIZE,
    "block ids": UNDER + "- " + "^b " * (SIZE // 3),
    "items with block ids": UNDER + "- a ^b\n" * (SIZE // 7),
    "an item with many block ids": UNDER + "- a\n" + "  ^b\n" * (SIZE // 5),
    "blanks before an id": UNDER + "- " + (" " * 999 + "^o1") * (SIZE // 1000) + "x",
    "hashes": "#" * SIZE + "\n" + "# a" + " #" * (SIZE // 2) + "x",
    "a rule": UNDER + "- " * (SIZE // 2) + "x",
    "brackets": "[" * SIZE + "k:: [[x]]",
    "open fields": "[k:: [[x]] " * (SIZE // 11),
    "fields": "[k:: [[x]]] " * (SIZE // 12),
    "colons": ":" * SIZE + " [[x]]",
    "types": "a:: " * (SIZE // 4) + "[[x]]",
    "links": "k:: " + "[[x]], " * (SIZE // 7),
    "backticks": "k:: [[x]] " + "` `` ``` " * (SIZE // 9),
    "signs of comments": "k:: [[x]] " + "%% " * (SIZE // 3),
    "arrows": "<!-- " * (SIZE // 5) + "k:: [[x]]",
    "fences": "```\n" * (SIZE // 4),
    "quotes": ">" * SIZE + "k:: [[x]]",
    "items, each with blank lines behind": UNDER + ("- a\n" + "\n" * 20) * (SIZE // 24),
    "an item with many ids": UNDER + "- a\n" + "  ^o1\n" * (SIZE // 6),
    "items that repeat an id": UNDER + "- a ^o1\n" * (SIZE // 8),
    "deep items": UNDER + "- a\n" + "\n".join(" " * at + "- b" for at in range(2, 440)),
    "headings": "## Observations\n" * (SIZE // 16),
    "underlines": "a\n---\n" * (SIZE // 6),
    "bare CR": UNDER + "- a\r" * (SIZE // 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_lines_are_read_in_linear_time(text):
    began = time.process_time()
    parse_page(text)
    assert time.process_time() - began < 1.5  # measured: 0.25 s at most


@pytest.mark.slow
def test_a_large_note_is_read_in_linear_time():
    text = UNDER + "- an observation of an ordinary length, with a [[link]] ^o1\n  and a line more\n" * 13_500
    assert len(text) > 1_000_000
    began = time.process_time()
    assert len(parse_page(text).items) == 13_500
    assert time.process_time() - began < 2.5  # measured: 0.3 s
