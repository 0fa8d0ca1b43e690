"""Read, write and remove one server's entry in the text of a client's settings file, JSON with comments or TOML.

Law, tested: a returned text parses to the old values with only this entry changed."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from index.errors import InvalidArgument
from syncd.clients.jsonc_editor import read_jsonc, remove_member, set_member

# ruff: noqa: PLC0415 - tomlkit would slow down the start of every command, and only one client needs it
Syntax: TypeAlias = Literal["json", "toml"]
UNEDITABLE: Final = "Memex can't edit its syntax without changing other parts"


def read_entry(text: str, syntax: Syntax, path: Sequence[str]) -> Any:
    """Return the entry at `path`; None when there is none. Raises InvalidArgument for malformed text."""
    value: Any = _read(text, syntax)
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def put_entry(text: str, syntax: Syntax, path: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return the text with `entry` at `path`, replacing an entry there. Raises InvalidArgument if that is not possible."""
    wanted = copy.deepcopy(_read(text, syntax))
    here = wanted
    for key in path[:-1]:
        here = here.setdefault(key, {})
        if not isinstance(here, dict):
            raise InvalidArgument(f"{key!r} in it is not a table of servers")
    here[path[-1]] = dict(entry)
    return _check(_edit(text, syntax, path, entry), syntax, wanted)


def remove_entry(text: str, syntax: Syntax, path: Sequence[str]) -> str:
    """Return the text without the entry at `path`. Raises InvalidArgument if that is not possible."""
    if read_entry(text, syntax, path) is None:
        return text
    wanted = copy.deepcopy(_read(text, syntax))
    here = wanted
    for key in path[:-1]:
        here = here[key]
    del here[path[-1]]
    edited = _edit(text, syntax, path, None)
    if not here and read_entry(edited, syntax, path[:-1]) is None:  # in TOML, a parent can go with its last table
        here = wanted
        for key in path[:-2]:
            here = here[key]
        del here[path[-2]]
    return _check(edited, syntax, wanted)


def _edit(text: str, syntax: Syntax, path: Sequence[str], entry: Mapping[str, Any] | None) -> str:
    if syntax == "toml":
        return _edit_toml(text, path, entry)
    try:
        return remove_member(text, path) if entry is None else set_member(text, path, entry)
    except ValueError as error:
        raise InvalidArgument(str(error)) from error


def _edit_toml(text: str, path: Sequence[str], entry: Mapping[str, Any] | None) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        here: Any = document
        for key in path[:-1]:
            if key not in here:
                here[key] = tomlkit.table(is_super_table=True)
            here = here[key]
        after = _comments_after(here[path[-1]]) if path[-1] in here else []
        if after and entry is None:  # these comments describe the next table, and would be removed with the entry
            raise InvalidArgument(UNEDITABLE)
        if path[-1] in here:
            del here[path[-1]]
        if entry is not None:
            table = tomlkit.table()
            for name, value in entry.items():
                table[name] = value
                if isinstance(value, Mapping):
                    table[name] = tomlkit.inline_table()
                    table[name].update(value)
            for item in after:
                table.add(item)
            here[path[-1]] = table
        edited = tomlkit.dumps(document)  # new lines in it end with "\n"
        is_crlf = "\r\n" in text and "\n" not in text.replace("\r\n", "")
        return edited.replace("\r\n", "\n").replace("\n", "\r\n") if is_crlf else edited
    except (TOMLKitError, ValueError) as error:  # for example a table within an inline table
        raise InvalidArgument(UNEDITABLE) from error


def _comments_after(table: Any) -> list[Any]:
    """Return the comments and blank lines below the last value of a table, which tomlkit treats as part of the table."""
    from tomlkit.items import Comment, Table, Whitespace

    while isinstance(table, Table) and table.value.body and isinstance(table.value.body[-1][1], Table):
        table = table.value.body[-1][1]
    items: list[Any] = []
    for key, item in reversed(table.value.body if isinstance(table, Table) else []):
        if key is not None or not isinstance(item, Comment | Whitespace):
            break
        items.insert(0, item)
    return items if any(isinstance(item, Comment) for item in items) else []


def _check(text: str, syntax: Syntax, wanted: Any) -> str:
    """Return the text if it parses to `wanted`; otherwise raise InvalidArgument.

    Some forms of TOML can't be edited without changing other parts."""
    if _read(text, syntax) != wanted:
        raise InvalidArgument(UNEDITABLE)
    return text


def _read(text: str, syntax: Syntax) -> Any:
    try:
        return read_jsonc(text) if syntax == "json" else tomllib.loads(text)
    except ValueError as error:
        raise InvalidArgument(str(error)) from error
    except RecursionError as error:
        raise InvalidArgument("its values are nested too deep") from error
