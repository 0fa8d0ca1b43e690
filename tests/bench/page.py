"""Time each view of the page: `python -m tests.bench.page [--notes 10000] [--vault FOLDER]`.

Server time is that of the page's process and the daemon together, over HTTP; the first paint is Chromium's, where Chromium is."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from syncd.page.application import VIEWS
from tests.bench import vaults
from tests.bench.headline import MEMEX
from tests.bench.measure import daemon, p50, p95, timed
from tests.support.chromium import chromium, missing
from tests.support.page_browser import Browser
from tests.support.paths import ROOT

WORDS: Final = 90  # of a made-up note
TIMES: Final = 40  # requests of each view that count
WARM: Final = 5


def make_vault(root: Path, notes: int) -> None:
    """Write a vault of made-up notes in 97 folders, each with links to three others."""
    vaults.make(root, notes, words=WORDS)
    rng = random.Random(3)
    for file in root.rglob("*.md"):
        links = " ".join(f"[[Note {rng.randrange(notes)}]]" for _ in range(3))
        file.write_text(f"{file.read_text('utf-8')}\nSee {links}.\n", "utf-8")


def list_addresses(vault: Path) -> dict[str, list[str]]:
    """Return the addresses of each view to ask for, by the name of its row."""
    questions = vaults.questions(TIMES + WARM)
    files = sorted(vault.rglob("*.md"))
    paths = [file.relative_to(vault).as_posix() for file in random.Random(5).sample(files, min(len(files), 20))]
    folder = paths[0].rpartition("/")[0]
    searches = {
        "search": [f"/search?{urlencode({'q': text})}" for text in questions],
        "search in a folder": [f"/search?{urlencode({'q': text, 'folder': folder})}" for text in questions],
        "note": [f"/note?{urlencode({'path': path})}" for path in paths],
    }
    return {view.name: [view.path] for view in VIEWS if view.name != "note"} | searches


def time_views(browser: Browser, addresses: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield a line for each row: median and 95th percentile in milliseconds, as you open the view and as it refreshes."""

    def ask(address: str, headers: Mapping[str, str]) -> None:
        answer = browser.client.get(address, headers=headers, follow_redirects=True)
        assert answer.status_code == 200, (address, answer.status_code)

    for name, choices in addresses.items():
        asked = [choices[number % len(choices)] for number in range(TIMES + WARM)]
        for kind, headers in (("opened", {}), ("refreshed", {"x-refresh": "1"})):
            spent = timed([lambda address=address, headers=headers: ask(address, headers) for address in asked])[WARM:]
            yield f"{name:20} {kind:10} p50 {p50(spent):6.1f} ms   p95 {p95(spent):6.1f} ms"


def paint_views(link: str, addresses: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield a line for each row: the first paint in Chromium, and the bytes that it loaded."""
    with chromium() as running:
        tab = running.open(link)
        for name, choices in addresses.items():
            weights = [tab.call("weight", tab.page + choices[number % len(choices)]) for number in range(9)]
            size = sum(weights[-1]["files"].values()) / 1024
            yield f"{name:20} first paint p50 {p50([weight['paint'] for weight in weights]):6.1f} ms   {size:5.0f} KB"


@contextmanager
def page(vault: Path, state: Path) -> Iterator[list[str]]:
    """Run the page of a daemon, and yield two links to it."""
    options = ["--vault", str(vault), "--state", str(state), "--json"]
    environment = os.environ | {"MEMEX_PAGE__PORT": "0", "PYTHONPATH": str(ROOT)}

    def run(*words: str) -> str:
        command = [*MEMEX, "open", *words, *options]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    try:
        yield [json.loads(run("--no-browser"))["url"] for _ in range(2)]
    finally:
        run("--stop")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000, help="made-up notes")
    parser.add_argument("--vault", type=Path, help="measure a copy of this vault instead")
    parser.add_argument("--work", type=Path, help="keep the vault and its index here, for the next run")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        vault, state = work / "vault", work / "state"
        if not vault.exists() and given.vault:
            shutil.copytree(given.vault, vault)
        elif not vault.exists():
            make_vault(vault, given.notes)
        state.mkdir(exist_ok=True)
        with daemon(vault, state, "--made-up") as one:
            sys.stdout.write(f"{one.settled():.0f} s until the index is ready\n")
            with page(vault, state) as links:
                addresses = list_addresses(vault)
                for line in time_views(Browser(links[0]), addresses):
                    sys.stdout.write(f"{line}\n")
                sys.stdout.write(f"{missing()}\n")
                for line in () if missing() else paint_views(links[1], addresses):
                    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
