"""Convert raw settings (TOML values, text of the environment and of flags) to typed values, and report mistakes.

Law, tested: a value written as text has the same meaning as in TOML."""

from __future__ import annotations

import dataclasses
import difflib
import json
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

TRUE, FALSE = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})
NUMBERS = {int: "a whole number", float: "a number"}
# No setting needs more: an exbibyte in bytes, and a number of days that fits into 64 bits as milliseconds.
LARGEST = {int: 2**60, float: 10**9}


@dataclass(frozen=True, slots=True)
class Variants:
    """Describes a list of tables of different kinds: `kind` in each table selects its class.

    The module of the classes is imported when needed."""

    module: str
    kinds: Mapping[str, str]  # value of `kind` in the table → name of the class

    def load_class(self, kind: str) -> type[Any]:
        """Return the class for `kind`."""
        loaded: type[Any] = getattr(import_module(self.module), self.kinds[kind])
        return loaded


@dataclass(frozen=True, slots=True)
class Tables:
    """Describes a list of tables of one kind, a dataclass; its module is imported when needed."""

    module: str
    name: str

    def load_class(self) -> type[Any]:
        """Return the class of the tables."""
        loaded: type[Any] = getattr(import_module(self.module), self.name)
        return loaded


@dataclass(frozen=True, slots=True)
class Setting:
    """Describes one setting as it is documented."""

    name: str  # section.key
    kind: Any  # a type, Tables or Variants
    default: Any
    doc: str
    least: float | None = None
    most: float | None = None
    secret: bool = False
    wrong: Callable[[Any], str] | None = None  # returns what is wrong with a value of this type; "" = nothing

    @property
    def type(self) -> str:
        """Return its type in words."""
        return describe_type(self.kind)


def setting(  # the default of each field in a settings dataclass
    default: Any,
    doc: str,
    *,
    least: float | None = None,
    most: float | None = None,
    secret: bool = False,
    kind: Any = None,
    wrong: Callable[[Any], str] | None = None,
) -> Any:
    """Define a field of a settings dataclass by its default, its documentation and its bounds."""
    metadata = {"doc": doc, "least": least, "most": most, "secret": secret, "kind": kind, "wrong": wrong}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def settings_of(cls: type[Any], prefix: str) -> list[Setting]:
    """Return the settings of a dataclass, in order."""
    hints = get_type_hints(cls)
    settings = []
    for field in dataclasses.fields(cls):
        about = dict(field.metadata)
        default = field.default if field.default is not MISSING else None
        if field.default_factory is not MISSING:
            default = field.default_factory()
        kind = about.pop("kind", None) or hints[field.name]
        settings.append(Setting(f"{prefix}.{field.name}", kind, default, about.pop("doc", ""), **about))
    return settings


def describe_type(kind: Any) -> str:
    """Return a type in words: `list of text`, `one of hybrid, vector, text`."""
    if isinstance(kind, Tables | Variants):
        return "list of tables"
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return describe_type(next(arg for arg in args if arg is not types.NoneType))
    if origin is Literal:
        return "one of " + ", ".join(map(str, args))
    if origin is tuple:
        return f"list of {describe_type(args[0])}"
    if origin is not None:
        return "table of text"
    return {bool: "true or false", int: "whole number", float: "number", Path: "path"}.get(kind, "text")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean x?` with the known name nearest to `name`, or "". Names without their section match too."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    last = name.rsplit(".", 1)[-1]
    near = near or [k for k in known if k.rsplit(".", 1)[-1] == last]
    near = near or [k for k in known if difflib.SequenceMatcher(None, last, k.rsplit(".", 1)[-1]).ratio() > 0.75]
    return f"; did you mean {near[0]}?" if near else ""


def convert(setting: Setting, value: Any, *, text: bool) -> Any:
    """Convert `value` to the setting's type. Raises ValueError with the reason if that is not possible.

    `text`: the value comes from the environment or a flag."""
    if isinstance(setting.kind, Tables | Variants):
        return _convert_tables(setting.kind, _parse_json(value) if text else value)
    converted = _convert(setting.kind, value, text=text)
    if setting.wrong is not None and (why := setting.wrong(converted)):
        raise ValueError(why)
    if isinstance(converted, int | float) and not isinstance(converted, bool):
        if setting.least is not None and converted < setting.least:
            raise ValueError(f"must be at least {setting.least:g}")
        if setting.most is not None and converted > setting.most:
            raise ValueError(f"must be at most {setting.most:g}")
        if converted > (largest := LARGEST[type(converted)]):
            raise ValueError(f"must be at most {largest:,}")
    return converted


def _convert(kind: Any, value: Any, *, text: bool) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return _convert(next(arg for arg in args if arg is not types.NoneType), value, text=text)
    if origin is Literal:
        if value not in args:
            raise ValueError(f"must be one of {', '.join(map(str, args))}")
        return value
    if origin is tuple:
        return tuple(_convert(args[0], item, text=False) for item in _to_list(value, text=text))
    if origin is not None:
        return _to_text_table(_parse_json(value) if text and isinstance(value, str) else value)
    return _SCALARS[kind](value, text)


def _to_bool(value: Any, text: bool) -> bool:
    if isinstance(value, bool):
        return value
    if text and str(value).lower() in TRUE | FALSE:
        return str(value).lower() in TRUE
    raise ValueError("must be true or false")


def _to_number(kind: type[int | float]) -> Callable[[Any, bool], Any]:
    def convert_number(value: Any, text: bool) -> Any:
        try:
            if isinstance(value, bool) or (isinstance(value, str) and not text):
                raise TypeError  # noqa: TRY301 - one message for all values that are not numbers
            converted = kind(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"must be {NUMBERS[kind]}") from None
        if isinstance(value, float) if kind is int else not isfinite(converted):
            raise ValueError(f"must be {NUMBERS[kind]}")
        return converted

    return convert_number


def _to_text(value: Any, text: bool) -> str:  # noqa: ARG001 - one signature for all scalars
    if not isinstance(value, str):
        raise ValueError("must be text")  # noqa: TRY004 - every mistake in a value is a ValueError
    if "\x00" in value:
        raise ValueError("must not hold a NUL character")
    return value


def _to_path(value: Any, text: bool) -> Path:
    if not _to_text(value, text):
        raise ValueError("must not be empty")
    return Path(value)


_SCALARS: dict[Any, Callable[[Any, bool], Any]] = {
    bool: _to_bool,
    int: _to_number(int),
    float: _to_number(float),
    str: _to_text,
    Path: _to_path,
}


def _to_list(value: Any, *, text: bool) -> list[Any]:
    if text and isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [part.strip() for part in value.split(",") if part.strip()]
        value = _parse_json(value)
    if not isinstance(value, list | tuple):
        raise ValueError('must be a list, such as ["a", "b"]')  # noqa: TRY004 - every mistake in a value is a ValueError
    return list(value)


def _to_text_table(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(entry, str) for entry in value.values()):
        raise ValueError("must be a table of text")
    return dict(value)


def _parse_json(value: str) -> Any:
    try:
        return json.loads(value)
    except (json.JSONDecodeError, RecursionError):
        raise ValueError("must be JSON here") from None


def _convert_tables(tables: Tables | Variants, value: Any) -> tuple[Any, ...]:
    """Convert each table to an object. Raises one ValueError with all mistakes."""
    if not isinstance(value, list | tuple) or not all(isinstance(entry, Mapping) for entry in value):
        each = ', each with a "kind"' if isinstance(tables, Variants) else ""
        raise ValueError(f"must be a list of tables{each}")
    objects, mistakes = [], []
    for place, entry in enumerate(value, 1):
        try:
            if isinstance(tables, Variants):
                objects.append(_convert_variant(tables, entry))
            else:
                objects.append(_build_object(tables.load_class(), entry, f" in table {place}"))
        except ValueError as error:
            mistakes.append(str(error))
    if mistakes:
        raise ValueError("; ".join(dict.fromkeys(mistakes)))
    return tuple(objects)


def _convert_variant(variants: Variants, entry: Mapping[str, Any]) -> Any:
    table = dict(entry)
    kind = table.pop("kind", None)
    if not isinstance(kind, str) or kind not in variants.kinds:
        raise ValueError(f'"kind" must be one of {", ".join(variants.kinds)}')
    return _build_object(variants.load_class(kind), table, f" for kind {kind}")


def _build_object(cls: type[Any], table: Mapping[str, Any], of: str) -> Any:
    """Convert a table to an object of `cls`. Raises one ValueError with all mistakes; `of` names the table in it."""
    known = {setting.name.removeprefix("."): setting for setting in settings_of(cls, "")}
    mistakes = [f"{name} is not known{of}{did_you_mean(name, known)}" for name in table if name not in known]
    missing = [
        field.name for field in dataclasses.fields(cls)
        if field.default is MISSING and field.default_factory is MISSING and field.name not in table
    ]  # fmt: skip
    mistakes += [f"{name} is missing{of}" for name in missing]
    values = {}
    for name in table.keys() & known.keys():
        try:
            values[name] = convert(known[name], table[name], text=False)
        except ValueError as error:
            mistakes.append(f"{name} {error}{of}")
    if mistakes:
        raise ValueError("; ".join(sorted(mistakes)))
    try:
        return cls(**values)
    except ValueError as error:  # mistakes that the class finds
        raise ValueError(f"{error}{of}") from None
