"""Decide the title, the properties and the text of a capture's note, from values alone.

Law: no text from an agent can set a property that Memex owns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from index.errors import InvalidArgument, ResourceExhausted
from index.model import COLLECTIONS
from index.names import fold, note_name
from index.query import tag_of
from index.text.sentences import ELLIPSIS, cut_cleaned, plain_text, split_line
from index.text.stopwords import word_set
from index.text.words import detect_language
from index.topics.sentence_shortening import shorten_sentence
from syncd.documents.file_names import free_name
from syncd.notes.front_matter import (
    OWNED,
    FrontmatterError,
    comparable_key,
    compose,
    is_publishing,
    read_properties,
    readable_properties,
    split,
)
from syncd.notes.secret_patterns import redact
from syncd.notes.timestamps import iso
from syncd.vault.path_rules import TITLE_BYTES, TITLE_LENGTH, file_name

MAX_CONTENT = 1_000_000  # bytes of one capture
MAX_SOURCE = 500  # characters
CHANGE: Final = "change"  # the type of a capture that proposes the change of a shared note
DIFF_FENCE: Final = re.compile(r"^(`{3,})diff[ \t]*\r?\n", re.MULTILINE)  # where the diff of such a capture begins
_READ: Final = 2_000  # characters of a line; a file name takes far fewer
_LEAST_TITLE: Final = 16  # least characters of a sentence that is a title while more follows
_SCHEME = re.compile(r"[a-z]+:(?://(?:www\.)?)?", re.IGNORECASE)
_UNSAID: Final = ("```", "~~~", "<!--", "%%")  # a fence or a comment begins with these
_GENERIC: Final = word_set("""
background context decision decisions details findings idea introduction memo note notes overview question result results summary
task tasks thought tl;dr tldr todo update zusammenfassung notiz notizen résumé resumen 概要 要約 メモ 摘要 总结
""")  # lines that would name many captures alike
_EDGES = re.compile(r"\A[\s,;:\u2013\u2014]+|[\s,;:\u2013\u2014(\[{]+\Z")
_MARKUP = re.compile(r"^(?:[>\s]|[-*+]\s(?:\[.\]\s)?|\d{1,9}[.)]\s|#{1,6}\s|\[![\w-]{1,40}\][+-]?)+")


def title_of(content: str) -> str:
    """Derive a title from a capture's text, without secrets: the first line of plain words; "" if no line has letters or digits.

    A line that is too long for a file name is cut to its first sentence, or at the end of a clause. Of properties in the
    text, only a title counts. Where no line has words besides headings such as "Summary", the first of these, or the first
    address, image or tag, is the title."""
    instead, stated = "", readable_properties(content).get("title")
    for line in (*([stated] if isinstance(stated, str) else ()), *split(content)[1].splitlines()[:50]):
        words = _read_words(_MARKUP.sub("", line))
        is_unsaid = words.startswith(_UNSAID) or all(word.startswith("#") for word in words.split())
        plain = "" if is_unsaid else _EDGES.sub("", redact(plain_text(words)))
        if _can_name(plain) and fold(plain.rstrip(".!:")) not in _GENERIC:
            return _shorten_title(plain)
        shown = "" if instead else _EDGES.sub("", redact(_SCHEME.sub("", words).strip("!<>[]#`~%")))
        instead = shown if _can_name(shown) else instead
    return _shorten_title(instead)


def _can_name(title: str) -> bool:
    return any(map(str.isalnum, file_name(title)))


def _read_words(line: str) -> str:
    """Return the beginning of `line` without secrets, and without a word that is cut: it may be part of a secret that markup hides."""
    words = cut_cleaned(line, _READ, redact)
    return words if len(line) <= _READ else words.rpartition(" ")[0] or words


def _shorten_title(title: str) -> str:
    """Return `title`, or the part of its first sentence that a file name has room for."""
    most = min(TITLE_LENGTH, len(title.encode()[:TITLE_BYTES].decode(errors="ignore")))
    if len(title) <= most:
        return title
    first = next((sentence for sentence in split_line(title) if len(sentence) >= _LEAST_TITLE), title)
    language = detect_language(title, {}).language
    return _EDGES.sub("", shorten_sentence(first, language, most).removesuffix(ELLIPSIS)) or title


def automatic_title(content: str, created_at: int) -> str:
    """Return the title of a capture without a given title: the name of its file, unless another note has that name."""
    return free_name(title_of(content), created_at, lambda _: False)


def is_named_after_title(path: str, title: str) -> bool:
    """Return whether a capture's file is named after its title, perhaps with a number, and was not renamed."""
    return re.fullmatch(rf"{re.escape(file_name(title))}(?: \d+)?", note_name(path)) is not None


def properties_of(
    *,
    id: str,
    created_at: int,
    source: str | None,
    collection: str,
    metadata: Mapping[str, Any],
    title: str | None = None,
    tags: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return the properties of a new capture, in the order in which they are written."""
    values: dict[str, Any] = {"id": id, "created_at": iso(created_at)}
    if source:
        values["source"] = source
    if collection != COLLECTIONS[0]:
        values["collection"] = collection
    if title:
        values["title"] = title
    if tags:
        values["tags"] = list(tags)
    return values | dict(metadata)


def split_metadata(
    metadata: Mapping[str, Any], *, twins: bool = False
) -> tuple[dict[str, Any], str | None, tuple[str, ...]]:
    """Split `metadata` into the properties, the title and the tags.

    Raises InvalidArgument for an invalid value, for two keys that differ only in letter case unless `twins` are allowed, and for a key
    that Memex owns or that controls publishing, in any spelling that Obsidian accepts."""
    rest = dict(metadata)
    title, tags = rest.pop("title", None), rest.pop("tags", None)
    if title is not None and not isinstance(title, str):
        raise InvalidArgument("metadata.title must be text")
    if isinstance(tags, str):
        tags = tags.split(",")  # in Obsidian, commas separate tags
    if tags is not None and not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        raise InvalidArgument("metadata.tags must be a list of texts")
    for key in rest:
        if (
            not isinstance(key, str)
            or not key.strip()
            or len(key) > 128
            or any(ord(c) < 32 or c == "\x7f" for c in key)
        ):
            raise InvalidArgument(f"metadata key {key!r} must be 1 to 128 printable characters", key=str(key)[:128])
        if comparable_key(key) in OWNED:
            raise InvalidArgument(
                f"metadata key {key!r} belongs to Memex and can't be set; choose another name", key=key
            )
        if is_publishing(key):
            raise InvalidArgument(
                f"metadata key {key!r} can't be set: only the owner decides about publishing; choose another name",
                key=key,
            )
    spelt: dict[str, str] = {}
    for key in () if twins else [key for key, value in rest.items() if value is not None]:
        if (other := spelt.setdefault(fold(key), key)) != key:
            raise InvalidArgument(
                f"metadata keys {other!r} and {key!r} are one property in Obsidian; use one of them", key=key
            )
    return rest, title, tuple(dict.fromkeys(tag_of(tag) for tag in tags or () if tag_of(tag)))


def before_diff(body: str) -> str:
    """Return the part of a proposed change's text that agents may read; without a diff, nothing.

    A diff contains text of the owner's note, which may not be shared any more."""
    opening = DIFF_FENCE.search(body)
    return body[: opening.start()] if opening else ""


def check_content(content: str) -> bytes:
    """Return the bytes of a capture. Raises InvalidArgument or ResourceExhausted if `content` can't be one."""
    if not content:
        raise InvalidArgument("content is empty")
    try:
        body = content.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument("content has a lone surrogate, which is not valid text") from error
    if len(body) > MAX_CONTENT:
        raise ResourceExhausted(
            f"content has {len(body):,} bytes; the limit of a capture is {MAX_CONTENT:,}", limit=MAX_CONTENT
        )
    return body


def check_source(source: str | None) -> None:
    """Raise InvalidArgument if `source` can't be the source of a capture."""
    if source is not None and (len(source) > MAX_SOURCE or any(ord(c) < 32 for c in source)):
        raise InvalidArgument(f"source must be one line of at most {MAX_SOURCE} characters")


def compose_note(values: dict[str, Any], content: str) -> str:
    """Compose the note's text. Raises InvalidArgument if the text does not read back as what was given."""
    try:
        text = compose(values, content)
        front, body = split(text)
        if body == content and read_properties(front) == values:
            return text
    except (FrontmatterError, ValueError, TypeError, RecursionError) as error:
        raise InvalidArgument(f"metadata can't be written as properties: {error}") from error
    raise InvalidArgument(
        "metadata has a value that properties can't store; use plain texts, numbers, lists and objects"
    )
