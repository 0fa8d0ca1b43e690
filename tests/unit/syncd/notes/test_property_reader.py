"""Properties in a simple form are read without YAML's parser, and as YAML's parser reads them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syncd.notes import property_reader
from syncd.notes.property_reader import FrontmatterError, scan
from tests.support.example_counts import examples

SIMPLE = (
    "id: node-7\ntype: entity\nname: Zoë's café (2)\ncreated_at: 2026-01-02T10:00:00.000Z\nversion: 3\nshare: 0.5\ndone: true\n"
    'empty:\nfile: "[[Captures/default/a b.pdf]]"\ntags:\n  - one\n  - "two: three"\naliases:\n- x\n'
)
_PIECES = st.sampled_from(
    [*"ab1_- .:,;/@#&*!|>%'\"[]{}?=+()~^$\\é中٣\t\r\u00a0\u2028\ufeff", ": ", " #", "- ", "---", "null", "true", "1.50"]
)
_VALUES = st.lists(_PIECES, max_size=5).map("".join)
_LINES = st.one_of(
    st.tuples(st.sampled_from(["a: ", "b_1: ", "c-d:", "é: ", "", "- ", "  - ", "    - "]), _VALUES).map("".join),
    _VALUES.map('a: "{}"'.format),
    _VALUES.map('  - "{}"'.format),
)


@examples(500)
@given(st.lists(_LINES, min_size=1, max_size=4).map(lambda lines: "".join(f"{line}\n" for line in lines)))
@example(SIMPLE)
@example("a:\n- x\n  - y\n")
@example("a: b\n  c\n")
@example("a: 'x'\na: y\n")
@example("".join(f"k{number}: 1\n" for number in range(2_600)))
def test_what_is_read_without_yaml_is_what_yaml_reads(inner):
    try:
        expected = property_reader._Reader().read(inner)
    except (FrontmatterError, property_reader.yaml.YAMLError):
        assert property_reader._read_simple(inner) is None
        return
    simple = property_reader._read_simple(inner)
    assert simple is None or repr(simple) == repr(expected)


def test_most_properties_need_no_parser(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError

    expected = scan(SIMPLE)
    monkeypatch.setattr(property_reader.yaml, "parse", refuse)
    assert scan(SIMPLE) == expected
    assert expected.values["tags"] == ["one", "two: three"] and expected.values["empty"] is None
    with pytest.raises(AssertionError):
        scan("a: {b: c}\n")
