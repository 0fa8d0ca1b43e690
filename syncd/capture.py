"""What a capture becomes: its properties and the name of its file, decided from values alone.

Law: no text that an agent gives can choose a folder, set a property that Memex owns, or take a name that is in use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from index.errors import InvalidArgument, ResourceExhausted
from index.names import fold
from syncd.names import DEVICE
from syncd.note import OWNED, FrontmatterError, comparable_key, compose, properties, split
from syncd.place import RESERVED
from syncd.secrets import redacted
from syncd.tag_names import tag_of
from syncd.timestamps import iso

MAX_CONTENT = 1_000_000  # bytes of one capture
MAX_SOURCE = 500  # characters
NAME_BYTES = 200  # of 255: room for a suffix and ".md"
NAME_LENGTH = 80
_UNSAFE = re.compile(
    r'[\\/:*?"<>|#^\[\]%\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe\uffff]|[\ud800-\udfff]'
)
_BLANK = re.compile(r"\s+")
_ENDING = re.compile(r"(?:\.md)+\Z", re.IGNORECASE)  # a link takes it for the file's
NAMELESS = "Entity"  # the file of a node whose name no file can have a part of
_MARKUP = re.compile(r"^(?:[>\s]|[-*+]\s(?:\[.\]\s)?|\d{1,9}[.)]\s|#{1,6}\s|\[![\w-]{1,40}\][+-]?)+")
# What sync programs call a version that they set aside.
CONFLICT_COPY = re.compile(
    r"""\.sync-conflict-\d{8}-\d{6}-[A-Z0-9]{7}(?=\.[^.]+$|$)               # Syncthing
    |\ \((?:[^()]*\ )?conflicted\ copy(?:\ [^()]*)?\)(?=\.[^.]+$|$)         # Obsidian Sync, Dropbox, Nextcloud
    |_conflict-\d{8}-\d{6}(?=\.[^.]+$|$)                                 # ownCloud
    |\ \(SFConflict\ [^()]+\)(?=\.[^.]+$|$)                               # Seafile
    |\ \[conflicted\](?=\.[^.]+$|$)                                      # pCloud""",
    re.IGNORECASE | re.VERBOSE,
)


def file_name(title: str) -> str:
    """`title` as a base name without ".md" that every file system and every kind of link can hold; may be empty."""
    name = _UNSAFE.sub(" ", unicodedata.normalize("NFC", title)).replace("\u00a0", " ").replace("\u202f", " ")
    name = _BLANK.sub(" ", name).strip(" .-~")[:NAME_LENGTH]
    name = name.encode()[:NAME_BYTES].decode(errors="ignore").strip(" .-~")
    head, dot, ending = name.partition(".")
    return f"{head} note{dot}{ending}" if DEVICE.match(name) else name


def node_file(name: str) -> str:
    """The base name that the file of a node would have, if it is free: no secret, and nothing that means more at its end."""
    stem = redacted(file_name(name))
    while stem != (plain := CONFLICT_COPY.sub("", _ENDING.sub("", file_name(stem)))):
        stem = plain
    return stem or NAMELESS


def title_of(content: str) -> str:
    """What a capture is about, in a line: the first line that says something, without its markup."""
    for line in content.splitlines()[:50]:
        words = _MARKUP.sub("", line).replace("`", "").replace("**", "").replace("==", "").strip()
        words = re.sub(r"!?\[\[(?:[^\[\]|\n]{1,300}\|)?([^\[\]|\n]{1,300})\]\]", r"\1", words)
        if file_name(words) and any(c.isalnum() for c in words):
            return words
    return ""


def free_name(title: str, created_at: int, taken: Callable[[str], bool]) -> str:
    """A base name for a new note that no note of the vault has; a twin would change what `[[links]]` mean."""
    name = file_name(title) or f"Capture {iso(created_at)[:19].replace(':', '.').replace('T', ' ')}"
    if not taken(fold(name)):
        return name
    number = 2
    while taken(fold(f"{name} {number}")):
        number += 1
    return f"{name} {number}"


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
    """The properties of a new capture, in the order in which they are written."""
    own: dict[str, Any] = {"id": id, "created_at": iso(created_at)}
    if source:
        own["source"] = source
    own["collection"] = collection
    if title:
        own["title"] = title
    if tags:
        own["tags"] = list(tags)
    return own | dict(metadata)


def metadata_of(given: Mapping[str, Any]) -> tuple[dict[str, Any], str | None, tuple[str, ...]]:
    """`given` metadata without the two fields that may come in it: the rest, the title, the tags.

    Raises InvalidArgument for a key that Memex owns, in whatever spelling Obsidian would take for it."""
    rest = dict(given)
    title, tags = rest.pop("title", None), rest.pop("tags", None)
    if title is not None and not isinstance(title, str):
        raise InvalidArgument("metadata.title must be text")
    if isinstance(tags, str):
        tags = tags.split(",")  # Obsidian takes commas for the end of a tag too
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
    return rest, title, tuple(dict.fromkeys(tag_of(tag) for tag in tags or () if tag_of(tag)))


def workspace_name(name: str) -> str:
    """`name` if it can be a folder of the inbox or of a workspace. Raises InvalidArgument."""
    if not name or name != file_name(name) or fold(name) in RESERVED or name.startswith("."):
        raise InvalidArgument(
            f"{name!r} can't be a workspace or namespace: use letters, digits, blanks, - and _ (not Reports, Archive, Entities, Files)",
            name=name[:100],
        )
    return name


def namespace_path(namespace: str) -> str:
    """The folder of `namespace` below its workspace; "" for the workspace's own top level."""
    if namespace == "default":
        return ""
    parts = namespace.split("/")
    if len(parts) > 8:
        raise InvalidArgument("a namespace has at most 8 levels", namespace=namespace[:200])
    return "/".join(workspace_name(part) for part in parts)


def checked(content: str) -> bytes:
    """The bytes of a capture. Raises InvalidArgument or ResourceExhausted for what can't be one."""
    if not content:
        raise InvalidArgument("content is empty")
    try:
        body = content.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument("content has a lone surrogate, which is no text") from error
    if len(body) > MAX_CONTENT:
        raise ResourceExhausted(
            f"content has {len(body):,} bytes; a capture may have {MAX_CONTENT:,}", limit=MAX_CONTENT
        )
    return body


def checked_source(source: str | None) -> None:
    """Raises InvalidArgument for what can't say where a capture came from."""
    if source is not None and (len(source) > MAX_SOURCE or any(ord(c) < 32 for c in source)):
        raise InvalidArgument(f"source must be one line of at most {MAX_SOURCE} characters")


def composed(own: dict[str, Any], content: str) -> str:
    """The note's text. What is written must read back as what was given, or it is refused."""
    try:
        text = compose(own, content)
        front, body = split(text)
        if body == content and properties(front) == own:
            return text
    except (FrontmatterError, ValueError, TypeError, RecursionError) as error:
        raise InvalidArgument(f"metadata can't be written as properties: {error}") from error
    raise InvalidArgument("metadata holds a value that properties can't; use plain texts, numbers, lists and objects")
