"""Render templates with values that may come from notes: everything is escaped, and hidden characters are made visible.

Law, tested: text of a note never becomes markup, and can't hide characters or reorder the text around it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from index.names import pluralize
from index.text.hidden_characters import escape_hidden
from syncd.cli.terminal.status_page import format_duration
from syncd.notes.timestamps import zoned_time

PAGE: Final = Path(__file__).parents[1]  # the package of the page, with its templates and static files


def make_templates() -> Environment:
    """Return the environment of the page's templates."""
    environment = Environment(
        loader=FileSystemLoader(PAGE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_make_visible,
    )
    environment.filters |= {"clock": clock_time, "duration": format_duration, "took": time_taken}
    environment.filters |= {"code": mark_code, "excerpt": excerpt, "verbatim": verbatim, "packed": pack_path}
    environment.globals |= {"link": link, "pluralize": pluralize}
    return environment


def _make_visible(value: Any) -> Any:
    """Escape hidden characters of a text, and bytes of a path that are not UTF-8; leave markup and numbers alone."""
    if value is None:
        return ""
    if type(value) is not str or (value.isascii() and value.isprintable()):
        return value
    return escape_hidden(value).encode("utf-8", "backslashreplace").decode()


def link(path: str, /, **query: Any) -> str:
    """Return the address of a page with these query values; empty values are left out."""
    pairs = [
        (name, str(item).encode("utf-8", "surrogateescape"))
        for name, value in query.items()
        for item in (value if isinstance(value, list | tuple) else [value])
        if item not in (None, "")
    ]
    return quote(path) + ("?" + urlencode(pairs) if pairs else "")


def clock_time(at: int) -> Markup:
    """Return a time (epoch milliseconds) as an element: the time of day today, else the date."""
    moment = zoned_time(at)
    today = moment.date() == datetime.now(moment.tzinfo).date()
    local = moment.replace(tzinfo=None).isoformat(" ", "seconds")  # not %Y, which writes the year 1 with one digit
    shown = local[11:16] if today else local[:16]
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        moment.isoformat(timespec="seconds"), f"{moment:%A}, {local} {moment:%Z}", shown
    )


def time_taken(seconds: float) -> str:
    """Return how long something took, in tenths of a second below a minute."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds >= 0.05 else "< 0.1 s"
    return format_duration(seconds * 1000)


def mark_code(text: str) -> Markup:
    """Return a sentence in which parts in backticks are code elements."""
    parts = str(_make_visible(text)).split("`")
    if len(parts) % 2 == 0:  # a backtick without a partner
        return escape("`".join(parts))
    pieces: list[Markup] = [
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    ]
    return Markup().join(pieces)


def verbatim(text: str) -> Markup:
    """Return a text for a form field that sends it back: escaped as markup, with its hidden characters as they are."""
    return escape(text)


def pack_path(path: str) -> str:
    """Return a path as ASCII for a form field; hidden characters and bytes that are not UTF-8 survive."""
    return quote(path.encode("utf-8", "surrogateescape"))


def unpack_path(text: str) -> str:
    """Return the path that `pack_path` packed."""
    return unquote(text, errors="surrogateescape")


def excerpt(text: str, longest: int) -> str:
    """Return a text on one line, cut at `longest` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else flat[: longest - 1].rstrip() + "…"
