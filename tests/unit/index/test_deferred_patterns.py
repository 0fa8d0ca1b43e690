"""Patterns that are compiled when they are first used, and groups that repeat and give nothing back."""

from __future__ import annotations

import re
from unittest.mock import patch

import pytest

from index.deferred_patterns import compile_later, possessive


def test_a_pattern_is_compiled_once_and_at_its_first_use():
    with patch("re.compile", wraps=re.compile) as compiled:
        weir = compile_later(r"(?P<place>weir) (\d)", re.IGNORECASE)
        assert compiled.call_count == 0
        assert weir.fullmatch("Weir 7")["place"] == "Weir"
        assert (weir.sub("pond", "at weir 7"), weir.findall("WEIR 1 WEIR 2")) == (
            "at pond",
            [("WEIR", "1"), ("WEIR", "2")],
        )
        assert (weir.pattern, weir.flags & re.IGNORECASE, weir.groups) == (r"(?P<place>weir) (\d)", re.IGNORECASE, 2)
        assert compiled.call_count == 1


def test_a_wrong_expression_is_an_error_at_its_first_use():
    wrong = compile_later("(")
    with pytest.raises(re.error, match="missing"):
        wrong.search("weir")


@pytest.mark.parametrize(
    ("body", "repeat", "text", "length"),
    [
        pytest.param(r"[^\[\]]|\[(?!\[)|\](?!\])", "+", "a[b]c]]", 5, id="a wikilink"),
        pytest.param(r"[^\"\\]|\\.", "*", r"a\"b\"" + '"', 6, id="a quoted text"),
        pytest.param("ab?", "{2,3}", "aababa", 5, id="a number of times"),
    ],
)
def test_every_version_of_python_reads_a_group_that_gives_nothing_back(body, repeat, text, length):
    for group in (possessive(body, repeat), possessive(body, repeat, misread=True)):
        match = re.match(group, text)
        assert match is not None
        assert match.end() == length
        assert not re.fullmatch(rf"{group}.{{{len(text) - length + 1}}}", text), "it gives nothing back"
