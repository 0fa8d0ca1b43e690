"""Turn a note's bytes into a Document: what it says, where it stands, and what is wrong with it.

Law, tested: every sequence of bytes gives a Document, and what can be read of it can be found. A property that can't be
read is a defect, and such a note is never written."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from index.identity import ID
from index.model import COLLECTIONS, Defect, Document, Link
from syncd.inline import is_tag, wikilinks
from syncd.markdown import outline
from syncd.note import OWNED, FrontmatterError, decode, read, split, unclosed
from syncd.place import INBOX, place

TYPES = ("note", "file", "entity")
ALIASES = ("aliases", "alias")

_CONFLICT_COPY = re.compile(
    r"\.sync-conflict-\d{8}-\d{6}-[A-Z0-9]{7}(?=\.[^.]+$|$)"  # Syncthing
    r"| \((?:[^()]* )?conflicted copy(?: [^()]*)?\)(?=\.[^.]+$|$)",  # Obsidian Sync, Dropbox
    re.IGNORECASE,
)
_MARKERS = ("<<<<<<< ", "=======", ">>>>>>> ")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE = re.compile(r"-?[0-9]{12,15}")
_COMMA = re.compile(r"[,\s]+")


def parse(raw: bytes, path: str, *, mtime_ms: int, inbox: str = INBOX) -> Document:
    """The document in the file at `path` with these bytes; `mtime_ms` stands in for times it does not state."""
    defects: list[Defect] = []
    text, writable = _text(raw, defects)
    front, body = split(text)
    values: dict[str, Any] = {}
    if unclosed(text):
        defects.append(Defect("unclosed-frontmatter", "the properties have no closing `---`, so they count as text"))
        writable = False
    try:
        found = read(front)
        values = found.values
        if found.repeated:
            defects.append(
                Defect("repeated-property", f"more than once: {', '.join(found.repeated)[:200]}; the last counts")
            )
    except FrontmatterError as error:
        defects.append(Defect(error.defect, str(error)))
        writable = False
    content = body.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    body_outline = outline(content)
    defects += body_outline.defects
    if _unmerged(content):
        defects.append(Defect("merge-conflict", "it holds the markers of a Git merge that was not resolved"))
    name = path.rpartition("/")[2].removesuffix(".md")
    if _CONFLICT_COPY.search(path.rpartition("/")[2]):
        defects.append(Defect("conflict-copy", "a sync program kept it beside the note it conflicts with"))
    spot = place(path, inbox)
    known = _Properties(values, defects)
    tags, collection = known.tags_and_collection(body_outline.tags)
    kind = known.one_of("type", TYPES) or spot.type
    return Document(
        path=path,
        scope=spot.scope,
        workspace=spot.workspace,
        namespace=spot.namespace,
        claimed_id=known.id(),
        type=kind,
        title=known.text("title") or (known.text("name") if kind == "entity" else None) or name,
        content=content,
        text=body_outline.text,
        digest=hashlib.sha256(raw).hexdigest(),
        content_hash=hashlib.sha256(content.encode("utf-8", "replace")).hexdigest(),
        collection=collection,
        tags=tags,
        aliases=known.aliases(),
        summary=known.text("summary"),
        source=known.text("source"),
        metadata={key: value for key, value in values.items() if _folded(key) not in OWNED},
        created_at=_first(known.time("created_at"), mtime_ms),
        updated_at=known.time("updated_at"),
        version=known.version(),
        headings=tuple(body_outline.headings),
        links=(*_property_links(values), *body_outline.links),
        callouts=tuple(body_outline.callouts),
        tasks=tuple(body_outline.tasks),
        blocks=tuple(body_outline.blocks),
        defects=tuple(dict.fromkeys(defects)),
        writable=writable,
    )


def _text(raw: bytes, defects: list[Defect]) -> tuple[str, bool]:
    """The text of a file, and whether it may be written. UTF-16 is read when it says so; other bytes are kept apart."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        defects.append(
            Defect("not-utf8", "it is written in UTF-16: Obsidian shows it wrongly, and Memex does not write to it")
        )
        return raw.decode("utf-16", "replace").encode("utf-8", "replace").decode(), False
    text = decode(raw)
    if text.startswith("\ufeff"):
        defects.append(Defect("bom", "it begins with a byte order mark, which hides its properties from some programs"))
    if "\0" in text:
        defects.append(Defect("nul", "it holds NUL characters"))
    if any("\ud800" <= letter <= "\udfff" for letter in text) if not text.isascii() else False:
        defects.append(
            Defect("not-utf8", "some of its bytes are not UTF-8; they are searched as \ufffd and kept as they are")
        )
        return text, False
    return text, True


def _unmerged(content: str) -> bool:
    """Whether the lines of an unresolved merge stand in `content`, in their order."""
    if not all(f"\n{mark}" in f"\n{content}" for mark in _MARKERS):
        return False
    wanted = iter(_MARKERS)
    mark = next(wanted)
    for line in content.splitlines():
        if line.startswith(mark):
            mark = next(wanted, "")
            if not mark:
                return True
    return False


class _Properties:
    """The properties that Memex gives a meaning, each read tolerantly; what can't be read is listed as a defect."""

    def __init__(self, values: Mapping[str, Any], defects: list[Defect]) -> None:
        self._values = {_folded(key): value for key, value in values.items()}
        self._defects = defects

    def text(self, key: str) -> str | None:
        """A property as one line of text."""
        value = self._values.get(key)
        if value is None or isinstance(value, bool | dict):
            return None
        if isinstance(value, list):
            return None
        return " ".join(_sound(str(value)).split()) or None

    def id(self) -> str | None:
        """The claimed id, as written."""
        value = self._values.get("id")
        if value is None:
            return None
        written = (
            value
            if isinstance(value, str)
            else str(value)
            if isinstance(value, int) and not isinstance(value, bool)
            else ""
        )
        if ID.match(written):
            return written
        self._flaw("bad-id", "its id is not 1 to 64 letters, digits, - and _; it answers to another one")
        return None

    def one_of(self, key: str, known: tuple[str, ...]) -> str | None:
        """A property with a few values; any other value is a person's own affair."""
        value = self._values.get(key)
        return value if isinstance(value, str) and value in known else None

    def version(self) -> int:
        """The version; 1 until a change is counted."""
        value = self._values.get("version")
        return value if isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**53 else 1

    def time(self, key: str) -> int | None:
        """A time in epoch milliseconds, from ISO 8601 (UTC unless it says otherwise), a date, or milliseconds."""
        value = self._values.get(key)
        if value is None or value == "":
            return None
        moment = _time(value)
        if moment is None:
            self._flaw("bad-date", f"{key} is not a date and time")
        return moment

    def aliases(self) -> tuple[str, ...]:
        """Other names of the note."""
        names = (name for key in ALIASES for name in _list(self._values.get(key)))
        return tuple(dict.fromkeys(" ".join(_sound(name).split()) for name in names if name.strip()))

    def tags_and_collection(self, inline: Iterable[str]) -> tuple[tuple[str, ...], str]:
        """All tags but those that name a collection, and the collection: the last one set wins."""
        value = self._values.get("tags")
        given = _list(value)
        if isinstance(value, str) and _COMMA.search(value.strip()):
            given = _COMMA.split(value)
            self._flaw("tags-not-a-list", "its tags are one text; Obsidian reads them only as a list")
        tags: dict[str, None] = {}
        named = [self.text("collection")] if self.text("collection") else []
        for tag in (*given, *inline):
            tag = _sound(tag).strip().lstrip("#")  # noqa: PLW2901 - the same tag, cleaned
            if tag.casefold().startswith("collection:"):
                named.append(tag.partition(":")[2].strip())
            elif tag:
                tags[tag] = None
        if any(not is_tag(tag) for tag in tags):
            self._flaw("bad-tag", "some of its tags hold a character that Obsidian's tags can't")
        collection = named[-1] if named else COLLECTIONS[0]
        if len(set(named)) > 1:
            self._flaw(
                "collections-disagree", f"it names several collections; the last one, {collection!s:.50}, counts"
            )
        if collection not in COLLECTIONS:
            self._flaw("unknown-collection", f"{collection!s:.50} is no collection; known: {', '.join(COLLECTIONS)}")
            collection = COLLECTIONS[0]
        return tuple(tags), collection

    def _flaw(self, name: str, detail: str) -> None:
        self._defects.append(Defect(name, detail))


def _folded(key: str) -> str:
    """A key as Obsidian compares keys: letter case does not count."""
    return unicodedata.normalize("NFC", key).strip().casefold()


def _list(value: Any) -> list[str]:
    """A property's texts, whether it is a list or a single one."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return [str(one) for one in values if isinstance(one, str | int | float) and not isinstance(one, bool)]


def _sound(text: str) -> str:
    """`text` without half characters, which no store takes."""
    return text.encode("utf-8", "replace").decode()


def _time(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) < 2**53 else None
    if not isinstance(value, str):
        return None
    written = value.strip()
    if _WHOLE.fullmatch(written):
        return int(written)
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        try:
            moment = datetime.combine(date.fromisoformat(written), time())
        except ValueError:
            return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _first(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _property_links(values: Any) -> Iterator[Link]:
    """The links in properties: `"[[X]]"`, alone, in a list, or in a mapping."""
    todo = [values]
    while todo:
        value = todo.pop(0)
        if isinstance(value, str):
            yield from wikilinks(value)
        elif isinstance(value, list):
            todo = [*value, *todo]
        elif isinstance(value, dict):
            todo = [*value.values(), *todo]
