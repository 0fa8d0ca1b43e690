"""Write the choice of an encoder into the settings file, before the other encoders, and keep every other line as it is."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from index.errors import Conflict
from syncd.installation.vault_setup import write_settings_file

HEADER: Final = re.compile(r"\s*\[")
ENCODER: Final = re.compile(r"\s*\[\[\s*embed\s*\.\s*encoders\s*\]\]")
BUNDLED: Final[Mapping[str, Any]] = {"kind": "bundled"}  # the encoder of settings that name none


def write_first_encoder(file: Path, encoder: Mapping[str, Any], is_same: Callable[[Mapping[str, Any]], bool]) -> None:
    """Make `encoder`, a table of settings, the first one in the settings file; the others follow it as before.

    `is_same` says whether a table means the same encoder, which then moves to the front. Raises Conflict if the file can't
    be changed line by line."""
    text = file.read_bytes().decode()
    edited = put_encoder_first(text, encoder, is_same)
    if edited is None:
        raise Conflict(
            f"the settings file {file} can't be changed line by line: write this before the other encoders there:\n{format_encoder(encoder)}"
        )
    write_settings_file(file, edited)


def put_encoder_first(
    text: str, encoder: Mapping[str, Any], is_same: Callable[[Mapping[str, Any]], bool]
) -> str | None:
    """Return the text of the settings file with `encoder` as the first one; None if that would change other settings."""
    settings = tomllib.loads(text)
    before = settings.get("embed", {}).get("encoders", [])
    at = next((place for place, table in enumerate(before) if is_same(table)), None)
    first = encoder if at is None else before[at]
    wanted = copy.deepcopy(settings)
    rest = [table for place, table in enumerate(before) if place != at] or (
        [] if before or is_same(BUNDLED) else [BUNDLED]
    )
    wanted.setdefault("embed", {})["encoders"] = [first, *rest]
    end = "\r\n" if "\r\n" in text else "\n"
    edited = _edit(
        text, [format_encoder(table).replace("\n", end) for table in ([first] if before else [first, *rest])], at, end
    )
    try:
        return edited if tomllib.loads(edited) == wanted else None
    except tomllib.TOMLDecodeError:
        return None


def _edit(text: str, tables: list[str], at: int | None, end: str) -> str:
    lines = text.splitlines(keepends=True)
    starts = [place for place, line in enumerate(lines) if ENCODER.match(line)]
    if not starts:
        return text.rstrip() + "".join(f"{end}{end}{table.rstrip()}" for table in tables) + end
    moved = "".join(f"{table.rstrip()}{end}{end}" for table in tables)
    if at is not None and at < len(starts):
        stop = _end_of_table(lines, starts[at])
        moved = "".join(lines[starts[at] : stop]).rstrip() + end + end
        del lines[starts[at] : stop]
    place = starts[0]
    while place and lines[place - 1].lstrip().startswith("#"):  # a comment above the first encoder stays with it
        place -= 1
    return "".join([*lines[:place], moved, *lines[place:]])


def _end_of_table(lines: list[str], start: int) -> int:
    """Return the end of the table that begins at line `start`; comments before the next table belong to that one."""
    stop = next((place for place in range(start + 1, len(lines)) if HEADER.match(lines[place])), len(lines))
    while stop > start + 1 and (not lines[stop - 1].strip() or lines[stop - 1].lstrip().startswith("#")):
        stop -= 1
    return stop


def format_encoder(encoder: Mapping[str, Any]) -> str:
    """Return the lines of an encoder in the settings file."""
    # Text, numbers and truth have the same form in JSON and TOML.
    values = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in encoder.items()]
    return "\n".join(["[[embed.encoders]]", *values]) + "\n"
