"""Obsidian Bases without Obsidian: is a `.base` file valid, and which notes do its views list?

The grammar and the lists of names follow Obsidian's help. `Base.rows` evaluates only the syntax that `Review.base` needs. It
refuses other syntax, so a table that uses more fails its tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml


def _words(text: str) -> set[str]:
    return set(text.split())


GLOBALS = _words("if date now today duration file link list html icon image number max min random escapeHTML")
METHODS = _words(
    """isTruthy isType toString contains containsAll containsAny isEmpty slice reverse lower title trim replace split
    startsWith endsWith repeat filter map reduce join sort flat unique abs ceil floor round toFixed format time relative
    hasTag hasLink hasProperty inFolder asLink asFile linksTo keys values matches date"""
)
FILE = _words("name basename path folder ext size ctime mtime tags links backlinks embeds properties file")
FIELDS = _words("length year month day hour minute second millisecond days")
SUMMARIES = _words("Average Min Max Sum Range Median Stddev Earliest Latest Checked Unchecked Empty Filled Unique")
VIEW = _words("type name filters order sort groupBy limit summaries rowHeight columnSize cardSize image imageFit")
TOP = {"filters", "formulas", "properties", "summaries", "views"}
TOKEN = re.compile(
    r"""\s*(?:(?P<num>\d+(?:\.\d+)?)|(?P<str>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?P<name>[^\W\d][\w$]*)
    |(?P<op>\|\||&&|==|!=|<=|>=|[-+*/%<>!().,\[\]]))""",
    re.VERBOSE,
)
LEVELS = (("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/", "%"))


class Invalid(ValueError):
    """Obsidian would show an error for this base, or silently ignore a part of it."""


@dataclass(frozen=True)
class Note:
    """A file with the properties that a base reads."""

    path: str
    properties: Mapping[str, Any]

    @property
    def file(self) -> dict[str, str]:
        folder, _, name = self.path.rpartition("/")
        base, _, ext = name.rpartition(".")
        return {"path": self.path, "folder": folder, "name": base, "basename": base, "ext": ext}


def parsed(text: str) -> Any:
    """Return an expression as a tree of tuples. Raises Invalid if it has a syntax error."""
    tokens, at = [], 0
    while at < len(text.rstrip()):
        found = TOKEN.match(text, at)
        if not found:
            raise Invalid(f"{text!r} at {at}")
        tokens.append((found.lastgroup, found[found.lastgroup]))
        at = found.end()
    tree, rest = _binary(tokens, 0)
    if rest:
        raise Invalid(f"{text!r}: {rest} is left over")
    return tree


def _binary(tokens: list[Any], level: int) -> tuple[Any, list[Any]]:
    if level == len(LEVELS):
        return _unary(tokens)
    left, tokens = _binary(tokens, level + 1)
    while tokens and tokens[0][0] == "op" and tokens[0][1] in LEVELS[level]:
        sign = tokens[0][1]
        right, tokens = _binary(tokens[1:], level + 1)
        left = (sign, left, right)
    return left, tokens


def _unary(tokens: list[Any]) -> tuple[Any, list[Any]]:
    if tokens[:1] in ([("op", "!")], [("op", "-")]):
        inner, rest = _unary(tokens[1:])
        return (f"unary{tokens[0][1]}", inner), rest
    tree, tokens = _atom(tokens)
    while tokens and tokens[0] in (("op", "."), ("op", "[")):
        if tokens[0][1] == "[":
            index, tokens = _binary(tokens[1:], 0)
            tokens = _closed(tokens, "]")
            tree = ("index", tree, index)
            continue
        if len(tokens) < 2 or tokens[1][0] != "name":
            raise Invalid("a dot without a name")
        name, tokens = tokens[1][1], tokens[2:]
        if tokens[:1] == [("op", "(")]:
            given, tokens = _arguments(tokens[1:])
            if name not in METHODS:
                raise Invalid(f"no method {name}")
            tree = ("method", tree, name, given)
        else:
            if tree == ("name", "file") and name not in FILE:
                raise Invalid(f"no file.{name}")
            if tree[0] != "name" and name not in FIELDS:
                raise Invalid(f"no field {name}")
            tree = ("field", tree, name)
    return tree, tokens


def _atom(tokens: list[Any]) -> tuple[Any, list[Any]]:  # noqa: PLR0911 - one a kind
    if not tokens:
        raise Invalid("it ends too soon")
    (kind, text), rest = tokens[0], tokens[1:]
    if kind == "num":
        return ("value", float(text)), rest
    if kind == "str":
        return ("value", re.sub(r"\\(.)", r"\1", text[1:-1])), rest
    if kind == "name":
        if text in ("true", "false", "null"):
            return ("value", {"true": True, "false": False, "null": None}[text]), rest
        if rest[:1] == [("op", "(")]:
            given, rest = _arguments(rest[1:])
            if text not in GLOBALS:
                raise Invalid(f"no function {text}")
            return ("call", text, given), rest
        return ("name", text), rest
    if text == "(":
        tree, rest = _binary(rest, 0)
        return tree, _closed(rest, ")")
    if text == "[":
        given, rest = _arguments(rest, "]")
        return ("list", given), rest
    raise Invalid(f"{text!r} where a value belongs")


def _arguments(tokens: list[Any], end: str = ")") -> tuple[list[Any], list[Any]]:
    given: list[Any] = []
    while tokens[:1] != [("op", end)]:
        one, tokens = _binary(tokens, 0)
        given.append(one)
        if tokens[:1] == [("op", ",")]:
            tokens = tokens[1:]
        elif tokens[:1] != [("op", end)]:
            raise Invalid("arguments are not closed")
    return given, tokens[1:]


def _closed(tokens: list[Any], sign: str) -> list[Any]:
    if tokens[:1] != [("op", sign)]:
        raise Invalid(f"{sign} is missing")
    return tokens[1:]


def value(tree: Any, note: Note) -> Any:  # noqa: PLR0911 - one a kind
    """Return the value of an expression for a note."""
    match tree:
        case ("value", known):
            return known
        case ("list", given):
            return [value(one, note) for one in given]
        case ("field", ("name", "note"), name):
            return note.properties.get(name)
        case ("field", ("name", "file"), name):
            return note.file[name]
        case ("unary!", inner):
            return not value(inner, note)
        case ("&&", left, right):
            return value(left, note) and value(right, note)
        case ("||", left, right):
            return value(left, note) or value(right, note)
        case ("==", left, right):
            return value(left, note) == value(right, note)
        case ("!=", left, right):
            return value(left, note) != value(right, note)
        case ("call", "if", [condition, then, other]):
            return value(then, note) if value(condition, note) else value(other, note)
        case ("method", inner, name, given):
            return _method(value(inner, note), name, [value(one, note) for one in given])
    raise Invalid(f"{tree!r} is not known here")


def _method(own: Any, name: str, given: list[Any]) -> Any:
    if name == "isEmpty" and not given:
        return own in (None, "", [], {})
    if own is None:
        raise Invalid(f"null has no {name}")
    match name, given:
        case "lower", []:
            return own.lower()
        case "startsWith", [prefix]:
            return own.startswith(prefix)
        case "endsWith", [suffix]:
            return own.endswith(suffix)
    raise Invalid(f"{name} is not known here")


class _Strict(yaml.SafeLoader):
    """YAML without tags, anchors and repeated keys."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise Invalid(f"a key is there twice: {keys}")
        return super().construct_mapping(node, deep=deep)


class Base:
    """A valid `.base` file. Raises Invalid with the reason for an invalid file."""

    def __init__(self, text: str) -> None:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if getattr(event, "anchor", None) or (getattr(event, "tag", None) and event.tag != "tag:yaml.org,2002:str"):
                raise Invalid("tags and anchors are not read")
        self.tree = yaml.load(text, Loader=_Strict)  # a safe loader
        if not isinstance(self.tree, dict) or self.tree.keys() - TOP:
            raise Invalid("the top is not a mapping of known keys")
        if not text.endswith("\n"):
            raise Invalid("the last line has no end")
        self._check()

    def _check(self) -> None:
        self._filter(self.tree.get("filters"))
        for name, own in self.tree.get("properties", {}).items():
            if not re.match(r"(?:note|file|formula)\.", name) or not isinstance(own.get("displayName"), str):
                raise Invalid(f"properties: {name}")
        formulas = self.tree.get("formulas", {})
        for expression in formulas.values():
            parsed(expression)
        names = [view["name"] for view in self.tree["views"]]
        if len(names) != len(set(names)):
            raise Invalid("two views have one name")
        for view in self.tree["views"]:
            if view["type"] not in ("table", "cards", "list") or not isinstance(view["name"], str):
                raise Invalid("a view without a type or name")
            if view.keys() - VIEW:
                raise Invalid(f"unknown keys {view.keys() - VIEW}")
            self._filter(view.get("filters"))
            for column in [*view["order"], *view.get("summaries", {}), *view.get("columnSize", {})]:
                where, _, name = column.partition(".")
                known = {"note": bool(name), "file": name in FILE, "formula": name in formulas}
                if not known.get(where):
                    raise Invalid(f"column {column}")
            for one in view.get("sort", ()):
                if set(one) != {"property", "direction"} or one["direction"] not in ("ASC", "DESC"):
                    raise Invalid(f"sort {one}")
            if "limit" in view and (type(view["limit"]) is not int or view["limit"] < 1):
                raise Invalid("limit")
            if set(view.get("summaries", {}).values()) - SUMMARIES:
                raise Invalid("summaries")

    def _filter(self, one: Any) -> None:
        if one is None:
            return
        if isinstance(one, str):
            parsed(one)
        elif isinstance(one, dict) and len(one) == 1 and next(iter(one)) in ("and", "or", "not"):
            (inner,) = one.values()
            if not isinstance(inner, list):
                raise Invalid("a filter that is no list")
            for part in inner:
                self._filter(part)
        else:
            raise Invalid(f"filter {one!r}")

    def column(self, formula: str, note: Note) -> Any:
        """Return the content of a formula's column for a note."""
        return value(parsed(self.tree["formulas"][formula]), note)

    def rows(self, view: str, notes: list[Note]) -> list[str]:
        """Return the paths of the notes that a view lists, in its order."""
        own = next(one for one in self.tree["views"] if one["name"] == view)
        wanted = [one for one in (self.tree.get("filters"), own.get("filters")) if one is not None]
        found = [note for note in notes if all(_passes(one, note) for one in wanted)]
        for one in reversed(own.get("sort", ())):
            found.sort(
                key=lambda note: str(note.properties.get(one["property"].removeprefix("note.")) or ""),
                reverse=one["direction"] == "DESC",
            )
        return [note.path for note in found][: own.get("limit")]


def _passes(one: Any, note: Note) -> bool:
    if isinstance(one, str):
        return bool(value(parsed(one), note))
    ((how, inner),) = one.items()
    passed = [_passes(part, note) for part in inner]
    return {"and": all(passed), "or": any(passed), "not": not any(passed)}[how]
