"""No pattern repeats a group as `(?:…)*+`, which Python 3.11.0 to 3.11.4 misread: `possessive` writes it for every version."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
WRITER = ROOT / "index/deferred_patterns.py"  # it tries one
FOLDERS = ("index", "mcp_server", "syncd", "vault_fixtures")
GROUP = re.compile(r"(?<![\\(])\)(?:[*+?]|\{\d*,?\d*\})\+")


def texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_pattern_has_a_possessive_group():
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py") if file != WRITER]
    assert len(files) > 300
    wrong = {
        f"{file.relative_to(ROOT)}: {text}"
        for file in files
        for text in texts(ast.parse(file.read_text()))
        if GROUP.search(text)
    }
    assert not wrong, "use index.deferred_patterns.possessive"
