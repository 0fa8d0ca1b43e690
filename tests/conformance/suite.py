"""Run the suite against a daemon in this process, and read what it wrote."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.conformance.fixtures import KeyedGuard, installed
from tests.support.live_server import Rim, running
from tests.support.paths import CLIENTS
from tests.support.world import World

NODE = CLIENTS / "node_modules/.bin/node"
SUITE = CLIENTS / "node_modules/@modelcontextprotocol/conformance"
VERDICT = "the suite's own verdict"
REVISIONS = ("2025-11-25", "2026-07-28")
# Scenarios that call nothing by name, so they try the daemon as it is.
PLAIN = {
    "2025-11-25": (
        "server-initialize", "server-session-lifecycle", "ping", "tools-list", "resources-list", "prompts-list",
        "dns-rebinding-protection", "server-sse-multiple-streams",
    ),
    "2026-07-28": (
        "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection", "caching", "sep-2164-resource-not-found",
        "server-sse-multiple-streams", "http-header-validation", "input-required-result-unsupported-methods",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    """What came of one scenario: how many checks had which outcome."""

    name: str
    scored: bool
    checks: Counter[str]
    why: tuple[str, ...]  # what the checks that failed say

    @property
    def passed(self) -> bool:
        return self.checks["SUCCESS"] > 0 and not self.checks["FAILURE"]


@contextmanager
def daemon(folder: Path, *, fixtures: bool) -> Iterator[Rim]:
    """A daemon that takes requests without a key, with or without the suite's fixtures, and one note to read."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    origins = tuple(f"http://{host}:{port}" for host in ("127.0.0.1", "localhost"))
    with pytest.MonkeyPatch.context() as patch:
        installed(patch, fixtures=fixtures)
        with running(folder, fill=_filled, port=port, allowed_origins=origins) as rim:
            patch.setattr(KeyedGuard, "secret", rim.secrets["full"])
            yield rim


def _filled(world: World) -> None:
    world.write("Captures/default/Heron.md", "The heron stands.\n")


def required(revision: str) -> set[str]:
    """The scenarios of a server that the revision requires."""
    told = yaml.safe_load((SUITE / f"requirements/{revision}.yaml").read_text())
    return set(told["server"])


def everything(rim: Rim, revision: str, out: Path) -> list[Scenario]:
    """All that the revision requires, and what it reports besides."""
    whole = _suite(rim, out, "--requirements", revision) == 0
    own = Scenario(VERDICT, False, Counter(["SUCCESS" if whole else "FAILURE"]), ())
    return [*_read(out, required(revision)), own]


def alone(rim: Rim, revision: str, out: Path, scenarios: tuple[str, ...]) -> list[Scenario]:
    """Some scenarios."""
    for name in scenarios:
        _suite(rim, out, "--scenario", name, "--spec-version", revision)
    return _read(out, set(scenarios))


def _suite(rim: Rim, out: Path, *words: str) -> int:
    command = [NODE, SUITE / "dist/index.js", "server", "--url", f"{rim.url}/mcp", "--output-dir", out, *words]
    return subprocess.run(command, cwd=CLIENTS, capture_output=True, timeout=600, check=False).returncode


def _read(out: Path, scored: set[str]) -> list[Scenario]:
    found: dict[str, Scenario] = {name: Scenario(name, True, Counter(), ("it did not run",)) for name in scored}
    for file in sorted(out.rglob("checks.json")):
        name = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", file.parent.name)
        name = name if name in scored or f"server-{name}" not in scored else f"server-{name}"
        checks = json.loads(file.read_text())
        why = tuple(f"{one['id']}: {one.get('errorMessage')}" for one in checks if one["status"] == "FAILURE")
        found[name] = Scenario(name, name in scored, Counter(one["status"] for one in checks), why)
    return [found[name] for name in sorted(found, key=lambda name: (not found[name].scored, name))]


def table(scenarios: list[Scenario]) -> str:
    """For people: one line a scenario, and the sum."""
    lines = []
    for one in scenarios:
        good, bad = one.checks["SUCCESS"], one.checks["FAILURE"]
        mark = "ok  " if one.passed else "FAIL" if one.scored else "--  "
        more = ", ".join(
            f"{n} {name.lower()}" for name, n in sorted(one.checks.items()) if name in ("WARNING", "SKIPPED")
        )
        lines.append(
            f"  {mark} {one.name:48} {good:3} of {good + bad:3}{'' if one.scored else '  not scored'}{'  ' + more if more else ''}"
        )
        lines += [f"         {' '.join(why.split())[:300]}" for why in one.why if one.scored]
    counted = [one for one in scenarios if one.scored]
    good = sum(one.checks["SUCCESS"] for one in counted)
    both = good + sum(one.checks["FAILURE"] for one in counted)
    lines.append(f"  {sum(one.passed for one in counted)} of {len(counted)} scored scenarios, {good} of {both} checks")
    return "\n".join(lines)
