"""Picture the page in Chromium, light and dark: a copy of the demo vault, after a morning of agents' writes at fixed times."""

from __future__ import annotations

import calendar
import math
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from tests.documents.small_png import shrink
from tests.support.chromium import Tab, chromium, missing
from tests.support.page_browser import PagedMemex
from tests.support.page_history import write_history
from tests.support.paths import ROOT
from tests.support.shifted_clock import Clock

BEGIN: Final = calendar.timegm(
    (2026, 11, 26, 9, 0, 0)
)  # the time of the first write, and of the day that the page shows
DAY: Final = 86_400
SHOWN: Final = 58  # minutes after it, when the pictures are made
SIZE: Final = {"width": 1280, "height": 800}
PICTURES: Final = {
    "home": "/",
    "search": "/search?q=battery+box+cooling",
    "note": f"/note?{urlencode({'path': 'Projects/Heron/Heron battery.md'})}",
    "review": f"/review?{urlencode({'capture': 'Captures/default/West vent.md'})}",
    "graph": "/graph?name=Heron",
    "activity": "/activity?key=claude-code",
}


class ClockedMemex(PagedMemex):
    """A Memex whose processes have a clock of their own, in UTC."""

    clock: Clock

    @property
    def environ(self) -> dict[str, str]:
        return super().environ | self.clock.environ | {"TZ": "UTC"}

    def set_minute(self, minute: int) -> None:
        """Set the clock to this many minutes after the first write."""
        self.clock.set(math.ceil(BEGIN + 60 * minute - time.time()))


@contextmanager
def _running(folder: Path) -> Iterator[ClockedMemex]:
    shutil.copytree(ROOT / "vault_fixtures/demo", folder / "Notes")
    for file in (folder / "Notes").rglob("*"):
        os.utime(file, (BEGIN - DAY, BEGIN - DAY))
    memex = ClockedMemex(folder, vault=folder / "Notes")
    memex.clock = Clock(folder)
    memex.set_minute(0)
    try:
        memex.serve()
        yield memex
    finally:
        memex.run("open", "--stop")
        if memex.process is not None:
            memex.stop(signal.SIGKILL)


def write_pictures(folder: Path) -> None:
    """Write NAME-light.png and NAME-dark.png of each view into `folder`. Exits with the reason if no browser can be driven."""
    if reason := missing():
        raise SystemExit(f"no pictures of the page: {reason}")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, _running(Path(temporary)) as memex, chromium() as browser:
        write_history(memex, memex.set_minute)
        memex.set_minute(SHOWN)
        memex.run("job", "run", "review")
        memex.settled()
        for scheme in ("light", "dark"):
            tab = browser.open(
                memex.link()["url"], colorScheme=scheme, viewport=SIZE, reducedMotion="reduce", deviceScaleFactor=1
            )
            for view, address in PICTURES.items():
                _take(tab, view, address, folder / f"{view}-{scheme}.png")


def _take(tab: Tab, view: str, address: str, file: Path) -> None:
    tab.goto(address)
    tab.wait("main h1, main h2")
    if view == "graph":
        tab.wait("#drawing canvas")
        time.sleep(1)  # the layout of the drawing has no end that an element shows
    tab.call("screenshot", {"path": str(file), "type": "png"})
    file.write_bytes(shrink(file.read_bytes()))
