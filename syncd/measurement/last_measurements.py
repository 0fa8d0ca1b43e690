"""Keep the last measurements of models in the state folder, to decide whether a switch would be a measured loss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from syncd.measurement.rank_figures import DECISIVE
from syncd.state.folder import read_regular_file, write_private

FILE: Final = "measurements.json"
MOST: Final = 20  # measurements that are kept


def keep_measurement(
    state: Path, present: Mapping[str, Any], changed: Mapping[str, Any], result: Mapping[str, Any], at: int
) -> None:
    """Keep the result for `changed`, measured beside `present` at `at` (epoch ms); both are tables of encoder settings."""
    kept = [
        entry
        for entry in _read(state)
        if {_key(entry["present"]), _key(entry["changed"])} != {_key(present), _key(changed)}
    ]
    entry = {"at": at, "present": dict(present), "changed": dict(changed)}
    entry |= {name: result[name] for name in ("verdict", "search", "meaning")}
    write_private(state / FILE, json.dumps([*kept, entry][-MOST:]))


def find_verdict(state: Path, present: Mapping[str, Any], changed: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the last verdict on `changed` beside `present`, and its time; None if these two were never measured.

    A measurement of `present` beside `changed` is judged in the other direction."""
    for entry in reversed(_read(state)):
        pair = _key(entry["present"]), _key(entry["changed"])
        if pair == (_key(present), _key(changed)):
            return entry["verdict"], entry["at"]
        if pair == (_key(changed), _key(present)) and (verdict := _reverse(entry)) is not None:
            return verdict, entry["at"]
    return None


def _reverse(entry: Mapping[str, Any]) -> str | None:
    """Return the verdict on `present` beside `changed`; None if the entry lacks the differences that decide it.

    A setup that is worse for one kind of search and better for another one is worse in both directions."""
    if entry["verdict"] != "worse":
        return "worse" if entry["verdict"] == "better" else str(entry["verdict"])
    try:
        gains = [entry[kind]["difference"][DECISIVE]["low"] > 0 for kind in ("search", "meaning")]
    except (KeyError, TypeError):  # an older version of Memex wrote it
        return None
    return "worse" if any(gains) else "better"


def _key(encoder: Mapping[str, Any]) -> str:
    """Return what makes the vectors of an encoder: its settings without those that only say where and how it runs."""
    return json.dumps(
        {name: value for name, value in encoder.items() if name not in ("device", "download")}, sort_keys=True
    )


def _read(state: Path) -> list[dict[str, Any]]:
    try:
        entries = json.loads(read_regular_file(state / FILE))
        return [
            entry
            for entry in entries
            if isinstance(entry["verdict"], str) and entry["present"] and entry["changed"] and entry["at"]
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []  # none yet, or damaged: the owner measures again
