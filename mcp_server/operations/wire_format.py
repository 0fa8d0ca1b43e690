"""Encode errors and values for the wire: one table of statuses, one shape of error, compact JSON.

Law: an error on the wire has a code and a sentence, and no stack trace, host path or rejected value."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from operator import not_
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, computed_field, field_validator
from pydantic_core import PydanticSerializationError, from_json

from index.errors import (
    Conflict,
    InvalidArgument,
    MemexError,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
)
from index.text import hidden_characters, link_schemes, runnable_code
from mcp_server.http.request_log import describe_error
from syncd.notes import secret_patterns, tag_names
from syncd.notes.front_matter import MERGE_CONFLICT

if TYPE_CHECKING:
    from index.model import Defect, Record
    from syncd.workspaces.workspace import Workspace

STATUS: Final[Mapping[str, int]] = {
    InvalidArgument.code: 400,
    Unauthenticated.code: 401,
    PermissionDenied.code: 403,
    NotFound.code: 404,
    Conflict.code: 409,
    ResourceExhausted.code: 429,
    Unavailable.code: 503,
}
SHA256: Final = "^[0-9a-fA-F]{64}$"
LONGEST_DETAIL: Final = 64
PROBLEMS: Final[Mapping[str, str]] = {  # in words of JSON instead of pydantic's words of Python
    "extra_forbidden": "unknown argument",
    "missing": "is required",
    "json_invalid": "not valid JSON",
    "string_pattern_mismatch": "has no visible character, or a character that is not allowed",
    "string_unicode": "not valid Unicode text",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "must have {min_length:,} or more items",
    "too_long": "must have {max_length:,} or fewer items",
}


class RequestModel(BaseModel):
    """Validates what a caller sends, and refuses unknown fields: Memex must not silently ignore a misspelt filter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("namespace", mode="before", check_fields=False)
    @classmethod
    def _compose_namespace(cls, value: object) -> object:
        """Return a namespace in the Unicode form in which the index has it."""
        return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


class AnswerModel(BaseModel):
    """Describes a part of an answer."""

    model_config = ConfigDict(frozen=True)


class NoteText(AnswerModel):
    """Describes an answer, or a part of one such as a hit, that may contain text of notes.

    `suspicious` covers all of its text: names, tags and nested parts too."""

    @computed_field(description="Kinds of hidden characters in this text")  # type: ignore[prop-decorator]  # mypy knows no such pair
    @cached_property
    def suspicious(self) -> list[str]:
        """Return the kinds of invisible characters in the text, from the closed list `hidden_characters.KINDS`."""
        return find_suspicious(self)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the answer; the copy looks for hidden characters again."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("suspicious", None)
        return copied


class Replaceable(AnswerModel):
    """Names the newer document that replaces this one; the fields are left out if there is none."""

    stale: bool = Field(False, description="true: a newer note replaces it", exclude_if=not_)
    superseded_by: str | None = Field(None, description="Id of the newer note", exclude_if=not_)


class HitQuality(AnswerModel):
    """Says whether a hit may be chance; the field is left out if the hit is a good one."""

    weak: bool = Field(False, description="true: probably not about the query", exclude_if=not_)


class NoteOrigin(AnswerModel):
    """Says where a note is from; the field is left out for a note of the workspace. Memex computes it: no note can state it."""

    scope: Literal["vault"] | None = Field(
        None, description="vault: your owner's own note, shared read-only; path is in the vault", exclude_if=not_
    )


class NoteLink(AnswerModel):
    """Describes a note that Obsidian can open; `link_notes` decides which answers get the URL."""

    is_whole: ClassVar[bool] = False  # True for a note that is read or written alone, not as a hit

    url: str | None = Field(default=None, description="Opens the note in its owner's Obsidian", exclude_if=not_)

    def place(self) -> str:
        """Return the note's path below its workspace's folder, or "" if its file has just disappeared."""
        path = getattr(self, "path", None) or getattr(self, "source_path", None)
        return path if isinstance(path, str) else ""


class NoteLocation(NoteLink):
    """Describes a note that Obsidian can open, with its path in the field `path`."""

    path: str = Field(description="Path of the note's file below the workspace's folder, as kb_get takes it")


def find_suspicious(value: object) -> list[str]:
    """Return the kinds of hidden characters in all texts of `value`, an answer or plain data.

    If there are none, all answers in `value` remember this, and do not look again."""
    texts, answers, parts = list[str](), list[NoteText](), [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            texts.append(part)
        elif part is None or isinstance(part, (int, float)):  # the checks below are slow, and many values are these
            continue
        elif isinstance(part, BaseModel):
            parts.extend(vars(part).values())  # without the names of the fields
            if isinstance(part, NoteText):
                answers.append(part)
        elif isinstance(part, Mapping):
            parts += [*part.keys(), *part.values()]
        elif isinstance(part, Sequence):
            parts.extend(part)
    if not hidden_characters.may_hide("\n".join(texts)):  # few answers do, and one look is faster than many
        for answer in answers:
            vars(answer)["suspicious"] = []  # where `cached_property` keeps it
        return []
    kinds = set[str]().union(*map(hidden_characters.find_hidden, texts))
    return [kind for kind in hidden_characters.KINDS if kind in kinds]


def refuse_hidden(name: str) -> str:
    """Return `name`, the name of a new entity or relation. Raises ValueError for hidden characters: two names that look alike would differ."""
    if kinds := hidden_characters.find_hidden(
        f" {name.strip()}"
    ):  # the added blank makes a byte order mark at the start count
        raise ValueError(f"has invisible characters ({', '.join(kinds)}); remove them")
    return name


def warnings_about(defects: Iterable[Defect]) -> list[str]:
    """Return the defects of a note that its writer should report to a person."""
    reported = (
        *(secret_patterns.DEFECT, hidden_characters.DEFECT, runnable_code.DEFECT, link_schemes.DEFECT),
        *(tag_names.DEFECT, MERGE_CONFLICT),
    )
    return [str(defect) for defect in defects if defect.name in reported]


def scope_fields(record: Record) -> dict[str, Any]:
    """Return the field of `NoteOrigin` for this document."""
    return {"scope": "vault"} if record.scope == "vault" else {}


def replacement_fields(workspace: Workspace, record: Record) -> dict[str, Any]:
    """Return the fields of `Replaceable` for this document."""
    if record.superseded_by is None:
        return {}
    return {"stale": True, "superseded_by": workspace.successor(record)}


def chunk_id(document_id: str, ordinal: int) -> str:
    """Return the id of one chunk of a document, which all tools use."""
    return f"{document_id}#{ordinal}"


def http_status(error: MemexError) -> int:
    """Return the HTTP status of an error: 413 instead of 429 if the error has a `limit` and no retry helps."""
    large = error.code == ResourceExhausted.code and "limit" in error.details and not error.retryable
    return 413 if large else STATUS[error.code]


def error_body(error: MemexError) -> bytes:
    """Encode `{"error": {…}}` as compact JSON."""
    return json.dumps({"error": describe_error(error)}, separators=(",", ":"), default=str).encode()


def invalid_argument(problem: ValidationError, request: type[BaseModel]) -> InvalidArgument:
    """Make an error that names each wrong field and its problem, but never the value; for an unknown one also the known ones."""
    errors = problem.errors(include_url=False, include_input=False)
    reported = [candidate for candidate in errors if not _is_consequence(candidate, errors)][:10]
    fields = [
        {"field": ".".join(_printable(part) for part in error["loc"]) or "body", "problem": _problem_text(error)}
        for error in reported
    ]
    # A problem of the arguments together needs no name in front: "body" is a word of REST only.
    sentences = [
        field["problem"]
        if error["type"] == "value_error" and not error["loc"]
        else f"{field['field']}: {field['problem']}"
        for field, error in zip(fields, reported, strict=True)
    ]
    if any(error["type"] == "extra_forbidden" and len(error["loc"]) == 1 for error in errors):
        known = ", ".join(field.alias or name for name, field in request.model_fields.items())
        sentences.append(f"the arguments are {known}" if known else "there are no arguments")
    return InvalidArgument("; ".join(sentences), fields=fields)


def encode_payload(value: BaseModel) -> tuple[dict[str, Any], str]:
    """Encode `value` as plain data and as compact JSON text."""
    find_suspicious(value)  # of the whole answer, before each of its parts is asked alone
    try:
        text = value.model_dump_json()
        return from_json(text), text
    except (PydanticSerializationError, UnicodeEncodeError):
        # A manually added note may contain bytes that are no valid text; the rest of the answer must still be sent.
        data = _replace_all_surrogates(value.model_dump())
        return data, json.dumps(data, ensure_ascii=False, separators=(",", ":"))


@cache
def compact_schema(model: type[BaseModel], *, output: bool = False, exact: bool = False) -> dict[str, Any]:
    """Return the model's JSON schema in a compact form: definitions inlined, without titles and, for input, without `null` and patterns.

    `exact` keeps `null` and patterns, so that the schema allows exactly what a call accepts. The result is cached, because it
    takes milliseconds: do not change it."""
    full = model.model_json_schema(mode="serialization" if output else "validation")
    definitions = full.pop("$defs", {})
    small = _compact_node(full, definitions, output=output, exact=output or exact)
    assert isinstance(small, dict)
    small.pop("description", None)
    return small


def with_collections(schema: dict[str, Any], collections: Sequence[str]) -> dict[str, Any]:
    """Return an input schema in which each `collection` lists the known collections."""
    properties = dict(schema["properties"])
    if collection := properties.get("collection"):
        places = collection.get("anyOf", [collection])
        named = [
            {"type": "string", "enum": list(collections)} if place["type"] == "string" else place for place in places
        ]
        extras = {key: value for key, value in collection.items() if key in ("description", "default")}
        properties["collection"] = (named[0] if len(named) == 1 else {"anyOf": named}) | extras
    return schema | {"properties": properties}


def _compact_node(node: Any, definitions: Mapping[str, Any], *, output: bool, exact: bool) -> Any:
    if isinstance(node, list):
        return [_compact_node(part, definitions, output=output, exact=exact) for part in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _compact_node(definitions[node["$ref"].rpartition("/")[2]], definitions, output=output, exact=exact)
    kept = {
        key: {name: _compact_node(sub, definitions, output=output, exact=exact) for name, sub in value.items()}
        if key == "properties"
        else _compact_node(value, definitions, output=output, exact=exact)
        for key, value in node.items()
        if key not in ("title", "readOnly")
        and not (key == "default" and (value is None or output))
        and not (key == "pattern" and not exact)
    }
    if not exact and (choices := kept.get("anyOf")) and {"type": "null"} in choices:
        rest = [choice for choice in choices if choice != {"type": "null"}]
        if len(rest) == 1:
            del kept["anyOf"]
            kept = {**rest[0], **kept}
    return kept


def _printable(part: int | str) -> str:
    text = str(part)
    text = text if text.isascii() and text.isprintable() else ascii(text)[1:-1]
    return text[:LONGEST_DETAIL]


def _is_consequence(error: Mapping[str, Any], errors: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a list is too short only because some of its items are invalid, which have their own errors."""
    loc = error["loc"]
    return error["type"] == "too_short" and any(other["loc"][: len(loc)] == loc != other["loc"] for other in errors)


def _problem_text(error: Mapping[str, Any]) -> str:
    if error.get("ctx", {}).get("pattern") == SHA256:
        return "must be the 64 hexadecimal digits of a SHA-256 digest"
    if known := PROBLEMS.get(error["type"]):
        return known.format(**error.get("ctx", {}))
    return str(error["msg"]).removeprefix("Value error, ")


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate in `text` with one U+FFFD, so that it can be sent."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _replace_all_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, Mapping):
        return {_replace_all_surrogates(key): _replace_all_surrogates(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_replace_all_surrogates(part) for part in value]
    return value
