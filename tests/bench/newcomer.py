"""The first ten minutes of a newcomer, line by line: `python -m tests.bench.newcomer [--from clone|wheel|both] [--with pip|uv] [--out FILE]`.

From a clone: `make run`, and what its screen suggests. From the wheel: an empty environment, `memex init` and `memex serve` on
a vault of 120 notes. Prints a report in Markdown: times and sizes with their targets, then every line with the second it
appeared at. The home folder is empty; caches and settings of pip and uv are this machine's. In the end nothing is left."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from tests.bench import vaults
from tests.bench.measure import ROOT
from tests.bench.record import Row
from tests.support.distributions import build
from tests.support.empty_home import caches, environ_of
from tests.support.mcp_calls import called, listed_tools
from tests.support.terminal_transcript import Failed, Line, Program, Transcript, recorded
from tests.support.token_count import counted, seen_by_a_model

NOTES: Final = 120
ANSWER_S, INSTALLED_MB, TOOLS, TOKENS = 90.0, 700.0, 12, 2_500  # the targets
QUESTION, THOUGHT = "how do we keep the battery boxes cool", "The filter of the heat pump is due in May."
INBOX: Final = "Captures/default"  # the folder of the workspace that a new key opens
HIT: Final = r"^\d\.\d\d  "
INSTALLERS: Final = frozenset(["pip", "setuptools", "pkg_resources", "_distutils_hack"])


@dataclass
class Part:
    """What one beginning showed."""

    name: str
    rows: list[Row] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def add(self, name: str, figure: str, target: str = "", *, met: bool | None = None) -> None:
        self.rows.append(Row(f"{self.name}: {name}", target, figure, met))


def from_clone(terminal: Transcript, part: Part, tool: str) -> None:
    """Clone, `make run`, and what the screen suggests."""
    terminal.run(f"git clone {shlex.quote(str(ROOT))} memex")
    terminal.enter("memex")
    daemon = terminal.start("make run" + {"pip": " UV=", "uv": " UV=uv"}.get(tool, ""))
    ready = daemon.first("^Memex serves ")
    answer = daemon.first(HIT, after=daemon.first("^A live search"))
    daemon.first("^To stop the daemon")
    part.add("`make run` until it serves", f"{ready.second - daemon.begun.second:.1f} s")
    target = f"<= {ANSWER_S:g} s, warm package cache"
    part.add("from `git clone` to the first answer", f"{answer.second:.1f} s", target, met=answer.second <= ANSWER_S)
    suggested = re.fullmatch(r"\s+(.+) connect claude-code", daemon.first(" connect claude-code$").text)
    assert suggested
    use(terminal, part, suggested[1], Path(ready.text.removeprefix("Memex serves ")))
    terminal.run(f"{suggested[1]} review", [("[?]: ", "q")])
    stop(terminal, part, suggested[1], daemon)
    measure(part, [terminal.folder / ".venv", terminal.folder / "index/encoders/minilm"])


def from_wheel(terminal: Transcript, part: Part, tool: str) -> None:
    """Install the wheel into an empty environment, and serve a vault."""
    subprocess.run(["git", "clone", "--quiet", ROOT, terminal.folder / "memex"], check=True)
    (wheel,) = build(terminal.folder / "memex").glob("*.whl")
    file, python = wheel.relative_to(terminal.folder), shlex.quote(sys.executable)
    part.add("size of the wheel", f"{wheel.stat().st_size / 2**20:.1f} MB")
    if tool == "uv":
        terminal.run(f"uv venv --python {python} environment")
        install = terminal.run(f"uv pip install --python environment/bin/python {file}")
    else:
        terminal.run(f"{python} -m venv environment")
        install = terminal.run(f"environment/bin/python -m pip install {file}")
    part.add(f"`{'uv ' if tool == 'uv' else ''}pip install` of the wheel", f"{install.seconds:.1f} s")
    terminal.environ["PATH"] = f"{terminal.folder / 'environment/bin'}:{terminal.environ['PATH']}"
    vault = Path(terminal.environ["HOME"], "MyVault")
    shutil.copytree(vaults.DEMO, vault, ignore=shutil.ignore_patterns("Captures"))
    vaults.make(vault, NOTES - len(list(vault.rglob("*.md"))), words=150)
    terminal.run("memex init ~/MyVault", [("[y/N]: ", "y\n"), ("[Y/n]: ", "y\n")])
    daemon = terminal.start("memex serve")
    ready = daemon.first("^memex: ready: ")
    part.add(f"`memex serve` until “{ready.text}”", f"{ready.second - daemon.begun.second:.1f} s")
    use(terminal, part, "memex", vault)
    stop(terminal, part, "memex", daemon)
    measure(part, list((terminal.folder / "environment").glob("lib/python*/site-packages")))


def use(terminal: Transcript, part: Part, memex: str, vault: Path) -> None:
    """Search, connect an agent, let it capture, and find what it captured."""
    asked = terminal.run(f"{memex} search {QUESTION}")
    part.add("the first `memex search`", f"{asked.seconds:.1f} s, at {asked.first(HIT).second:.1f} s")
    connected = terminal.run(f"{memex} connect claude-code").first(r"http://\S+/mcp/core .*Bearer mx_")
    url, key = re.findall(r"http://\S+|mx_\w+", connected.text)
    headers = {"authorization": f"Bearer {key}"}
    begun = terminal.add("$", f"an MCP client at {url}: capture_thought {THOUGHT!r}")
    captured = called(url, headers, "capture_thought", content=THOUGHT)
    answered = terminal.add(" ", json.dumps(captured, ensure_ascii=False))
    part.add("a capture over MCP, with a new connection", f"{answered.second - begun.second:.2f} s")
    found = terminal.run(f"{memex} search when is the filter of the heat pump due").first(HIT)
    path = f"{INBOX}/{captured['path']}"
    is_found = path in found.text
    part.add("the first hit of a search is the capture", "yes" if is_found else found.text, "yes", met=is_found)
    note = terminal.run(f"cat {shlex.quote(str(vault / path))}")
    properties = re.findall(r"^(\w+):", "\n".join(line.text for line in note.lines), re.MULTILINE)
    part.add("properties of a new capture of one line", f"{len(properties)}: {', '.join(properties)}")
    for address in (url, url.removesuffix("/core")):
        tools = listed_tools(address, headers)
        tokens, core = sum(counted(seen_by_a_model(each)) for each in tools), address == url
        part.add(
            f"tools that `/{address.split('/', 3)[3]}` lists",
            f"{len(tools)} tools, {tokens:,} tokens",
            f"<= {TOOLS} tools, <= {TOKENS:,} tokens" if core else "",
            met=len(tools) <= TOOLS and tokens <= TOKENS if core else None,
        )


def stop(terminal: Transcript, part: Part, memex: str, daemon: Program) -> None:
    """Stop the daemon, and wait until its terminal is free again."""
    part.add("`memex stop`", f"{terminal.run(f'{memex} stop').seconds:.1f} s")
    daemon.wait()
    seconds, line = terminal.silence
    part.add("longest time without a new line", f"{seconds:.1f} s, after “{line.strip()[:60]}”")


def megabytes(folders: Iterable[Path], counts: Callable[[Path], bool] = Path.exists) -> float:
    """The size of the files that count, as `du` counts it."""
    found = (path for folder in folders for path in folder.rglob("*"))
    return sum(path.lstat().st_blocks for path in found if counts(path)) / 2**11


def measure(part: Part, folders: Sequence[Path]) -> None:
    """Add the sizes of an environment."""
    whole, compiled = megabytes(folders), megabytes(folders, lambda path: path.suffix == ".pyc")
    installer = megabytes(folders, is_of_an_installer)
    added = whole - installer
    part.add("what the installation added", f"{added:.0f} MB", f"<= {INSTALLED_MB:g} MB", met=added <= INSTALLED_MB)
    part.add("pip and setuptools, which the environment had", f"{installer:.0f} MB")
    part.add("size of the environment", f"{whole:.0f} MB")
    part.add("without what Python compiled", f"{whole - compiled:.0f} MB")


def is_of_an_installer(path: Path) -> bool:
    package = path.as_posix().partition("/site-packages/")[2].partition("/")[0]
    return package.partition("-")[0] in INSTALLERS


def use_for_an_hour(terminal: Transcript, part: Part, _: str) -> None:
    """The commits that Memex makes by itself in an hour that is simulated: the clock is set, Git is real."""
    folder = shlex.quote(str(terminal.folder / "hour"))
    hour = terminal.run(
        f"mkdir {folder}; cd {shlex.quote(str(ROOT))}; {shlex.quote(sys.executable)} -m tests.support.commit_hour {folder}"
    )
    text, *commits = hour.lines
    part.add(
        text.text.removesuffix("; automatic commits:") + ": automatic commits",
        str(len(commits)),
        "<= 4",
        met=len(commits) <= 4,
    )


def report(parts: Sequence[Part], cached: Sequence[float], failure: str) -> Iterator[str]:
    """The report in Markdown."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    commit = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    cache = f"package caches {cached[0]:.0f} MB before, {cached[1]:.0f} MB after"
    yield f"# A newcomer's first ten minutes\n\n{datetime.now(UTC).date()}, commit {commit}, {machine}; {cache}.\n"
    if failure:
        yield f"**It stopped early:** {failure}\n"
    yield "| what | target | measured | met |\n|---|---|---|---|"
    for row in (row for part in parts for row in part.rows):
        met = {True: "yes", False: "**no**", None: ""}[row.met]
        yield "".join(f"| {cell.replace('|', '¦')} " for cell in (row.name, row.target, row.figure, met)) + "|"
    for part in parts:
        yield f"\n## {part.name.capitalize()}\n\nSeconds; `$` marks a command, `|` a line of a program in the background.\n"
        yield "\n".join(["````text", *map(str, part.lines), "````"])


def follow(works: dict[str, Callable[[Transcript, Part, str], None]], tool: str) -> tuple[list[Part], str]:
    """Do all of it in a folder that is removed in the end; what was seen, and why it stopped early."""
    parts = []
    with ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="memex newcomer "))
        stack.callback(shutil.rmtree, root)
        stack.callback(signal.signal, signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C would leave the folder behind
        for name, work in works.items():
            parts.append(part := Part(name))
            (folder := root / name).mkdir()
            with recorded(folder, environ_of(folder), echo=True) as terminal:
                part.lines = terminal.lines
                try:
                    work(terminal, part, tool)
                except (Failed, AssertionError) as failure:
                    return parts, str(failure)
    return parts, ""


def end(number: int, _: FrameType | None) -> NoReturn:
    """End by a signal as by Ctrl-C: nothing is left behind."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.newcomer", description=__doc__)
    parser.add_argument("--from", dest="begin", choices=["clone", "wheel", "both"], default="both")
    parser.add_argument(
        "--with", dest="tool", choices=["pip", "uv"], default="", help="default: make's choice, and pip for the wheel"
    )
    parser.add_argument("--out", type=Path, help="a file for the report; default: it is printed")
    given = parser.parse_args()
    if given.tool == "uv" and not shutil.which("uv"):
        parser.error("uv is not installed: pip install uv")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    folders = [Path(folder) for name, folder in caches().items() if name.endswith("_CACHE_DIR")]
    before = megabytes(folders)
    works = {"clone": from_clone, "wheel": from_wheel}
    chosen = works if given.begin == "both" else {given.begin: works[given.begin]}
    parts, failure = follow(chosen | {"an hour": use_for_an_hour}, given.tool)
    text = "\n".join([*report(parts, [before, megabytes(folders)], failure), ""])
    given.out.write_text(text, "utf-8") if given.out else sys.stdout.write(text)
    sys.exit(1 if failure else 0)


if __name__ == "__main__":
    main()
