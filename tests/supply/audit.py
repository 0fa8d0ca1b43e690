"""The audit of the daemon's libraries: lock files, licences and known vulnerabilities, with what could not be looked up."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

from packaging.markers import Marker

from tests.supply import advisories, licences, lock_files
from tests.supply.lock_files import Pin
from tests.support.paths import ROOT

PACKAGES = ROOT / ".venv" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
PAGE_LOCK = ROOT / "distribution/page/package-lock.json"
FOUND = 1  # a vulnerability, a licence that is not allowed, a lock file that falls short
NOT_LOOKED_UP = 3  # nothing of the kind, but not for every library


@dataclass(frozen=True, slots=True)
class Lookup:
    """What one source of advisories says: the libraries that it knows, and the advisories against them."""

    source: str
    date: str
    known: frozenset[str]
    against: Mapping[str, Sequence[str]] = field(default_factory=dict)
    remark: str = ""


def here(pins: Iterable[Pin]) -> list[Pin]:
    """The libraries that this platform takes."""
    return [pin for pin in pins if not pin.marker or Marker(pin.marker).evaluate()]


def from_index(report: str, error: str, today: str, tool: str) -> Lookup:
    """What the package index answered, as pip-audit reports it; what pip-audit skipped was not looked up."""
    try:
        listed = json.loads(report)["dependencies"]
    except (json.JSONDecodeError, KeyError, TypeError):
        return Lookup(tool, today, frozenset(), remark=error.strip().rpartition("\n")[2] or "no report")
    known = [entry for entry in listed if "skip_reason" not in entry]
    against = {
        lock_files.canonical(entry["name"]): sorted(found["id"] for found in entry["vulns"])
        for entry in known
        if entry["vulns"]
    }
    return Lookup(tool, today, frozenset(lock_files.canonical(entry["name"]) for entry in known), against)


def from_source(source: advisories.Source, pins: Iterable[Pin]) -> Lookup:
    """What a file of advisories says; only an export of a whole database has looked at every library."""
    listed = list(pins)
    against = {pin.name: ids for pin in listed if (ids := source.about(pin.name, pin.version))}
    known = frozenset(pin.name for pin in listed) if source.whole else frozenset()
    return Lookup(source.name, source.date, known, against, remark=f"{len(source.records)} advisories tried")


def vulnerabilities(pins: Sequence[Pin], lookups: Sequence[Lookup]) -> tuple[list[str], int]:
    """Lines about known vulnerabilities, and the exit code; nothing is called free of them that no source knows."""
    lines = [f"Known vulnerabilities, of {len(pins)} libraries"]
    for lookup in lookups:
        told = f"; {lookup.remark}" if lookup.remark else ""
        lines.append(f"  {lookup.source}, {lookup.date}: looked up {len(lookup.known)}{told}")
    found = [
        f"  {pin.name} {pin.version}: {', '.join(ids)} ({lookup.source})"
        for pin in pins
        for lookup in lookups
        if (ids := lookup.against.get(pin.name))
    ]
    missing = sorted({pin.name for pin in pins}.difference(*(lookup.known for lookup in lookups)))
    looked_up = len(pins) - len(missing)
    if found:
        lines += found
    elif looked_up:
        lines.append(f"  none for the {looked_up} that were looked up")
    if missing:
        lines.append(f"  not looked up, so nothing is known about {len(missing)}: {', '.join(missing)}")
    return lines, FOUND if found else NOT_LOOKED_UP if missing else 0


def licence_lines(pins: Sequence[Pin], installed: Mapping[str, str]) -> tuple[list[str], int]:
    """Lines about licences, and the exit code; `installed` has what each installed library states."""
    allowed, others = licences.judge((pin.name, installed[pin.name]) for pin in pins if pin.name in installed)
    absent = [pin.name for pin in pins if pin.name not in installed]
    lines = [f"Licences, of {len(pins) - len(absent)} libraries"]
    lines += [f"  {len(names):4}  {expression}" for expression, names in sorted(allowed.items(), key=_most)]
    lines += [f"  not allowed or unknown: {name}: {statement}" for name, statement in sorted(others.items())]
    if absent:
        lines.append(f"  not installed here, so not looked at: {', '.join(absent)}")
    return lines, FOUND if others else 0


def _most(row: tuple[str, list[str]]) -> tuple[int, str]:
    return -len(row[1]), row[0]


def lock_lines(faults: Sequence[str], pins: int) -> tuple[list[str], int]:
    """Lines about the lock files, and the exit code."""
    whole = [f"  {pins} libraries of the daemon, each with hashes; pyproject.toml, tests and constraints.txt agree"]
    return ["Lock files", *([f"  {fault}" for fault in faults] or whole)], FOUND if faults else 0


def ask_index() -> Lookup:
    """Ask the package index, by pip-audit, about each library of the daemon's lock files."""
    words = ["--disable-pip", "--format", "json", "--progress-spinner", "off"]
    words += ["--requirement", str(lock_files.DAEMON), "--requirement", str(lock_files.MODELS)]
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", *words], capture_output=True, text=True, check=False, timeout=900
    )
    tool = f"the package index by pip-audit {version('pip-audit')}"
    return from_index(done.stdout, done.stderr, datetime.now(UTC).date().isoformat(), tool)


def read_licences() -> tuple[list[str], int]:
    """Lines about the licences of what is installed in .venv, and the exit code."""
    installed = {lock_files.canonical(each.name): licences.stated(each) for each in distributions(path=[str(PACKAGES)])}
    return licence_lines(read_pins(), installed)


def page_licence_lines(lock: Mapping[str, Any]) -> tuple[list[str], int]:
    """Lines about the licences of the libraries that the page serves, from npm's lock file, and the exit code."""
    stated = {path.removeprefix("node_modules/"): entry for path, entry in lock["packages"].items() if path}
    allowed, others = licences.judge((name, entry.get("license", "")) for name, entry in stated.items())
    lines = [f"Libraries of the page, {len(stated)}"]
    lines += [
        f"  {expression}: " + ", ".join(f"{name} {stated[name]['version']}" for name in names)
        for expression, names in sorted(allowed.items())
    ]
    lines += [f"  not allowed or unknown: {name}: {statement}" for name, statement in sorted(others.items())]
    return lines, FOUND if others else 0


def read_page_lock() -> dict[str, Any]:
    """The lock file of the libraries that the page serves."""
    return dict(json.loads(PAGE_LOCK.read_text()))


def read_pins() -> list[Pin]:
    """What the daemon's lock files have for this platform."""
    return here(lock_files.pins(lock_files.read_locked()).values())


def audit(export: Path | None) -> int:
    """Print the audit; the exit code is 1 for something found, 3 if not every library was looked up, else 0."""
    pins = read_pins()
    sources = [advisories.read(path) for path in (export, advisories.OURS) if path]
    parts = [
        lock_lines(lock_files.read_faults(), len(pins)),
        read_licences(),
        page_licence_lines(read_page_lock()),
        vulnerabilities(pins, [ask_index(), *(from_source(source, pins) for source in sources)]),
    ]
    sys.stdout.write("\n".join(line for lines, _ in parts for line in lines) + "\n")
    codes = {code for _, code in parts}
    return FOUND if FOUND in codes else max(codes)
