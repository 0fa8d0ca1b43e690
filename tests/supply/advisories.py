"""Advisories in the OSV format (https://ossf.github.io/osv-schema/): which of them are about a library at its version."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from packaging.version import Version

from tests.supply.lock_files import canonical

OURS: Final = Path(__file__).with_name("advisories.json")


@dataclass(frozen=True, slots=True)
class Source:
    """Advisories with their date. An export of a whole database has an answer for every library; a list proves none free of faults."""

    name: str
    date: str
    whole: bool
    records: tuple[Mapping[str, Any], ...]

    def about(self, name: str, version: str) -> list[str]:
        """The ids of the advisories that affect a library at this version."""
        return sorted(
            record["id"]
            for record in self.records
            if not record.get("withdrawn")
            and any(
                canonical(affected["package"]["name"]) == name and affects(affected, Version(version))
                for affected in _affected(record)
            )
        )


def _affected(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for affected in record.get("affected", []):
        if affected.get("package", {}).get("ecosystem") == "PyPI":
            yield affected


def affects(affected: Mapping[str, Any], version: Version) -> bool:
    """Whether a version is one of those listed, or lies in a range: from `introduced` on, before `fixed`, up to `last_affected`."""
    if str(version) in affected.get("versions", []):
        return True
    for bounds in affected.get("ranges", []):
        if bounds["type"] != "ECOSYSTEM":
            continue
        events = [
            (Version(value), kind) for event in bounds["events"] for kind, value in event.items() if kind != "limit"
        ]
        inside = False
        for bound, kind in sorted(events):
            if kind == "introduced" and version >= bound:
                inside = True
            elif (kind == "fixed" and version >= bound) or (kind == "last_affected" and version > bound):
                inside = False
        if inside:
            return True
    return False


def read(path: Path) -> Source:
    """A JSON file of advisories, or an export of the OSV database: a zip file or a folder of such files."""
    if not path.exists():
        raise SystemExit(f"there is no {path}; ADVISORIES names a file or a folder of advisories in the OSV format")
    if path.is_dir():
        texts = [file.read_bytes() for file in sorted(path.glob("*.json"))]
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            texts = [archive.read(name) for name in archive.namelist() if name.endswith(".json")]
    else:
        loaded = json.loads(path.read_bytes())
        listed = loaded.get("advisories", [loaded]) if isinstance(loaded, dict) else loaded
        date = loaded.get("date", "") if isinstance(loaded, dict) else ""
        return Source(path.name, date or newest(listed), whole=False, records=tuple(listed))
    records = tuple(json.loads(text) for text in texts)
    return Source(path.name, newest(records), whole=bool(records), records=records)


def newest(records: Iterable[Mapping[str, Any]]) -> str:
    """The day of the youngest advisory: an export is not older than that."""
    return max((record["modified"][:10] for record in records if "modified" in record), default="an unknown day")
