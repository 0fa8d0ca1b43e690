"""Write the reference page of the settings: every setting with its type, default and meaning, section by section."""

from __future__ import annotations

import json
from itertools import groupby

from syncd.settings.settings import all_settings
from tests.documents.markdown_text import cell, code, table


def render_pages() -> dict[str, str]:
    """Return the page of settings."""
    lines = [
        "# Settings\n\nLook up here what each setting does. [Settings in practice](../settings-file.md) shows how to set them.\n\n",
        "`memex config` prints each setting with the value in force, and where it was set.\n\n",
    ]
    rows = [
        (name, one.type, "" if one.default is None else code(json.dumps(one.default, default=str)), cell(one.doc))
        for name, one in all_settings().items()
    ]
    for section, group in groupby(rows, key=lambda row: row[0].rpartition(".")[0]):
        title = f"## {section}\n\n" if section else "## Top level\n\n"
        lines.append(
            title + table(("setting", "type", "default", "meaning"), [(code(row[0]), *row[1:]) for row in group])
        )
    return {"settings.md": "".join(lines)}
