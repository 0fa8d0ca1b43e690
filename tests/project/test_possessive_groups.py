"""No pattern repeats a group as `(?:…)*+`, which Python 3.11.0 to 3.11.4 misread: `possessive` writes it for every version."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.sources import Source, sources

WRITER = "index/deferred_patterns.py"  # it tries one
GROUP = re.compile(r"(?<![\\(])\)(?:[*+?]|\{\d*,?\d*\})\+")
SINGLE = {"LITERAL", "NOT_LITERAL", "ANY", "IN"}  # what every version repeats possessively


def modules() -> list[Source]:
    return [source for source in sources() if source.path != WRITER]


def texts(source: Source) -> Iterator[str]:
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def has_possessive_group(items: Iterable[Any]) -> bool:
    """Whether a parsed pattern repeats more than one character possessively, also deep inside."""
    for item in items:
        if isinstance(item, tuple) and len(item) == 2 and str(item[0]) == "POSSESSIVE_REPEAT":
            body = list(item[1][2])
            if len(body) != 1 or str(body[0][0]) not in SINGLE:
                return True
        if isinstance(item, list | tuple | re._parser.SubPattern) and has_possessive_group(item):
            return True
    return False


def test_no_text_has_a_possessive_group():
    assert len(modules()) > 300
    wrong = {f"{source.path}: {text}" for source in modules() for text in texts(source) if GROUP.search(text)}
    assert not wrong, "use index.deferred_patterns.possessive"


@pytest.mark.slow  # it imports every module anew; the test above reads their texts
def test_where_groups_are_misread_no_module_has_a_pattern_with_one():
    assert has_possessive_group(re._parser.parse("a(?:bc)*+"))
    assert not has_possessive_group(re._parser.parse("(?>(?:a|bc)*)[ab]*+.++"))
    ran = subprocess.run(
        [sys.executable, "-m", "tests.project.test_possessive_groups"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    seen, *wrong = ran.stdout.splitlines()
    assert int(seen) > 200
    assert not wrong, "use index.deferred_patterns.possessive"


def imports_models_only(source: Source) -> bool:
    """Whether a module compiles nothing, and imports libraries that take eight seconds to import."""
    return "\nfrom sentence_transformers import" in source.text and "compile" not in source.text


def print_patterns() -> None:
    """Print how many patterns the modules have where groups are misread, and those with a possessive group."""
    deferred = importlib.import_module("index.deferred_patterns")
    deferred.possessive.__kwdefaults__["misread"] = True
    patterns: dict[str, str] = {}
    for source in modules():
        if source.stem == "__main__" or imports_models_only(source):
            continue
        for variable, value in vars(importlib.import_module(source.module)).items():
            if isinstance(text := getattr(value, "pattern", None), str):
                patterns[f"{source.module}.{variable}"] = text
    sys.stdout.write(f"{len(patterns)}\n")
    for place, text in patterns.items():
        if has_possessive_group(re._parser.parse(text)):
            sys.stdout.write(f"{place}: {text!r}\n")


if __name__ == "__main__":
    print_patterns()
