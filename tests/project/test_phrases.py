"""No text that people read uses a banned phrase: pages, help, settings, descriptions of tools, messages of errors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import click
import pytest

from mcp_server.operations.wire_format import compact_schema
from mcp_server.tools.families import FAMILIES
from syncd.cli.framework import help_text
from syncd.cli.main import memex
from syncd.settings.settings import all_settings
from tests.documents.phrases import BANNED, banned_phrases
from tests.support.paths import ROOT
from tests.support.sources import sources


def pages() -> Iterator[tuple[str, str]]:
    """Every page, and all decisions as one place: each part of the program adds rows there."""
    for pattern in ("*.md", "docs/*.md", "docs/clients/*.md", "docs/guides/*.md"):
        for file in sorted(ROOT.glob(pattern)):
            yield file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")
    for folder in ("design", "decisions"):
        yield (
            folder,
            "\n\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "docs" / folder).glob("*.md"))),
        )


def help_texts(group: click.Group = memex, path: str = "") -> Iterator[str]:
    yield group.help or ""
    for name, command in group.commands.items():
        words = f"{path} {name}".strip()
        yield from (does for _, does in help_text.EXAMPLES.get(words, ()))
        yield from (getattr(param, "help", None) or "" for param in command.params)
        if isinstance(command, click.Group):
            yield from help_texts(command, words)
        else:
            yield command.help or ""


def tool_texts() -> Iterator[str]:
    def described(schema: object) -> Iterator[str]:
        if isinstance(schema, dict):
            if isinstance(schema.get("description"), str):
                yield schema["description"]
            for inner in schema.values():
                yield from described(inner)
        elif isinstance(schema, list):
            for inner in schema:
                yield from described(inner)

    for operations in FAMILIES.values():
        for operation in operations:
            yield operation.description
            yield from described(compact_schema(operation.given))


def error_texts() -> Iterator[str]:
    """The texts of errors that the product raises."""
    for source in sources("index", "syncd", "mcp_server"):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for part in ast.walk(node.exc):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value


def texts() -> Iterator[tuple[str, str]]:
    yield from pages()
    rows = (*help_text.EXIT_CODES, *help_text.OWN_EXIT_CODES["serve"], *help_text.ENVIRONMENT, *help_text.FILES)
    yield "help", "\n\n".join([*help_texts(), *(does for _, does in rows)])
    yield "settings", "\n\n".join(one.doc for one in all_settings().values())
    yield "tools", "\n\n".join(tool_texts())
    yield "errors", "\n\n".join(error_texts())


def test_no_text_for_people_uses_a_banned_phrase():
    found = {place: list(banned_phrases(text)) for place, text in texts()}
    assert {place: phrases for place, phrases in found.items() if phrases} == {}


@pytest.mark.parametrize(
    "text",
    ["The person is told of it.", "What wants mending\nis listed.", "It is built anew.", "Whom you don't name is refused.", "Notes are\n  told why."],
)  # fmt: skip
def test_a_banned_phrase_is_found(text):
    assert list(banned_phrases(text))


def test_code_may_hold_any_words():
    assert list(banned_phrases("Run `memex told` or\n\n```sh\nanew by hand\n```\n")) == []


def test_each_phrase_names_the_words_to_use():
    assert all(BANNED.values())
