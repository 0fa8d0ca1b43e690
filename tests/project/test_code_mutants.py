"""Which changes are made to a module whose tests are tried."""

from __future__ import annotations

import pytest

from tests.support.code_mutants import mutants


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        pytest.param("x = a < 2", {"a <= 2", "a >= 2", "a < 3", "a < 1"}, id="a comparison and a number"),
        pytest.param("x = 0.5", {"0.55", "0.45"}, id="a threshold"),
        pytest.param("x = a and b and c", {"a or b or c", "b and c", "a and c", "a and b"}, id="a condition"),
        pytest.param("x = not a", {"a"}, id="a negation"),
        pytest.param("x = a + b", {"a - b"}, id="arithmetic"),
        pytest.param("x = True", {"False"}, id="a truth"),
        pytest.param("x = b if a else c", {"c if a else b"}, id="a choice"),
    ],
)
def test_an_expression_changes_in_one_place_at_a_time(source, changed):
    assert {mutant.source for mutant in mutants(source)} == {f"x = {text}" for text in changed}


def test_statements_change_and_annotations_and_documentation_do_not():
    source = 'def f(a: "int | None" = None) -> int | None:\n    """Two | three."""\n    if a:\n        return a\n    n -= a\n'
    assert [(mutant.line, mutant.after) for mutant in mutants(source)] == [
        (3, "if not a:"),
        (4, "return"),
        (5, "n += a"),
    ]
