"""Lock files pin each library with the hashes of its files; these functions read them and say where they fall short.

requirements.txt holds what the daemon needs, requirements-models.txt what the extra `models` needs besides, tests/requirements.txt what
the tests need, and constraints.txt the versions of the first two without hashes: pip refuses to install a folder, as in
`pip install -c constraints.txt .`, beside any hash. requirements-cpu.txt is written by hand.

Only Python's own library is imported here: a set-up reads the lock files before it has installed anything."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.support.paths import ROOT, TESTS

DAEMON: Final = ROOT / "requirements.txt"
MODELS: Final = ROOT / "requirements-models.txt"
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
    return [*project["project"]["dependencies"], *extra(project, "otel")]


def extra(project: Mapping[str, Any], name: str) -> list[str]:
    """What an extra asks for."""
    return list(project["project"]["optional-dependencies"].get(name, []))


def asked(requirements: Iterable[str]) -> set[str]:
    """The names of requirements."""
    return {canonical(re.split(r"[<>=!~\[; @]", line, maxsplit=1)[0]) for line in requirements}


def faults(daemon: str, models: str, tools: str, versions: str, cpu: str, project: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the lock files, each a sentence."""
    base, others, plain, builds = pins(daemon), pins(tools), pins(versions), pins(cpu)
    locked = base | pins(models)
    groups = project["dependency-groups"]
    for place, lock in (
        ("requirements.txt", base),
        ("requirements-models.txt", pins(models)),
        ("tests/requirements.txt", others),
        ("requirements-cpu.txt", builds),
    ):
        for pin in lock.values():
            if not pin.hashes or any(not re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in pin.hashes):
                yield f"{place}: {pin.name} has no SHA-256 hash"
    for name in sorted(asked([*direct(project), *groups["installer"]]) - base.keys()):
        yield f"requirements.txt: {name}, which pyproject.toml names, is missing"
    for name in sorted(asked(extra(project, "models")) - locked.keys()):
        yield f"requirements-models.txt: {name}, which pyproject.toml names, is missing"
    for name in sorted(base.keys() & pins(models).keys()):
        yield f"{name} is both in requirements.txt and in requirements-models.txt; make lock writes both"
    for name in sorted(asked([*groups["dev"], *groups["audit"], *groups["clients"], *groups["lock"]]) - others.keys()):
        yield f"tests/requirements.txt: {name}, which pyproject.toml names, is missing"
    for name in sorted(locked.keys() & others.keys()):
        if locked[name].version != others[name].version:
            yield f"{name} is {locked[name].version} for the daemon and {others[name].version} in tests/requirements.txt"
    if {name: pin.version for name, pin in plain.items()} != {name: pin.version for name, pin in locked.items()}:
        yield "constraints.txt and requirements.txt differ; make lock writes them"
    for pin in builds.values():
        if pin.name not in locked or pin.version.partition("+")[0] != locked[pin.name].version:
            yield f"requirements-cpu.txt: {pin.name} {pin.version} is no build of the version in requirements-models.txt"
    for line in project["build-system"]["requires"]:
        name = line.partition("==")[0]
        if name not in base or line != f"{name}=={base[name].version}":
            yield f"pyproject.toml builds with another {name} than requirements.txt pins"


def without_hashes(*locks: str) -> str:
    """The text of constraints.txt: each library of the daemon's lock files with its version and its platforms."""
    found = sorted((pin for lock in locks for pin in pins(lock).values()), key=lambda pin: pin.name)
    return HEAD + "".join(f"{pin.name}=={pin.version}{f' ; {pin.marker}' if pin.marker else ''}\n" for pin in found)


def beyond(models: str, daemon: str) -> str:
    """The text of requirements-models.txt: what the first lock has and the second has not."""
    base = pins(daemon)
    return "".join(f"{block}\n" for block in _BLOCK.findall(models) if not pins(block).keys() & base.keys())


def write() -> None:
    """Name what writes the lock files at their head, take from the extra's what the daemon's has, and write constraints.txt."""
    daemon, models, tools = (file.read_text(encoding="utf-8").removeprefix(HEAD) for file in (DAEMON, MODELS, TOOLS))
    models = beyond(models, daemon)
    for file, text in ((DAEMON, daemon), (MODELS, models), (TOOLS, tools)):
        file.write_text(HEAD + text, encoding="utf-8")
    VERSIONS.write_text(without_hashes(daemon, models), encoding="utf-8")


def read_locked() -> str:
    """All that an environment of the daemon may hold: the lock files of the daemon and of the extra `models`."""
    return DAEMON.read_text(encoding="utf-8") + MODELS.read_text(encoding="utf-8")


def read_project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read_faults() -> list[str]:
    """What is wrong with the lock files of the project."""
    texts = (file.read_text(encoding="utf-8") for file in (DAEMON, MODELS, TOOLS, VERSIONS, CPU))
    return list(faults(*texts, read_project()))
