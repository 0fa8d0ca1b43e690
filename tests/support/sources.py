"""The source files of the project as values: their text, their syntax tree, and the modules that they import."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.paths import ROOT

PACKAGES = ("index", "syncd", "mcp_server", "vault_fixtures")


@dataclass(frozen=True, slots=True)
class Source:
    """One module; `path` is relative to the project."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.text)

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Return all nodes of the tree, in the order of `ast.walk`."""
        return _nodes(self.text)

    @property
    def top(self) -> str:
        """Return the top-level package."""
        return self.path.partition("/")[0]

    @property
    def module(self) -> str:
        """Return the dotted name; of an `__init__.py` the name of its package."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def stem(self) -> str:
        return self.path.rpartition("/")[2].removesuffix(".py")


@cache
def _parsed(text: str) -> ast.Module:
    """Parse a module once, because every rule reads every module."""
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.freeze()  # the tree stays to the end, so the garbage collector need not go through it again and again
        gc.enable()


@cache
def _nodes(text: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a tree; kept, because many tests walk through the same trees."""
    return tuple(ast.walk(_parsed(text)))


def sources(*tops: str) -> list[Source]:
    """Return all modules of these top-level packages (of the product if none is named), in the order of their paths."""
    files = (file for top in tops or PACKAGES for file in (ROOT / top).rglob("*.py"))
    kept = (file for file in sorted(files) if not {"demo", "node_modules"} & set(file.parts))
    return [Source(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in kept]


@cache
def imports(source: Source) -> tuple[tuple[str, bool], ...]:
    """Return the modules that a source imports, and whether it imports them when it is itself imported.

    `from a import b` gives both `a` and `a.b`, because `b` may be a module. The result includes imports inside functions,
    imports under `TYPE_CHECKING`, and imports by name."""
    return tuple(_imports(source))


def _imports(source: Source) -> Iterator[tuple[str, bool]]:
    deep: set[int] = set()
    for outer in source.nodes:  # an outer function comes before those inside it
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and id(outer) not in deep:
            deep |= {id(node) for node in ast.walk(outer)}
    for node in source.nodes:
        at_once = id(node) not in deep
        match node:
            case ast.Import(names=names):
                yield from ((name.name, at_once) for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                folders = source.path.split("/")[:-1]
                base = (
                    ".".join([*folders[: len(folders) - level + 1], *([module] if module else [])])
                    if level
                    else module or ""
                )
                yield base, at_once
                yield from ((f"{base}.{name.name}", at_once) for name in names)
            case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]) if called(func) in (
                "import_module",
                "__import__",
            ):
                yield name, at_once


def called(func: ast.expr) -> str:
    """Return the name of a called function; "" if it has no name."""
    match func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def literals(path: Path, form: re.Pattern[str], *, plain: Collection[str]) -> Iterator[str]:
    """Yield the texts of a module that have this form, as patterns, those in `plain` as they are; none that is only logged or raised."""
    if not form.search(source := path.read_text()):
        return
    tree = ast.parse(source)
    skipped = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Raise) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if is_method and ast.unparse(node.func.value) == "log":
            skipped |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(inner) for inner in node.values}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = re.escape(node.value)
        elif isinstance(node, ast.JoinedStr):
            text = "".join(re.escape(part.value) if isinstance(part, ast.Constant) else ".*" for part in node.values)
        else:
            continue
        bare = text.replace("\\", "")
        if form.match(bare) and "\n" not in bare:
            yield bare if bare in plain else text
