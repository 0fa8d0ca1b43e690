"""List every setting with the value in force, where it comes from, and what it means."""

from __future__ import annotations

import json
from typing import Any

from syncd.settings.settings import FIELDS, SECTIONS, Settings, all_settings


def effective_settings(chosen: Settings) -> list[dict[str, Any]]:
    """List every setting with its value in force and its source; secrets are left out."""
    rows = []
    for name, setting in all_settings().items():
        section, _, field = name.rpartition(".")
        value = getattr(getattr(chosen, FIELDS.get(section, section)), field) if section in SECTIONS else chosen.state
        shown = "…" if setting.secret and value else value
        rows.append(
            {
                "name": name,
                "value": json.loads(json.dumps(shown, default=str)),
                "origin": chosen.origins.get(name, "default"),
                "type": setting.type,
                "doc": setting.doc,
            }
        )
    return rows
