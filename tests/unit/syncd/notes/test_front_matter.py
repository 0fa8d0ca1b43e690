"""Properties and body: what is composed is read back, an edit touches its own lines, and no YAML does harm."""

# ruff: noqa: SIM905 - a row of samples reads best as a row

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncd.notes.front_matter import (
    FrontmatterError,
    comparable_key,
    compose,
    decode,
    edit,
    encode,
    has_merge_conflict,
    is_reserved,
    is_unclosed,
    read_properties,
    readable_properties,
    replace_body,
    split,
)
from tests.support.example_counts import examples

anything = st.text(st.characters(codec="utf-8"))
bodies = anything | st.sampled_from(
    [
        "---\na: b\n---\nx",
        "---",
        "---\n",
        "\ufeff---\n---\n",
        "\ufeffx",
        "\r",
        "--- \r\n",
        "\n---\n",
        "\0",
        "\u2028---\n",
    ]
)
words = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    "no yes true null ~ 007 1.10 1e3 0x1F 12:30:45 2026-11-20 - a:b a: #x x#y & *a !b |- > ' \" % @ ` {} [] [[X]] é 東京　 .inf"
    " <<  = a\u2028b \ufeff \x85 \ud7ff 🎉 --- ... ?".split(" ")
)
scalars = words | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4))
notes = st.dictionaries(words, values, max_size=6)


def as_json(value):
    return json.dumps(value, sort_keys=True)


@given(anything | bodies)
def test_the_parts_of_a_text_make_the_text(text):
    front, body = split(text)
    assert front + body == text


@given(st.binary())
def test_bytes_survive_decoding(raw):
    assert encode(decode(raw)) == raw


@pytest.mark.parametrize(
    ("text", "front"),
    [
        pytest.param("---\na: 1\n---\nx", "---\na: 1\n---\n", id="a block"),
        pytest.param("---\n---\nx", "---\n---\n", id="an empty block"),
        pytest.param("---\na: 1\n---", "---\na: 1\n---", id="no final newline"),
        pytest.param(
            "\ufeff---\r\na: 1\r\n--- \t\r\nx", "\ufeff---\r\na: 1\r\n--- \t\r\n", id="BOM, CRLF, blanks behind"
        ),
        pytest.param("---\ra: 1\r---\rx", "---\ra: 1\r---\r", id="bare CR"),
        pytest.param("\n---\na: 1\n---\n", "", id="a blank line before"),
        pytest.param("---\na: 1\n", "", id="not closed"),
        pytest.param("---\na: 1\n----\n--- x\n", "", id="no line is exactly three dashes"),
        pytest.param('{"a": 1}\n', "", id="JSON"),
        pytest.param("+++\na = 1\n+++\n", "", id="TOML"),
        pytest.param("\ufeffx", "\ufeff", id="only a BOM"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_the_front_matter_is_what_obsidian_takes_for_it(text, front):
    assert split(text) == (front, text[len(front) :])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("007", "007"),
        ("1.10", "1.10"),
        ("12:30:45", "12:30:45"),
        ("2026-11-20", "2026-11-20"),
        ("2026-13-45", "2026-13-45"),
        ("no", "no"),
        ("True", "True"),
        ("0x1F", "0x1F"),
        ("1e3", "1e3"),
        ("-0", "-0"),
        ("+1", "+1"),
        (".inf", ".inf"),
        ("=", "="),
        ("1_000", "1_000"),
        ("0", 0),
        ("-12", -12),
        ("1.5", 1.5),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ('"1"', "1"),
        ("'null'", "null"),
        ("[a, 1, [b]]", ["a", 1, ["b"]]),
        ("{1: {null: x}}", {"1": {"null": "x"}}),
        ("#foo", None),
        ("[[Note]]", [["Note"]]),
        ("&anchor x", "x"),
        ("!!str 1", "1"),
    ],
)
def test_a_scalar_stays_as_it_is_written(text, value):
    assert as_json(read_properties(f"---\nkey: {text}\n---\n")) == as_json({"key": value})


def test_keys_are_text_whatever_they_look_like():
    front = "---\n1: a\n2026-01-01: b\ncontent: c\nhandler: d\nself: e\nno: f\n<<: g\n---\n"
    assert list(read_properties(front)) == ["1", "2026-01-01", "content", "handler", "self", "no", "<<"]


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param("a: &x [1]\nb: *x", id="an alias"),
        pytest.param("a: &a [x,x]\n" + "\n".join(f"b{i}: &b{i} [*a,*a]" for i in range(20)), id="an alias bomb"),
        pytest.param("a: &a {k: 1}\nb: {<<: [*a, *a]}", id="a merge bomb"),
        pytest.param("a: " + "[" * 50_000, id="50,000 brackets"),
        pytest.param("a: " + "[" * 21 + "]" * 21, id="too deep"),
        pytest.param("".join(f"k{i}:\n" for i in range(6_000)), id="too many keys"),
        pytest.param("a: " + "x" * 70_000, id="too large"),
        pytest.param("a: b: c", id="a colon in plain text"),
        pytest.param("a: @bob", id="a reserved sign"),
        pytest.param("a: !secret x", id="a tag"),
        pytest.param("a: !!python/object:os.system x", id="a Python object"),
        pytest.param("a: !!timestamp 2026-13-45", id="a bad timestamp"),
        pytest.param("\ta: b", id="a tab"),
        pytest.param('a: "b', id="an open quote"),
        pytest.param("a: {{date}}", id="a template"),
        pytest.param("<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> x", id="conflict markers"),
        pytest.param("- a\n- b", id="a list"),
        pytest.param("just words", id="a scalar"),
        pytest.param("a: 1\n--- b", id="two documents"),
        pytest.param("? [a]\n: b", id="a key that is a list"),
        pytest.param("a: \0", id="a NUL"),
        pytest.param("a: \udcff", id="not UTF-8"),
        pytest.param('a: "\\ud800"', id="a lone surrogate"),
    ],
)
def test_properties_that_cannot_be_read_are_one_kind_of_error(inner):
    with pytest.raises(FrontmatterError):
        read_properties(f"---\n{inner}\n---\n")


@pytest.mark.slow
@given(notes, bodies)
@example({"a": "x" * 2000, "b": ["", {"": [None]}]}, "---\n")
@examples(300)
def test_a_composed_note_says_what_was_given(props, body):
    text = compose(props, body)
    front, rest = split(text)
    assert rest == body
    assert as_json(read_properties(front)) == as_json(props)
    assert list(read_properties(front)) == list(props)


def test_a_composed_note_looks_as_obsidian_writes_it():
    props = {
        "id": "6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11",
        "created_at": "2026-11-20T14:32:05.120Z",
        "title": "Re: plans",
        "up": "[[Home]]",
        "tags": ["a/b", "日本"],
        "none": [],
        "empty": None,
        "done": False,
        "rank": 1.5,
        "answer": "no",
        "deep": {"a": [1, None]},
        "lines": "a\nb",
    }
    assert compose(props, "Body") == (
        "---\n"
        "id: 6f1c1c52-5d5b-4f0e-9d0a-0d6a2b8f2c11\n"
        "created_at: 2026-11-20T14:32:05.120Z\n"
        'title: "Re: plans"\n'
        'up: "[[Home]]"\n'
        "tags:\n  - a/b\n  - 日本\n"
        "none: []\n"
        "empty:\n"
        "done: false\n"
        "rank: 1.5\n"
        'answer: "no"\n'
        'deep: {"a": [1, null]}\n'
        'lines: "a\\nb"\n'
        "---\nBody"
    )


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), "\ud800", {1, 2}, 10**5000, "x" * 70_000, {"k" * 2000: 1}, [[[[[]]]]] * 5000],
    ids=["NaN", "infinity", "a lone surrogate", "a set", "5,000 digits", "too long", "a long key", "too many"],
)
def test_what_cannot_be_read_back_is_never_written(value):
    with pytest.raises(FrontmatterError):
        compose({"a": value}, "")
    with pytest.raises(FrontmatterError):
        edit("---\nb: 1\n---\n", {"a": value})


@pytest.mark.slow
@given(notes, bodies, st.dictionaries(words, values, max_size=4), st.sampled_from(["\n", "\r\n"]), st.booleans())
@examples(300)
def test_an_edited_note_says_the_new_values_and_keeps_the_others(props, body, changes, newline, bom):
    text = "\ufeff" * bom + compose({"first": 1, **props}, "").replace("\n", newline) + body
    before = read_properties(split(text)[0])
    if {key.casefold() for key in changes} & {key.casefold() for key in before} - (changes.keys() & before.keys()):
        return  # keys that differ by letter case are one: tested below
    if len({key.casefold() for key in changes}) < len(changes):
        return
    edited = edit(text, changes)
    front, rest = split(edited)
    assert rest == body
    kept = {key: value for key, value in {**before, **changes}.items() if key not in changes or value is not None}
    assert as_json(read_properties(front)) == as_json(kept)
    assert edit(edited, changes) == edited
    touched = set(changes)
    for key, lines in lines_of(text).items():
        if key not in touched:
            assert lines in edited
    assert edited.startswith("\ufeff") == bom
    if newline == "\r\n":
        assert front.count("\n") == front.count("\r\n")


def lines_of(text):
    """Each key with its lines, for the form that compose writes."""
    lines, key = {}, ""
    for line in split(text)[0].removeprefix("\ufeff").splitlines(keepends=True)[1:-1]:
        if not line.startswith("  "):
            key = next(iter(read_properties(f"---\n{line}---\n")), "") if ":" in line else key
            lines[key] = ""
        lines[key] = lines.get(key, "") + line
    return lines


HAND_MADE = """---
# made by hand
id:    007   # as written
Tags: [a, "b c"]  # flow

# about the list
list:
- one   # first
- two

  # a comment of the list's end
text: |
  several
  lines

'quoted key' : 'it''s'
tail: x
# the end
---
Body
"""


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        pytest.param({}, "", "", id="nothing"),
        pytest.param({"id": "007", "tail": "x"}, "", "", id="what is there already"),
        pytest.param(
            {"id": "8a"}, "id:    007   # as written", "id: 8a   # as written", id="a scalar, its comment stays"
        ),
        pytest.param({"tags": ["x"]}, 'Tags: [a, "b c"]  # flow', "Tags:  # flow\n  - x", id="the case that is there"),
        pytest.param({"list": None}, "list:\n- one   # first\n- two\n", "", id="a list removed"),
        pytest.param({"list": True}, "list:\n- one   # first\n- two\n", "list: true\n", id="a list becomes a box"),
        pytest.param({"text": "t"}, "text: |\n  several\n  lines\n", "text: t\n", id="a block text"),
        pytest.param({"quoted key": 1}, "'quoted key' : 'it''s'", "'quoted key': 1", id="a quoted key"),
        pytest.param({"new": "v"}, "# the end\n", "# the end\nnew: v\n", id="a new key"),
        pytest.param({"tail": None}, "tail: x\n", "", id="the last key removed"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_edit_touches_only_the_lines_of_its_keys(changes, old, new, newline):
    text = HAND_MADE.replace("\n", newline)
    expected = HAND_MADE.replace(old, new, 1) if old else HAND_MADE
    if changes == {"list": None}:  # the indented comment behind a block list is the list's
        expected = expected.replace("\n  # a comment of the list's end\n", "", 1)
    if changes == {"list": True}:
        expected = expected.replace("\n  # a comment of the list's end\n", "", 1)
    assert edit(text, changes) == expected.replace("\n", newline)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        pytest.param("Body", "---\na: 1\n---\nBody", id="no block"),
        pytest.param("", "---\na: 1\n---\n", id="an empty note"),
        pytest.param("\ufeffx\r\ny", "\ufeff---\r\na: 1\r\n---\r\nx\r\ny", id="BOM and CRLF, no block"),
        pytest.param("---\n---\nx", "---\na: 1\n---\nx", id="an empty block"),
        pytest.param("---\n# c\n---", "---\n# c\na: 1\n---", id="only a comment, no final newline"),
        pytest.param("---\n  b: 2\n---\n", "---\n  b: 2\n  a: 1\n---\n", id="indented keys"),
        pytest.param("---\na:\n---\n", "---\na: 1\n---\n", id="an empty value"),
        pytest.param("---\na: # c\nb: 1\n---\n", "---\na: 1 # c\nb: 1\n---\n", id="an empty value with a comment"),
        pytest.param("---\nb: >\n  t\n\n---\n", "---\nb: >\n  t\n\na: 1\n---\n", id="after a folded text"),
        pytest.param("---\ra: 0\r---\rx", "---\ra: 1\r---\rx", id="bare CR"),
        pytest.param("---\n\n# rule, not properties\n", "---\na: 1\n---\n---\n\n# rule, not properties\n", id="a rule"),
    ],
)
def test_a_property_is_set_in_whatever_is_there(text, result):
    assert edit(text, {"a": 1}) == result
    assert edit(result, {"a": 1}) == result


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("---\na: b: c\n---\nx", id="broken"),
        pytest.param("---\na: 2\na: 3\n---\nx", id="repeated"),
        pytest.param("---\nb: 1\nx", id="unclosed"),
        pytest.param('---\n{"b": 1}\n---\nx', id="a flow mapping"),
        pytest.param("---\n? a\n: 1\n---\nx", id="an explicit key"),
        pytest.param("---\nb: x\u2028a: y\n---\nx", id="a line end that only YAML knows"),
    ],
)
def test_an_edit_that_is_not_safe_is_refused(text):
    with pytest.raises(FrontmatterError):
        edit(text, {"a": "new"})


def test_an_open_block_of_properties_is_told_from_a_rule():
    assert is_unclosed("---\nid: 1\ntext")
    assert not is_unclosed("---\nA thought\n\nwith: colon")
    assert not is_unclosed("---\nid: 1\n---\n")


def test_an_owned_key_is_owned_in_any_letter_case():
    assert is_reserved("Promote")
    assert is_reserved("ID")
    assert not is_reserved("project")


pieces = st.sampled_from(
    "a b : - # ' \" [ ] { } , & * ! | > % @ ` ? ~ \n \n  \t \r é \x00 \x85 \u2028 \ufeff \udc80 --- ... << 1 .5 \\ \\x tags: id:"
    " !!int !!binary !x &a *a {{x}} <%a%>".split(" ")
)
fronts = st.lists(pieces | st.text(max_size=3), max_size=40).map(" ".join) | st.lists(pieces, max_size=40).map("".join)


def survives(inner):
    text = f"---\n{inner}\n---\nbody"
    try:
        json.dumps(read_properties(split(text)[0]))
        edited = edit(text, {"zz": "v"})
    except FrontmatterError:
        return
    assert read_properties(split(edited)[0])["zz"] == "v"


@pytest.mark.slow
@given(fronts)
@examples(1_000)
def test_any_front_matter_is_read_or_refused(inner):
    survives(inner)


@pytest.mark.slow
@given(fronts)
@examples(20_000)
def test_twenty_thousand_front_matters_are_read_or_refused(inner):
    survives(inner)


def test_an_item_of_a_list_that_is_a_mapping_has_a_line_for_each_key():
    text = compose({"a": [{"target": "[[X]]", "w": 1.0, "none": None}, {}, "x"]}, "")
    assert text == '---\na:\n  - target: "[[X]]"\n    w: 1.0\n    none:\n  - {}\n  - x\n---\n'


@pytest.mark.parametrize(
    ("text", "body", "wanted"),
    [
        pytest.param("old", "new", "new", id="no properties"),
        pytest.param("", "new", "new", id="nothing at all"),
        pytest.param("---\na: b\n---\nold", "new", "---\na: b\n---\nnew", id="another body"),
        pytest.param("---\na: b\n---\nold", "", "---\na: b\n---\n", id="no body"),
        pytest.param("---\na: b\n---", "new", "---\na: b\n---\nnew", id="the line end that lacks"),
        pytest.param("---\r\na: b\r\n---", "new", "---\r\na: b\r\n---\r\nnew", id="in the style of the note"),
        pytest.param("---\na: b\n---", "", "---\na: b\n---", id="none is added before nothing"),
    ],
)
def test_another_body_leaves_the_properties_as_they_are(text, body, wanted):
    assert replace_body(text, body) == wanted


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\nd\n", True, id="as Git writes them"),
        pytest.param("<<<<<<<\n=======\n>>>>>>>\n", True, id="without names"),
        pytest.param("<<<<<<< HEAD\r\nb\r\n=======\r\nc\r\n>>>>>>> other\r\n", True, id="CRLF"),
        pytest.param(">>>>>>> other\n=======\n<<<<<<< HEAD\n", False, id="in another order"),
        pytest.param("<<<<<<< HEAD\nb\n=======\nc\n", False, id="one is missing"),
        pytest.param("<<<<<<<HEAD\n=======\n>>>>>>> other\n", False, id="a word that begins so"),
        pytest.param("say <<<<<<< HEAD\n=======\n>>>>>>> other\n", False, id="within a line"),
        pytest.param("A heading\n=======\n", False, id="a heading"),
    ],
)
def test_the_marks_of_a_merge_are_lines_in_their_order(text, left):
    assert has_merge_conflict(text) is left


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("---\na: 1\n---\ntext", {"a": 1}),
        ("text", {}),
        ("---\na: [1\n---\ntext", {}),
    ],
)
def test_properties_that_cannot_be_read_are_none(text, values):
    assert readable_properties(text) == values


@pytest.mark.parametrize("key", ["Größe", "GRÖSSE", " größe ", "Gro\u0308ße"])
def test_keys_are_compared_as_obsidian_does(key):
    assert comparable_key(key) == comparable_key("größe")
