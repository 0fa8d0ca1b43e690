"""Check an upload request: the file's name and description, the sizes of its chunks, and which chunks are missing.

Law: a name in a request is metadata; no code here turns it into a path."""

from __future__ import annotations

import binascii
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from index.errors import InvalidArgument, ResourceExhausted
from index.query import tag_of
from syncd.documents.collection_membership import choose_collection
from syncd.notes.secret_patterns import refuse_secret
from syncd.vault.location import namespace_path
from syncd.vault.path_rules import is_utf8

CHUNK: Final = 1_048_576  # recommended bytes of a chunk
LARGEST: Final = 2 * CHUNK  # most bytes of a chunk
CHUNKS: Final = 10_000  # most chunks of one upload; each is a file
NAME_BYTES: Final = 255
TITLE, SOURCE, TAGS = 500, 500, 100  # limits: characters, characters, number of tags
MOST_LISTED: Final = 100  # most missing indexes to list in an error
_HOSTILE: Final = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")


def check_filename(raw_name: str) -> str:
    """Return a file name in the form to store; of a path, which some clients send, the last part.

    Raises InvalidArgument."""
    try:
        raw_name.encode()
    except UnicodeEncodeError:
        raise _invalid_field("filename", "is not Unicode text") from None
    name = unicodedata.normalize("NFC", re.split(r"[/\\]", raw_name)[-1]).strip()
    if not name.strip(". "):
        raise _invalid_field("filename", "is not a file name: use a name such as report.pdf")
    if _HOSTILE.search(name):
        raise _invalid_field("filename", "contains a control character or a character that reorders text")
    if (size := len(name.encode())) > NAME_BYTES:
        raise _invalid_field("filename", f"has {size:,} bytes; the limit of a name is {NAME_BYTES}")
    refuse_secret("filename", name)
    return name


def check_description(
    known: Sequence[str],
    *,
    title: str | None = None,
    tags: Sequence[str] = (),
    collection: str | None = None,
    namespace: str | None = None,
    source: str | None = None,
) -> dict[str, Any]:
    """Return a file's description in the form that the queue stores; `known` are the known collections.

    Raises InvalidArgument."""
    for field, text, longest in (("title", title, TITLE), ("source", source, SOURCE)):
        if text and (len(text) > longest or _HOSTILE.search(text) or not is_utf8(text)):
            raise _invalid_field(field, f"must be one line of at most {longest} characters")
    namespace = unicodedata.normalize("NFC", namespace or "default")
    namespace_path(namespace)
    refuse_secret("namespace", namespace)
    if len(tags) > TAGS or not all(is_utf8(tag) for tag in tags):
        raise _invalid_field("tags", f"must be at most {TAGS} tags of Unicode text")
    named, plain_tags = choose_collection(collection, tags, known)
    return {
        "title": (title or "").strip() or None,
        "tags": list(dict.fromkeys(tag for plain in plain_tags if (tag := tag_of(plain)))),
        "collection": named,
        "namespace": namespace,
        "source": source,
    }


def check_size(total: int, *, largest: int) -> int:
    """Return a file's size in bytes. Raises InvalidArgument if it is below 1, ResourceExhausted if it is too large."""
    if total < 1:
        raise _invalid_field(
            "total_size", "must be the number of bytes of the file, 1 or more: an empty file contains no text"
        )
    if total > largest:
        raise ResourceExhausted(f"the file has {total:,} bytes; the limit is {largest:,}", limit=largest)
    return total


def check_sha256(digest: str | None) -> str | None:
    """Return the expected digest of a whole file in lower case; None if none was given. Raises InvalidArgument."""
    if digest is not None and not _SHA256.fullmatch(digest):
        raise _invalid_field("sha256", "must be 64 hexadecimal digits")
    return digest.lower() if digest else None


def decode_chunk(data: str) -> bytes:
    """Decode a chunk from base64, ignoring white space in it. Raises InvalidArgument or ResourceExhausted."""
    if len(data) > 2 * LARGEST:
        raise chunk_too_large(len(data) * 3 // 4)
    plain = "".join(data.split())
    try:
        if len(plain) % 4 == 0:  # some versions of Python accept one = too many even in strict mode
            return binascii.a2b_base64(plain.encode("ascii"), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError):
        pass
    raise _invalid_field("data", "is not base64 (A-Z a-z 0-9 + / and = at the end); encode each chunk separately")


def check_chunk(index: int, size: int, *, total: int, others: int) -> None:
    """Refuse a chunk that can't belong to a file of `total` bytes; `others` is the number of bytes in other chunks.

    Raises InvalidArgument or ResourceExhausted."""
    most = min(total, CHUNKS)
    if not 0 <= index < most:
        more = "; send fewer, larger chunks" if index >= CHUNKS else ""
        raise _invalid_field("chunk_index", f"must be from 0 to {most - 1:,} in a file of {total:,} bytes{more}")
    if not size:
        raise _invalid_field("data", "is empty")
    if size > LARGEST:
        raise chunk_too_large(size)
    if others + size > total:
        raise _invalid_field(
            "data",
            f"would give the file {others + size:,} bytes, but its total_size is {total:,}; send the right chunk, or start again",
        )


def chunk_too_large(size: int) -> ResourceExhausted:
    """Return the error for a chunk of `size` bytes, which is too large."""
    return ResourceExhausted(
        f"the chunk has {size:,} bytes; the limit is {LARGEST:,}, and {CHUNK:,} are recommended", limit=LARGEST
    )


def check_complete(parts: Mapping[int, int], total: int) -> None:
    """Raise InvalidArgument unless `parts` (index → bytes) make up a whole file of `total` bytes."""
    received = sum(parts.values())
    missing = [index for index in range(max(parts, default=0)) if index not in parts] or ([] if parts else [0])
    if missing:
        raise InvalidArgument(
            f"chunks are missing: {format_spans(missing)}; send them, then finish again",
            missing=missing[:MOST_LISTED],
            received_bytes=received,
            total_size=total,
        )
    if received < total:
        raise InvalidArgument(
            f"{total - received:,} of {total:,} bytes are missing: send the chunks from {len(parts)} on, then finish again",
            missing=[len(parts)],
            received_bytes=received,
            total_size=total,
        )


def format_spans(numbers: Iterable[int]) -> str:
    """Format ascending numbers as spans, such as `0, 3-7, 9`; at most the first 20 spans."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    ranges = [f"{first}" if first == last else f"{first}-{last}" for first, last in runs[:20]]
    return ", ".join(ranges) + (" and more" if len(runs) > 20 else "")


def _invalid_field(field: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"{field} {problem}", field=field)
