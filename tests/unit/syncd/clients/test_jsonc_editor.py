"""syncd/clients/jsonc_editor.py: one member is set or removed, and all else stays byte for byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncd.clients.jsonc_editor import DEEPEST, read_jsonc, remove_member, set_member

PATH = ("mcpServers", "memex")
ENTRY = {"url": "http://127.0.0.1:8765/mcp/core"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", '{\n  "mcpServers": {\n    "memex": 1\n  }\n}\n', id="an empty file"),
        pytest.param(
            "// mine", '// mine\n{\n  "mcpServers": {\n    "memex": 1\n  }\n}\n', id="a comment without a line end"
        ),
        pytest.param('{"a":1}', '{"a":1,\n  "mcpServers": {\n    "memex": 1\n  }\n}', id="one line"),
        pytest.param(
            '{\n  "mcpServers": {\n    "x": 2 // two\n    /* more */\n  }\n}\n',
            '{\n  "mcpServers": {\n    "x": 2, // two\n    /* more */\n    "memex": 1\n  }\n}\n',
            id="behind comments",
        ),
        pytest.param(
            '{\n\t"mcpServers": {\n\t\t"x": 2,\n\t},\n}\n',
            '{\n\t"mcpServers": {\n\t\t"x": 2,\n\t\t"memex": 1,\n\t},\n}\n',
            id="tabs and trailing commas",
        ),
        pytest.param(
            '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
            '{\n  "mcpServers": {\n    // none yet\n    "memex": 1\n  }\n}\n',
            id="into an object that has a comment alone",
        ),
        pytest.param('{"mcpServers": {"memex": 0, "z": 1}}', '{"mcpServers": {"memex": 1, "z": 1}}', id="in place"),
        pytest.param(
            '{\r\n  "a": 1\r\n}', '{\r\n  "a": 1,\r\n  "mcpServers": {\r\n    "memex": 1\r\n  }\r\n}', id="CRLF"
        ),
        pytest.param(
            '{"mcpServers": {"memex": 0, "memex": 2}}',
            '{"mcpServers": {"memex": 0, "memex": 1}}',
            id="the last of two counts",
        ),
    ],
)
def test_a_member_is_set_where_a_person_would_write_it(before, after):
    assert set_member(before, PATH, 1) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            '{\n  "mcpServers": {\n    "x": 2, // two\n    "memex": {\n      "url": 1\n    }\n  }\n}\n',
            '{\n  "mcpServers": {\n    "x": 2 // two\n  }\n}\n',
            id="the last one",
        ),
        pytest.param(
            '{"mcpServers": {"memex": 1, /* of z */ "z": 1}}',
            '{"mcpServers": { /* of z */ "z": 1}}',
            id="the first one",
        ),
        pytest.param('{"mcpServers": {"a": 1, "memex": 1,}}', '{"mcpServers": {"a": 1, }}', id="with a trailing comma"),
        pytest.param('{"mcpServers": {"memex": 1, "memex": 2}}', '{"mcpServers": { }}', id="both of two"),
        pytest.param(
            '{"a": [1, 2,], "b": "}// no comment"}', '{"a": [1, 2,], "b": "}// no comment"}', id="nothing there"
        ),
    ],
)
def test_a_member_is_removed_and_comments_stay(before, after):
    assert remove_member(before, PATH) == after


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '"x"',
        "{",
        '{"a" 1}',
        "{'a': 1}",
        '{"a": 1 "b": 2}',
        "{a: 1}",
        '{"a": nan}',
        '{"a": "\n"}',
        "{} {}",
        '{"a": /* 1}',
    ],
)
def test_what_is_not_jsonc_is_refused(text):
    for edit in (lambda: set_member(text, PATH, 1), lambda: remove_member(text, PATH)):
        with pytest.raises(ValueError, match=r"line \d+ is not JSON|an object"):
            edit()


def test_a_value_in_the_way_and_one_too_deep_are_refused():
    with pytest.raises(ValueError, match="not an object"):
        set_member('{"mcpServers": []}', PATH, 1)
    with pytest.raises(ValueError, match="nested more than"):
        read_jsonc('{"a":' * (DEEPEST + 2) + "1" + "}" * (DEEPEST + 2))


BLANKS = st.lists(
    st.sampled_from([" ", "\n", "\t", '// {not} "this",\n', "/* nor, } this */", "\n  "]), max_size=3
).map("".join)
KEYS = st.sampled_from(["mcpServers", "memex", "a", 'ü "q"', "//"])
VALUES = st.recursive(
    st.one_of(
        st.integers(), st.booleans(), st.none(), st.text(max_size=4), st.floats(allow_nan=False, allow_infinity=False)
    ),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(KEYS, part, max_size=3),
    max_leaves=8,
)


def test_half_a_surrogate_pair_stays_an_escape():
    data = {"a": "\ud83d ü 😀 \\", "\udc00": [1]}
    text = set_member("{}", PATH, data)
    assert '"a": "\\ud83d ü 😀 \\\\"' in text.encode().decode()
    assert read_jsonc(text)["mcpServers"]["memex"] == data


@st.composite
def texts(draw, value):
    """JSON with comments and trailing commas that says `value`."""
    blank = lambda: draw(BLANKS)  # noqa: E731
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
        items = [
            blank() + ("" if key is None else json.dumps(key) + blank() + ":" + blank()) + draw(texts(item)) + blank()
            for key, item in pairs
        ]
        inner = ",".join(items) + ("," + blank() if items and draw(st.booleans()) else blank())
        return ("{%s}" if isinstance(value, dict) else "[%s]") % inner
    return json.dumps(value)


@given(st.data())
def test_any_text_keeps_its_comments_and_its_other_values(data):
    value = data.draw(st.dictionaries(KEYS, VALUES, max_size=3))
    text = data.draw(BLANKS) + data.draw(texts(value)) + data.draw(BLANKS)
    assert read_jsonc(text) == value
    wanted = json.loads(json.dumps(value))
    here = wanted.setdefault("mcpServers", {})
    if not isinstance(here, dict):
        with pytest.raises(ValueError, match="not an object"):
            set_member(text, PATH, ENTRY)
        return
    had = "memex" in here
    here["memex"] = ENTRY
    edited = set_member(text, PATH, ENTRY)
    assert read_jsonc(edited) == wanted
    if not had:  # nothing but the entry is new: all that stood there stands there still, in order
        rest = iter(edited)
        assert all(char in rest for char in text if not char.isspace())
    assert set_member(edited, PATH, ENTRY) == edited or had
    del here["memex"]
    cleared = remove_member(edited, PATH)
    assert read_jsonc(cleared) == wanted
    assert had or cleared.count("nor, } this") == text.count("nor, } this")  # else some stood in the entry
