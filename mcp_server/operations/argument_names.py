"""Accept arguments as models write them: other common names, camel case, and null for what may be left out.

Law, tested: a name means at most one parameter. Memex refuses a call that would pass a parameter twice."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, get_args

from pydantic import BaseModel

from index.errors import InvalidArgument

# Each row lists names of one thing, in snake case. A name may be in several rows, as `type` is: the tool's parameters decide.
SAME: Final = tuple(
    frozenset(row.split())
    for row in (
        "content text body note new_content observation fact",
        "query q question search",
        "top_k top_n k limit max_results",
        "id document_id memo_id thought_id note_id",
        "source_path path file_path",
        "entity_type node_type type",
        "relation_type relation type",
        "doc_type type",
        "name entity_name entity node node_name",
        "names entity_names node_names entities nodes",
        "contents observations facts",
        "from_entity source_memo_id source from",
        "to_entity target_memo_id target to",
    )
)
ENDS: Final = SAME[-2:]  # the two ends of a relation; one of these names alone means something else
MOST: Final = 64  # names of one object that are translated; no tool has more
MOST_PARTS: Final = 1_000  # objects of one list; no tool takes more
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def rename_arguments(model: type[BaseModel], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the arguments to the names that `model` uses, in nested objects too; an unknown name stays.

    Leaves out a null for an optional parameter: some clients send each parameter, and null for those that the model did
    not choose. Raises InvalidArgument for a parameter that is passed under two names."""
    if len(arguments) > MOST:
        return dict(arguments)  # the validation refuses the unknown names
    fields = _fields(model)
    renamed: dict[str, Any] = {}
    given_as: dict[str, str] = {}
    for name, value in arguments.items():
        field = name if name in fields else find_parameter(model, name)
        if value is None and field in _optional(model):
            continue
        if field in given_as:
            raise InvalidArgument(
                f"{field}: given twice, as {given_as[field]} and as {ascii(name[:64])[1:-1]}; leave one out"
            )
        given_as[field] = name
        part = fields.get(field)
        renamed[field] = value if part is None else _rename_parts(part, value)
    return renamed


def find_parameter(model: type[BaseModel], name: str) -> str:
    """Return the only parameter of `model` that `name` can mean, or `name` itself if it can mean none or several."""
    return _meanings(model).get(_snake(name), name) if len(name) <= MOST else name


@cache
def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """Map each unambiguous name in snake case to its parameter."""
    fields = {field: _snake(field) for field in _fields(model)}
    rows = [row for row in SAME if row not in ENDS or all(end & set(fields.values()) for end in ENDS)]
    meanings = {}
    for name in {*fields.values(), *(word for row in SAME for word in row)}:
        alike = [field for field, plain in fields.items() if plain == name] or [
            field
            for field, plain in fields.items()
            if _fields(model)[field] is None
            and any({name, plain} <= row for row in rows)  # a list of objects has no other names
        ]
        if len(alike) == 1:
            meanings[name] = alike[0]
    return meanings


@cache
def _fields(model: type[BaseModel]) -> dict[str, type[BaseModel] | None]:
    """Map each parameter name to the model of the objects in it, or to None."""
    return {field.alias or name: _find_model(field.annotation) for name, field in model.model_fields.items()}


@cache
def _optional(model: type[BaseModel]) -> frozenset[str]:
    """Return the parameters that have a default."""
    return frozenset(field.alias or name for name, field in model.model_fields.items() if not field.is_required())


def _find_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _find_model(part))), None)


def _rename_parts(model: type[BaseModel], value: Any) -> Any:
    """Rename the arguments in a list of objects, which may arrive as a JSON string."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value
    if not isinstance(value, list) or len(value) > MOST_PARTS:
        return value
    return [rename_arguments(model, item) if isinstance(item, dict) else item for item in value]


def _snake(name: str) -> str:
    return _WORD_START.sub("_", name).replace("-", "_").lower()
