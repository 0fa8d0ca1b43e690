"""No pattern repeats a group as `(?:…)*+`, which Python 3.11.0 to 3.11.4 misread: `possessive` writes it for every version."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WRITER = ROOT / "index/deferred_patterns.py"  # it tries one
FILES = [
    file
    for folder in ("index", "mcp_server", "syncd", "vault_fixtures")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if file != WRITER
]
GROUP = re.compile(r"(?<![\\(])\)(?:[*+?]|\{\d*,?\d*\})\+")
SINGLE = {"LITERAL", "NOT_LITERAL", "ANY", "IN"}  # what every version repeats possessively


def texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
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
    assert len(FILES) > 300
    wrong = {
        f"{file.relative_to(ROOT)}: {text}"
        for file in FILES
        for text in texts(ast.parse(file.read_text()))
        if GROUP.search(text)
    }
    assert not wrong, "use index.deferred_patterns.possessive"


def test_where_groups_are_misread_no_module_has_a_pattern_with_one():
    assert has_possessive_group(re._parser.parse("a(?:bc)*+"))
    assert not has_possessive_group(re._parser.parse("(?>(?:a|bc)*)[ab]*+.++"))
    ran = subprocess.run([sys.executable, __file__], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    seen, *wrong = ran.stdout.splitlines()
    assert int(seen) > 200
    assert not wrong, "use index.deferred_patterns.possessive"


def print_patterns() -> None:
    """Print how many patterns the modules have where groups are misread, and those with a possessive group."""
    sys.path.insert(0, str(ROOT))
    deferred = importlib.import_module("index.deferred_patterns")
    deferred.possessive.__kwdefaults__["misread"] = True
    patterns: dict[str, str] = {}
    for file in FILES:
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if not name.endswith("__main__"):
            for variable, value in vars(importlib.import_module(name)).items():
                if isinstance(text := getattr(value, "pattern", None), str):
                    patterns[f"{name}.{variable}"] = text
    sys.stdout.write(f"{len(patterns)}\n")
    for place, text in patterns.items():
        if has_possessive_group(re._parser.parse(text)):
            sys.stdout.write(f"{place}: {text!r}\n")


if __name__ == "__main__":
    print_patterns()
