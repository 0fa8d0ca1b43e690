"""Check the sentences that people read: pages, help, settings, descriptions of tools, messages, docstrings and comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
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

DATA = {"index/text/stopwords.py", "index/topics/word_classes.py"}  # lists of words, not sentences
CONSTANT = re.compile(r"\b[A-Z]{2,}_[A-Z_]+\b")
VARIABLES = ("MEMEX_", "XDG_", "OTEL_")  # of the environment, which people set
OTHER_WORDS = re.compile(r"\b(?:rim|desk|thought|memo|node|observation|document)s?\b", re.IGNORECASE)
ASIDE = re.compile(r"`[^`]+`|\[default: [^\]]+\]|With --json:.*", re.DOTALL)  # what programs read, and values
NOUN = re.compile(r"(?:An?|The|One|All|What|Which|Each|Every|This|These)\b")
VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|can|can't|may|must|works?|worked|blocks?|exceeds?|follows?|keeps?|owns?|belongs?|means)\b"
)


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
        for node in source.nodes:
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for part in ast.walk(node.exc):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value


def program_texts() -> Iterator[tuple[str, str]]:
    """Each string of at least three words, docstring and comment of the product, with its place."""
    for source in sources("index", "syncd", "mcp_server"):
        if source.path in DATA:
            continue
        for node in source.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) > 2:
                yield f"{source.path}:{node.lineno}", node.value
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type == tokenize.COMMENT:
                yield f"{source.path}:{token.start[0]}", token.string


def first_sentences() -> Iterator[tuple[str, str]]:
    """The first sentence of each docstring of a public class or function, with its place."""
    for source in sources("index", "syncd", "mcp_server"):
        for node in source.nodes:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name[0] == "_":
                continue
            if text := ast.get_docstring(node):
                yield f"{source.path}:{node.name}", re.split(r"(?<=[.:])\s", " ".join(text.split()))[0]


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


def test_no_string_docstring_or_comment_of_the_program_uses_one():
    assert [(place, list(phrases)) for place, text in program_texts() if (phrases := list(banned_phrases(text)))] == []


def test_no_message_or_help_for_people_holds_a_constant_of_the_api():
    shown = [*error_texts(), *help_texts(), *(setting.doc for setting in all_settings().values())]
    constants = {name for text in shown for name in CONSTANT.findall(text)}
    assert {name for name in constants if not name.startswith(VARIABLES)} == set()


def test_help_calls_things_by_the_words_that_people_meet():
    help_ = [ASIDE.sub(" ", text) for text in help_texts()]
    assert [text for text in help_ if OTHER_WORDS.search(text)] == []


def test_the_first_sentence_of_each_docstring_has_a_verb_and_an_end():
    sentences = dict(first_sentences())
    assert [place for place, text in sentences.items() if text[-1] not in ".:?"] == []
    assert [place for place, text in sentences.items() if NOUN.match(text) and not VERB.search(text)] == []


def test_a_noun_alone_is_no_sentence():
    assert NOUN.match("A file to change.") and not VERB.search("A file to change.")
    assert VERB.search("The file can't be read.")


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
