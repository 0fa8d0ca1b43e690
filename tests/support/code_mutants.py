"""Change a module in one place at a time and see which changes no test notices: python -m tests.support.code_mutants MODULE TEST...

Each mutant runs in a temporary copy of the tree, never in the tree itself. The same module gives the same mutants in the same order."""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.paths import ROOT

_SWAPS = """Add Sub, Sub Add, Mult Div, Div Mult, FloorDiv Mult, Mod Mult, BitAnd BitOr, BitOr BitAnd, And Or, Or And,
    Lt LtE GtE, LtE Lt Gt, Gt GtE LtE, GtE Gt Lt, Eq NotEq, NotEq Eq, Is IsNot, IsNot Is, In NotIn, NotIn In"""
OTHERS = {name: others for name, *others in map(str.split, _SWAPS.split(","))}  # by operator: what takes its place
SKIPPED = {"annotation", "returns", "decorator_list", "type_comment"}  # what no test could notice


class Mutant(NamedTuple):
    """A module with one change."""

    line: int
    before: str
    after: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Yield the mutants of a module, in the order of its text."""
    whole = ast.unparse(tree := ast.parse(source))
    for nodes, place in sorted(_places(tree), key=lambda site: (site[0][site[1]].lineno, site[0][site[1]].col_offset)):
        node = nodes[place]
        for changed in _changed(node):
            nodes[place] = changed
            text = ast.unparse(ast.fix_missing_locations(tree))
            nodes[place] = node
            if text != whole:
                yield Mutant(
                    node.lineno, *(ast.unparse(each).partition("\n")[0][:90] for each in (node, changed)), text
                )


def _places(node: ast.AST) -> Iterator[tuple[Any, Any]]:
    """Yield the places of changeable expressions and statements: a list and a position, or the fields of a node and a name."""
    for field, value in ast.iter_fields(node):
        if field in SKIPPED or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            continue
        nodes, places = (value, range(len(value))) if isinstance(value, list) else (vars(node), [field])
        for place in places:
            if isinstance(nodes[place], ast.expr | ast.stmt):
                yield nodes, place
            if isinstance(nodes[place], ast.AST):
                yield from _places(nodes[place])


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the possible replacements of a node."""
    match node:
        case ast.Compare(left, ops, comparators):
            for n, op in enumerate(ops):
                for other in _others(op):
                    yield ast.Compare(left, [*ops[:n], other, *ops[n + 1 :]], comparators)
        case ast.BinOp(left, op, right):
            yield from (ast.BinOp(left, other, right) for other in _others(op))
        case ast.AugAssign(target, op, value):
            yield from (ast.AugAssign(target, other, value) for other in _others(op))
        case ast.BoolOp(op, values):
            yield from (ast.BoolOp(other, values) for other in _others(op))
            for n in range(len(values)):
                rest = [*values[:n], *values[n + 1 :]]
                yield ast.BoolOp(op, rest) if len(rest) > 1 else rest[0]
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            step = 1 if isinstance(value, int) else value / 10  # a threshold a tenth more, a tenth less
            yield from (ast.Constant(round(value + step, 6)), ast.Constant(round(value - step, 6)))
        case ast.Return(ast.expr()) if ast.unparse(node) != "return None":
            yield ast.Return(None)
        case ast.If(test, body, orelse) if not isinstance(test, (ast.Compare, ast.UnaryOp)):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)


def _others(op: ast.AST) -> list[Any]:
    return [getattr(ast, name)() for name in OTHERS.get(type(op).__name__, ())]


def passes(root: Path, tests: Sequence[str], seconds: float) -> bool | None:
    """Return whether the tests pass in a tree; None when they take longer than `seconds`."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    apart: Any = {"cwd": root, "env": os.environ | {"PYTHONPATH": str(root)}, "start_new_session": True}
    with subprocess.Popen(command, **apart, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT) as process:
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None


def copied(root: Path) -> None:
    """Copy the files that Git tracks, and the new files that Git does not ignore."""
    listed = subprocess.check_output(["git", "ls-files", "-zco", "--exclude-standard"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)


def main() -> None:
    """Print the outcome of each mutant, and the number of survivors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--most", type=int, metavar="N", help="try N mutants, spread evenly over the module")
    asked, write = parser.parse_args(), sys.stdout.write
    every = list(mutants((ROOT / asked.module).read_text(encoding="utf-8")))
    count = min(asked.most or len(every), len(every))
    outcomes = {"killed": 0, "survived": 0, "timed out": 0}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        root = Path(folder)
        copied(root)
        started = time.monotonic()
        if not passes(root, asked.tests, 600):
            sys.exit("The tests fail on the unchanged module, so no mutant can be compared with it.")
        limit = 10 + 3 * (time.monotonic() - started)
        for mutant in (every[n * len(every) // count] for n in range(count)):
            for cached in (root / asked.module).parent.glob(f"__pycache__/{Path(asked.module).stem}.*"):
                cached.unlink()
            (root / asked.module).write_text(mutant.source, encoding="utf-8")
            passed = passes(root, asked.tests, limit)
            outcome = {True: "survived", False: "killed", None: "timed out"}[passed]
            outcomes[outcome] += 1
            write(f"{outcome:9} {asked.module}:{mutant.line}  {mutant.before}  ->  {mutant.after}\n")
            sys.stdout.flush()
    write(f"{count} of {len(every)} mutants: {', '.join(f'{n} {name}' for name, n in outcomes.items())}\n")


if __name__ == "__main__":
    main()
