"""Read the graph from files without the code under test: an oracle, as short as the format allows.

It reads only plain notes, such as tools write and people edit in the tests: no comments, no CRLF, no fences around items."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_ITEM = re.compile(r"^[-*+] (.*)$")
_ID = re.compile(r"(?:^|\s)\^o(\d+)$")
_HEADING = re.compile(r"^(#{1,6}) (.*)$")
_RELATION = re.compile(r"^(?:[-*+] )?\[?([^:\[\]]+):: (.*)$")
_LINK = re.compile(r"\[\[([^\]|#]+)[^\]]*\]\]")


@dataclass(frozen=True, slots=True)
class Read:
    """One entity as read from its file."""

    file: Path
    name: str
    properties: dict[str, Any]
    facts: dict[int, str]  # by ordinal
    unnumbered: tuple[str, ...]  # items that have no id
    relations: tuple[tuple[str, str], ...]  # type and target as written


def key(name: str) -> str:
    """Return the normalized form of a name."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    return " ".join(folded.split())


def read(file: Path) -> Read:
    """Return the entity of one file."""
    text = file.read_bytes().decode()
    front, body = "", text
    if text.startswith("---\n"):
        _, front, body = text.split("---\n", 2)
    properties = yaml.safe_load(front) or {}
    items: list[list[str]] = []
    relations: list[tuple[str, str]] = []
    inside = 0  # the level of the observations' heading, while in their section
    for line in body.split("\n"):
        if heading := _HEADING.match(line):
            level, title = len(heading[1]), heading[2].strip().casefold()
            if title == "observations":
                inside = level
            elif inside and level <= inside:
                inside = 0
            items.append([])
        elif inside and (item := _ITEM.match(line)):
            items.append([item[1]])
        elif inside and items and items[-1] and (line.startswith("  ") or not line):
            items[-1].append(line[2:])
        elif inside and line:
            items.append([])
        elif found := _RELATION.match(line):
            relations += [(found[1].strip(), link[1].strip()) for link in _LINK.finditer(found[2])]
    facts, unnumbered = {}, []
    for lines in items:
        content = "\n".join(lines).strip()
        if numbered := _ID.search(content):
            facts[int(numbered[1])] = content[: numbered.start()].rstrip()
        elif content:
            unnumbered.append(content)
    name = str(properties.get("name") or file.stem)
    return Read(file, name, properties, facts, tuple(unnumbered), tuple(dict.fromkeys(relations)))


def graph(folder: Path) -> tuple[dict[str, Read], set[tuple[str, str, str]]]:
    """Return the entities below a workspace's folder by name, and the relations between them."""
    found = [read(file) for file in sorted(folder.rglob("*.md")) if file.parent.name == "Entities"]
    by: dict[str, str] = {}
    for one in found:
        for alias in one.properties.get("aliases") or ():
            by.setdefault(key(str(alias)), one.name)
    by |= {key(one.name): one.name for one in found}
    by |= {key(one.file.stem): one.name for one in found}
    edges = {
        (one.name, kind, by[key(target.rpartition("/")[2])])
        for one in found
        for kind, target in one.relations
        if key(target.rpartition("/")[2]) in by
    }
    return {one.name: one for one in found}, edges


def shortest(edges: Iterable[tuple[str, str, str]], start: str, end: str) -> int | None:
    """Return the number of relations on the shortest path in any direction; None if there is no path."""
    beside: dict[str, set[str]] = {}
    for source, _, target in edges:
        beside.setdefault(source, set()).add(target)
        beside.setdefault(target, set()).add(source)
    seen, ring, steps = {start}, {start}, 0
    while ring:
        if end in ring:
            return steps
        ring = {next_ for one in ring for next_ in beside.get(one, ())} - seen
        seen |= ring
        steps += 1
    return None
