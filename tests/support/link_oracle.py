"""Resolve links without the code under test: an oracle that searches all files, rule by rule."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from index.model import Link
from syncd.notes.front_matter import FrontmatterError, read_properties, split
from syncd.notes.inline_syntax import find_wikilinks
from syncd.notes.markdown_outline import parse_outline


class Oracle:
    """Follows links among these files."""

    def __init__(self, files: Iterable[str]) -> None:
        self.by_name: dict[str, list[str]] = {}
        for path in files:
            self.by_name.setdefault(same(path).split("/")[-1], []).append(path)

    def follow(self, target: str, source: str) -> str | None:
        if target == "":
            return source
        want = same(target)
        tries = [want, want + ".md"] if "." in want.split("/")[-1] else [want + ".md"]
        home = same(source).split("/")[:-1]
        if want[:1] == "/":
            return self.first(lambda path, wanted: path == wanted[1:], tries)
        if re.match(r"\.\.?/", want):
            steps, ok = list(home), True
            for part in want.split("/")[:-1]:
                if part == ".." and not steps:
                    ok = False
                elif part == "..":
                    steps.pop()
                elif part != ".":
                    steps.append(part)
            if ok and (
                found := self.first(lambda path, wanted: path == "/".join([*steps, wanted.split("/")[-1]]), tries)
            ):
                return found
            tries = [re.sub(r"(^|/)\.\.?(?=/)", "", wanted).lstrip("/") for wanted in tries]
        return (
            self.first(lambda path, wanted: path == wanted, tries)
            or self.first(
                lambda path, wanted: path.endswith("/" + wanted) and path.split("/")[: len(home)] == home, tries
            )
            or self.first(lambda path, wanted: path.endswith("/" + wanted), tries)
        )

    def first(self, fits, tries):
        for wanted in tries:
            found = [path for path in self.by_name.get(wanted.split("/")[-1], ()) if fits(same(path), wanted)]
            if found:
                return min(found, key=lambda path: (len(same(path)), same(path), path))
        return None


def same(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def links_of(text: str) -> list[Link]:
    """Return every link of a note, links in properties first."""
    front, body = split(text)
    try:
        values = list(read_properties(front).values())
    except FrontmatterError:
        values = []
    found: list[Link] = []
    while values:
        value = values.pop(0)
        if isinstance(value, str):
            found += find_wikilinks(value)
        elif isinstance(value, dict | list):
            values[:0] = value.values() if isinstance(value, dict) else value
    return found + parse_outline(body).links


def blank(text: str) -> str:
    """Return the text without the paths of anything that looks like a link."""
    text = re.sub(r"(\[\[)[^\[\]|#\n\\]*", r"\1", text)
    text = re.sub(r"(\]\(\s*<)[^<>#\n]*", r"\1", text)
    return re.sub(r"(\]\((?!\s*<)|\]: )(?:\\.|\((?:\\.|[^()\s\\])*\)|[^\s()#\\])*", r"\1", text)
