"""Change items of a list property in a note, each by its own lines.

Law, tested: the result contains the requested changes, and every line of unchanged items and properties stays; a
list that does not have one item on each line is rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from syncd.notes.front_matter import FrontmatterError, PropertyValue, edit, format_list_item, spelling_of, verify
from syncd.notes.property_reader import Properties, find_fences, scan


def edit_items(
    text: str, key: str, changed: Mapping[int, Mapping[str, PropertyValue] | None], added: Sequence[PropertyValue] = ()
) -> str:
    """Return `text` with some items of the list `key` changed and some added at its end.

    `changed` maps the position of an item to the keys to set in it (None: remove the key), or to None: remove the
    item. A list that becomes empty is removed. Raises FrontmatterError, as `front_matter.edit` does."""
    start, end, cut = find_fences(text)
    current = scan(text[start:end]) if start else Properties({})
    name = spelling_of(key, current.values)
    values = current.values.get(name) or []
    if not isinstance(values, list):
        raise FrontmatterError(f"`{name}` is not a list")
    wanted = [_merge_item(value, changed[at]) if at in changed else value for at, value in enumerate(values)]
    kept = [value for at, value in enumerate(wanted) if changed.get(at, {}) is not None] + list(added)
    spans = _item_spans(text[start:end], current, name) if values and kept and not current.repeated else []
    if len(spans) != len(values) or not spans:
        return edit(text, {name: kept or None})
    newline = "\r\n" if text[start - 2 : start] == "\r\n" else text[start - 1]
    inner = text[start:end]
    indent = " " * _indent(inner[spans[0][0] :])
    inner = (
        inner[: spans[-1][1]]
        + "".join(format_list_item(value, indent, newline) for value in added)
        + inner[spans[-1][1] :]
    )
    for at in sorted(changed, reverse=True):
        first, last = spans[at]
        inner = inner[:first] + _edit_item_lines(inner[first:last], wanted[at], changed[at], newline) + inner[last:]
    verify(text[:start] + inner + text[end:cut], {**current.values, name: kept})
    return text[:start] + inner + text[end:]


def _merge_item(value: Any, changes: Mapping[str, PropertyValue] | None) -> Any:
    if changes is None:
        return value
    whole = {**(value if isinstance(value, dict) else {}), **changes}
    return {key: part for key, part in whole.items() if part is not None or key not in changes}


def _edit_item_lines(lines: str, wanted: Any, changes: Mapping[str, PropertyValue] | None, newline: str) -> str:
    """Return the lines of an item after the changes: only changed keys, if each key has its own line."""
    if changes is None:
        return ""
    indent = " " * _indent(lines)
    fence = f"---{newline}"
    try:
        inner = edit(f"{fence}{indent} {lines[len(indent) + 1 :]}{fence}", changes)[len(fence) : -len(fence)]
    except FrontmatterError:
        return format_list_item(wanted, indent, newline)
    if inner.isspace() or not inner.startswith(indent + " "):
        return format_list_item(wanted, indent, newline)
    return f"{indent}-{inner[len(indent) + 1 :]}"


def _item_spans(inner: str, current: Properties, name: str) -> list[tuple[int, int]]:
    """Return the span of each item's lines, without comments and blank lines after it; none if they are not one per line."""
    keys = current.keys or {}
    if keys[name].value is not None or current.flow:
        return []
    limit = min((key.start for key in keys.values() if key.start > keys[name].start), default=len(inner))
    spans: list[tuple[int, int]] = []
    at, width = _next_line(inner, keys[name].end), -1
    while at < limit:
        after = min(_next_line(inner, at), limit)
        line = inner[at:after]
        if line.strip() and not line.lstrip(" ").startswith("#"):
            if width < 0:
                width = _indent(line)
            if (
                line[width : width + 1] == "-"
                and line[:width].isspace() == bool(width)
                and line[width + 1 :][:1].isspace()
            ):
                spans.append((at, after))
            elif not spans:
                return []
            else:
                spans[-1] = (spans[-1][0], after)
        at = after
    return spans


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _next_line(text: str, at: int) -> int:
    ends = [end for mark in ("\r", "\n") if (end := text.find(mark, at)) >= 0]
    if not ends:
        return len(text)
    end = min(ends)
    return end + (2 if text[end : end + 2] == "\r\n" else 1)
