"""Lock files pin each library with the hashes of its files; these functions read them and say where they fall short.

requirements.txt holds what the daemon needs, tests/requirements.txt what its tests need besides, and constraints.txt the versions of
the first without hashes: pip refuses to install a folder, as in `pip install -c constraints.txt .`, beside any hash. requirements-cpu.txt
is written by hand.

Only Python's own library is imported here: a set-up reads the lock files before it has installed anything."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.support.paths import ROOT, TESTS

DAEMON: Final = ROOT / "requirements.txt"
TOOLS: Final = TESTS / "requirements.txt"
SITE: Final = ROOT / "docs" / "requirements.txt"
VERSIONS: Final = ROOT / "constraints.txt"
CPU: Final = ROOT / "requirements-cpu.txt"
HEAD: Final = "# make lock writes this file.\n"

_BLOCK = re.compile(r"^[A-Za-z0-9][^\n]*(?:(?<=\\)\n[^\n]*)*", re.MULTILINE)
_PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)\s*(?:;\s*(?P<marker>[^\\]*?))?\s*(?:\\|$)")


@dataclass(frozen=True, slots=True)
class Pin:
    """A library at one version; `marker` says for which platforms."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


def canonical(name: str) -> str:
    """A library's name as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, Pin]:
    """The libraries of a lock file by name; ValueError for a line that pins nothing."""
    found: dict[str, Pin] = {}
    for block in _BLOCK.findall(text):
        match = _PIN.match(block)
        if match is None:
            raise ValueError(f"{block.splitlines()[0]} is not pinned with ==")
        hashes = tuple(re.findall(r"--hash=(\S+)", block))
        name = canonical(match["name"])
        found[name] = Pin(name, match["version"], (match["marker"] or "").strip(), hashes)
    return found


def direct(project: Mapping[str, Any]) -> list[str]:
    """What the daemon itself asks for: the dependencies and the extra `otel`, which the set-up installs."""
    return [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["otel"]]


def asked(requirements: Iterable[str]) -> set[str]:
    """The names of requirements."""
    return {canonical(re.split(r"[<>=!~\[; @]", line, maxsplit=1)[0]) for line in requirements}


def faults(daemon: str, tools: str, versions: str, cpu: str, project: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the lock files, each a sentence."""
    locked, others, plain, builds = pins(daemon), pins(tools), pins(versions), pins(cpu)
    groups = project["dependency-groups"]
    for place, lock in (
        ("requirements.txt", locked),
        ("tests/requirements.txt", others),
        ("requirements-cpu.txt", builds),
    ):
        for pin in lock.values():
            if not pin.hashes or any(not re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in pin.hashes):
                yield f"{place}: {pin.name} has no SHA-256 hash"
    for name in sorted(asked([*direct(project), *groups["installer"]]) - locked.keys()):
        yield f"requirements.txt: {name}, which pyproject.toml names, is missing"
    for name in sorted(asked([*groups["dev"], *groups["audit"], *groups["clients"], *groups["lock"]]) - others.keys()):
        yield f"tests/requirements.txt: {name}, which pyproject.toml names, is missing"
    for name in sorted(locked.keys() & others.keys()):
        if locked[name].version != others[name].version:
            yield f"{name} is {locked[name].version} in requirements.txt and {others[name].version} in tests/requirements.txt"
    if {name: pin.version for name, pin in plain.items()} != {name: pin.version for name, pin in locked.items()}:
        yield "constraints.txt and requirements.txt differ; make lock writes both"
    for pin in builds.values():
        if pin.name not in locked or pin.version.partition("+")[0] != locked[pin.name].version:
            yield f"requirements-cpu.txt: {pin.name} {pin.version} is no build of the version in requirements.txt"
    if f"setuptools=={locked['setuptools'].version}" not in project["build-system"]["requires"]:
        yield "pyproject.toml builds with another setuptools than requirements.txt pins"


def without_hashes(daemon: str) -> str:
    """The text of constraints.txt: each library of the daemon's lock file with its version and its platforms."""
    lines = (f"{pin.name}=={pin.version}{f' ; {pin.marker}' if pin.marker else ''}\n" for pin in pins(daemon).values())
    return HEAD + "".join(lines)


def write() -> None:
    """Name what writes the lock files at their head, and write constraints.txt."""
    for file in (DAEMON, TOOLS):
        file.write_text(HEAD + file.read_text(encoding="utf-8").removeprefix(HEAD), encoding="utf-8")
    VERSIONS.write_text(without_hashes(DAEMON.read_text(encoding="utf-8")), encoding="utf-8")


def read_project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read_faults() -> list[str]:
    """What is wrong with the lock files of the project."""
    texts = (file.read_text(encoding="utf-8") for file in (DAEMON, TOOLS, VERSIONS, CPU))
    return list(faults(*texts, read_project()))
