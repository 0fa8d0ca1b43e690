"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import re
from unittest.mock import patch

import pytest

from index.deferred_patterns import compile_later


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
