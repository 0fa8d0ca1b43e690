"""The parser turns the bytes of a file into a Document, whatever the bytes are.

Law, tested: any bytes give a Document, and equal bytes give equal Documents; each problem with the bytes is a defect
of the Document, and no text is left out of the search without a defect (except comments, which their writer hid)."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from index.document_ids import ID, sha256
from index.model import COLLECTIONS, SEVERAL_COLLECTIONS, UNKNOWN_COLLECTION, Defect, Document, Link, MemoRelation, Node
from index.names import base_name, note_name
from index.text.hidden_characters import hidden_defects
from index.text.link_schemes import link_defects
from index.text.runnable_code import runnable_defects
from index.text.sentences import SUMMARY, first_sentence, shorten
from syncd.documents.agent_paths import find_numbers, strip_link_numbers
from syncd.documents.capture_note import CHANGE, DIFF_FENCE, before_diff
from syncd.documents.collection_membership import find_names, is_collection_tag, select_known, tag_texts
from syncd.documents.entity_lines import Page, find_ids
from syncd.documents.entity_lines import parse_page as page_of
from syncd.documents.entity_node import OWN, NoteProperties, node_of_page
from syncd.documents.memo_relations import read_relations
from syncd.documents.owner_marks import encode_marks, read_marks
from syncd.notes import tag_names
from syncd.notes.front_matter import (
    MERGE_CONFLICT,
    FrontmatterError,
    decode,
    has_merge_conflict,
    is_reserved,
    is_unclosed,
    read,
    replace_undecoded,
    split,
)
from syncd.notes.inline_syntax import find_wikilinks, is_tag
from syncd.notes.markdown_outline import parse_outline
from syncd.notes.property_reader import Properties, as_text, as_time, is_for_person
from syncd.notes.secret_patterns import redact, secret_defects
from syncd.vault.location import NoteLocation, locate
from syncd.vault.path_rules import CONFLICT_COPY, is_utf8

TYPES = frozenset({"note", "file", "entity", CHANGE})
CREATED = ("created", "date")  # properties in which templates and other programs write a note's creation time
BAD_VERSION = "bad-version"  # the name of the defect of a `version` that is no version of Memex
_TEMPLATE = re.compile(r"\{\{[^{}\r\n]*+\}\}|<%[^%\r\n]*+%>")
_EMPTY_TAGS = re.compile(r"^tags:[ \t]+#[^\s#]", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _ParsedNote:
    """Holds the front matter and body of a note, read from its bytes."""

    path: str
    digest: str
    front: str
    body: str
    values: Mapping[str, Any]  # of the properties
    writable: bool  # whether properties and body can be changed without losing any of them


@dataclass(frozen=True, slots=True)
class _Class:
    """Holds a note's type and the values that depend on the type."""

    type: str
    collection: str
    tags: list[str]
    created_at: int | None
    page: Page | None  # the lines of an entity
    node: Node | None
    relations: tuple[MemoRelation, ...]
    stored: bool  # whether it holds the text of a stored file
    file: str | None  # the path of that file
    owner_marks: str  # encoded


def parse(raw: bytes, path: str, *, mtime_ms: int, inbox: str, collections: Sequence[str] = COLLECTIONS) -> Document:
    """Parse the file at `path` (relative to the vault's root) as a document. Never raises.

    `collections` are the collections that a capture can be in."""
    defects: list[Defect] = []
    note = _read_note(raw, path, defects)
    owned = _OwnProperties(note.values, locate(path, inbox), defects)
    kind = _classify(note, owned, inbox, collections)
    if any(map(has_merge_conflict, (note.front, note.body))):
        defects.append(Defect(MERGE_CONFLICT, "the text contains merge markers (<<<<<<<, =======, >>>>>>>)"))
    if owned.where.scope == "captures":  # people know their own notes; agents' notes are passed on to others
        text = note.front + note.body
        defects += [*secret_defects(text), *hidden_defects(text), *runnable_defects(text), *link_defects(text)]
    return with_derived_summary(_assemble(note, owned, kind, mtime_ms))


def with_derived_summary(document: Document) -> Document:
    """Return the document; if it is a capture with tags but no summary, its first sentence becomes the summary.

    A capture without tags was not enriched, so nothing is known about its subject, and it gets no summary."""
    if document.summary or document.scope != "captures" or document.type != "note" or not document.tags:
        return document
    summary = derived_summary(document)
    return replace(document, summary=summary or None, summary_derived=bool(summary))


def derived_summary(document: Document) -> str:
    """Return the first sentence of a document, shortened to a summary; "" if it has no sentence."""
    return shorten(first_sentence(document, redact), SUMMARY)


def metadata_of(
    values: Mapping[str, Any], node: Node | None, *, aliases: tuple[str, ...], stored: bool
) -> dict[str, Any]:
    """Return the writer's own properties, without those that Memex keeps, define a node or link a stored file.

    `aliases` of a node is left out too if the node's name is its only entry."""
    taken: set[str] = {"file"} if stored else set()
    if node is not None:
        taken |= OWN | ({"aliases"} if aliases == (node.name,) else set())
    return {key: value for key, value in values.items() if not is_reserved(key) and key.casefold() not in taken}


def _read_note(raw: bytes, path: str, defects: list[Defect]) -> _ParsedNote:
    defects += _byte_defects(raw, path)
    front, body, readable = _split(raw, defects)
    properties = _read_properties(front, defects)
    whole = readable and properties is not None and not properties.repeated
    writable = whole and not is_unclosed(front + body)
    values = properties.values if properties else {}
    return _ParsedNote(path, sha256(raw), front, body, values, writable)


def _classify(note: _ParsedNote, owned: _OwnProperties, inbox: str, collections: Sequence[str]) -> _Class:
    captured = owned.where.scope == "captures"
    collection, tags = owned.collection_and_tags(note.front, collections)
    created_at = owned.creation()
    if captured:
        owned.time("expires")  # with an invalid date the capture never expires, so it is a defect
    named = owned.text("type")
    kind = named if named in TYPES - {CHANGE} else owned.where.type
    if captured and _proposes_change(note, owned):
        kind = CHANGE
    # A conflict copy of a node is not a second node.
    aside = any(defect.name == "conflict-copy" for defect in owned.defects)
    page = page_of(note.body) if kind == "entity" and captured and not aside else None
    node, node_defects = node_of_page(owned.values, page, note.path) if page else (None, [])
    stated, relation_defects = read_relations(owned.get("relations")) if captured and not node else ((), [])
    owned.defects += [*node_defects, *relation_defects]
    node = replace(node, tags=_remove_repeats(tags)) if node else None
    stored = kind == "file" and captured
    file = owned.file(note.path, inbox) if stored else None
    marks = encode_marks(read_marks(note.front + note.body)) if captured else ""
    return _Class(kind, collection, tags, created_at, page, node, stated, stored, file, marks)


def _proposes_change(note: _ParsedNote, owned: _OwnProperties) -> bool:
    """Return whether a capture proposes a change: it has that type in any spelling, or its type is lost and it has a diff.

    Otherwise a damaged proposal would show agents the text of a note that may not be shared any more."""
    named = owned.get("type")
    names = named if isinstance(named, list) else [named]
    if any(isinstance(name, str) and name.strip().casefold() == CHANGE for name in names):
        return True
    lost = not note.values and (not note.writable or has_merge_conflict(note.body))
    return lost and owned.where.type == "note" and DIFF_FENCE.search(note.body) is not None


def _assemble(note: _ParsedNote, owned: _OwnProperties, kind: _Class, mtime_ms: int) -> Document:
    page, body = kind.page, before_diff(note.body) if kind.type == CHANGE else note.body
    outlined = parse_outline(body, (*find_ids(page), *find_numbers(page)) if page else (), note.front)
    claimed_id, aliases, updated_at, version = owned.id(), owned.aliases(), owned.time("updated_at"), owned.version()
    return Document(
        path=note.path,
        scope=owned.where.scope,
        workspace=owned.where.workspace,
        namespace=owned.where.namespace,
        claimed_id=claimed_id,
        type=kind.type,
        title=owned.title(note.path, entity=kind.type == "entity"),
        content=body,
        text=outlined.text,
        digest=note.digest,
        content_hash=sha256((strip_link_numbers(body, page) if page else note.body).encode()),
        collection=kind.collection,
        # Tags in a file's text do not count: its author did not know the tags of this vault.
        tags=_remove_repeats([*kind.tags, *(() if kind.file else outlined.tags)]),
        aliases=aliases,
        summary=owned.text("summary"),
        source=unicodedata.normalize("NFC", source) if (source := owned.text("source")) else source,
        metadata=metadata_of(owned.values, kind.node, aliases=aliases, stored=kind.stored),
        created_at=mtime_ms if kind.created_at is None else kind.created_at,
        updated_at=updated_at,
        version=version,
        headings=tuple(outlined.headings),
        links=(*_property_links(owned.own_values()), *outlined.links),
        blocks=tuple(outlined.blocks),
        superseded_by=owned.successor(),
        defects=(*owned.defects, *outlined.defects),  # after all that finds one
        writable=note.writable,
        memo_relations=kind.relations,
        node=kind.node,
        file=kind.file,
        owner_marks=kind.owner_marks,
    )


def _byte_defects(raw: bytes, path: str) -> list[Defect]:
    defects = []
    if CONFLICT_COPY.search(base_name(path)):
        defects.append(
            Defect(
                "conflict-copy", "this is a conflict copy that a sync program made; keep what you need, and delete it"
            )
        )
    if raw.startswith(b"\xef\xbb\xbf"):
        defects.append(Defect("bom", "the file begins with a byte order mark"))
    if b"\0" in raw:
        defects.append(Defect("nul-bytes", "the file contains NUL bytes: it may be damaged, or not be text"))
    return defects


def _split(raw: bytes, defects: list[Defect]) -> tuple[str, str, bool]:
    """Return the front matter, the body, and whether both are valid UTF-8."""
    text = decode(raw)
    front, body = split(text)
    readable = is_utf8(text)
    if not readable:
        defects.append(Defect("not-utf8", "the file is not valid UTF-8; only its readable part is searchable"))
        body = replace_undecoded(body)
    if is_unclosed(text):
        defects.append(
            Defect("unclosed-frontmatter", "the properties have no closing `---`, so Memex reads them as text")
        )
    elif front.removeprefix("\ufeff"):
        opening = front.removeprefix("\ufeff")[3:]
        if opening[0] in " \t":
            defects.append(
                Defect("loose-fence", "spaces follow the opening `---`: Obsidian may not see the properties")
            )
        if opening.lstrip(" \t").startswith("\r") and not opening.lstrip(" \t").startswith("\r\n"):
            defects.append(Defect("cr-line-ends", "lines end in a bare CR: Obsidian may not see the properties"))
    return front, body, readable


def _read_properties(front: str, defects: list[Defect]) -> Properties | None:
    """Read the properties of the front matter; None if they can't be read."""
    try:
        properties = read(front)
    except FrontmatterError as error:
        defects.append(Defect("bad-frontmatter", f"the properties can't be read: {error}"))
        if error.defect != "bad-frontmatter":
            defects.append(Defect(error.defect, str(error)))
        if _TEMPLATE.search(front):
            defects.append(Defect("template", "the properties hold a template's placeholders, as in `{{date}}`"))
        return None
    if properties.repeated:
        keys = ", ".join(properties.repeated)
        defects.append(
            Defect("duplicate-keys", f"more than once among the properties: {keys}; Memex uses the last one")
        )
    return properties


class _OwnProperties(NoteProperties):
    """Reads the properties that Memex owns."""

    def __init__(self, values: Mapping[str, Any], where: NoteLocation, defects: list[Defect]) -> None:
        super().__init__(values, defects)
        self.where = where

    def id(self) -> str | None:
        value = self.get("id")
        if value is None:
            return None
        text = as_text(value)
        if text is not None and ID.match(text):
            return text
        self.add_defect(
            "bad-id", "`id` must be 1 to 64 letters, digits, `-` or `_`; Memex identifies the note by its path"
        )
        return None

    def title(self, path: str, *, entity: bool) -> str:
        return (self.text("name") if entity else None) or self.text("title") or note_name(path)

    def file(self, path: str, inbox: str) -> str | None:
        """Return the path of the stored file whose text the note holds; None if the link leads out of its workspace.

        A bare name, or a path that begins with `./` or `../`, is relative to the note's folder, as in Obsidian's
        relative links; any other path is relative to the vault's root."""
        target = next((link.target for link in find_wikilinks(self.text("file") or "")), "")
        beside = "/" not in target or target.startswith(("./", "../"))
        named = base_name(target) not in ("", ".", "..")
        where = posixpath.normpath(f"{path.rpartition('/')[0]}/{target}") if beside and named else target
        inside = where.startswith(f"{inbox}/{self.where.workspace}/") and not {"", ".", ".."} & set(where.split("/"))
        if inside and not where.lower().endswith(".md"):
            return where
        if self.get("file") is not None:
            self.add_defect(
                "bad-file", "`file` must link to a file of this workspace, such as `[[Captures/…/report.pdf]]`"
            )
        return None

    def successor(self) -> str | None:
        """Return the link target of the capture that replaces this one; None if none does. A list may hold the one link."""
        value = self.get("superseded_by") if self.where.scope == "captures" else None
        depth = 0
        while isinstance(value, list) and len(value) == 1:
            value, depth = value[0], depth + 1
        text = as_text(value)
        if text and depth == 2 and "[[" not in text:  # an unquoted link, which YAML reads as a list in a list
            text = f"[[{text}]]"
        if text is None and value not in (None, []):
            self.add_defect("bad-successor", '`superseded_by` must be one link, such as "[[Newer note]]"')
        return next((link.target for link in find_wikilinks(text)), text.strip()) or None if text else None

    def own_values(self) -> dict[str, Any]:
        """Return the properties without those that tell a person about other notes."""
        captured = self.where.scope == "captures"
        return {key: value for key, value in self.values.items() if not (captured and is_for_person(key))}

    def creation(self) -> int | None:
        """Return the stated creation time; a note in the inbox may state it in another program's property."""
        stated = self.time("created_at")
        if stated is not None or self.where.scope != "captures":
            return stated
        dates = (as_time(self.get(name)) for name in CREATED)
        return next((date for date in dates if date is not None), None)

    def version(self) -> int:
        value = self.get("version")
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**53:
            return value
        if value is not None and self.where.scope == "captures":
            self.add_defect(
                BAD_VERSION,
                "`version` is not a whole number from 1; Memex uses 1, and the next update replaces the value: to keep it, rename the property",
            )
        return 1

    def aliases(self) -> tuple[str, ...]:
        value = self._list_property("aliases", deprecated="alias")
        return _remove_repeats(
            text for item in (value if isinstance(value, list) else [value]) if (text := as_text(item))
        )

    def collection_and_tags(self, front: str, known: Sequence[str]) -> tuple[str, list[str]]:
        """Return the collection and the plain tags; a tag `collection:x` names a collection and is no plain tag."""
        tags = self._tags(front)
        captured = self.where.scope == "captures"
        named = find_names(self.values, tags)
        names = [choice.name for choice in select_known(named, known if captured else COLLECTIONS)]
        collection = names[-1] if names else COLLECTIONS[0]
        if len(set(names)) > 1:
            self.add_defect(
                SEVERAL_COLLECTIONS, f"the note names more than one collection; Memex uses the last, {collection!r}"
            )
        for name in dict.fromkeys(choice.name for choice in named if captured and not select_known([choice], known)):
            self.add_defect(UNKNOWN_COLLECTION, f"{name!r} is not one of {', '.join(known)}; Memex uses {collection}")
        return collection, [tag for tag in tags if not is_collection_tag(tag)]

    def _tags(self, front: str) -> list[str]:
        value = self._list_property("tags", deprecated="tag")
        if value is None and _EMPTY_TAGS.search(front):
            self.add_defect(
                tag_names.DEFECT, "YAML reads `tags: #x` as empty, because # begins a comment: write `tags: [x]`"
            )
        if isinstance(value, str) and re.search(r"[,\s]", value.strip()):
            self.add_defect(
                "tags-as-text", "one text holds several tags, and Obsidian reads no tag in it: make them a list"
            )
        tags = tag_texts(value)
        for tag in tags:
            if not is_tag(tag) and not is_collection_tag(tag):
                self.add_defect(
                    tag_names.DEFECT, f"{tag!r} is not a tag in Obsidian (no blanks or punctuation, not only digits)"
                )
        return tags

    def _list_property(self, name: str, *, deprecated: str) -> Any:
        """Return a list property. Older vaults use a deprecated name for it, which Obsidian no longer reads."""
        value = self.get(name)
        if value is None and self.where.scope == "vault" and deprecated in self.values:
            value = self.values[deprecated]
            self.add_defect("deprecated-property", f"Obsidian no longer reads `{deprecated}`: call it `{name}`")
        return value


def _remove_repeats(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts without repeats; the first spelling stays."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(unicodedata.normalize("NFC", text).casefold(), text)
    return tuple(first.values())


def _property_links(value: Any) -> Iterator[Link]:
    """Yield the wikilinks in the text of properties, at any depth (the reader limits the depth)."""
    if isinstance(value, str):
        yield from find_wikilinks(value)
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _property_links(item)
