"""Every view of the page on a copy of a vault that somebody else wrote; `tests.bench.page` opens them on 10,000 notes."""

from __future__ import annotations

import random
import shutil
from urllib.parse import urlencode

import pytest

from tests.support.page_browser import paged_daemon
from tests.support.page_views import PLACES
from tests.support.paths import DATA

REAL = DATA / "vault_tasks_demo"
LONG = (
    f"# Long\n\n```sh\n{'echo a line that is wide; ' * 40}\n```\n\n| {'wide |' * 60}\n| {'--- |' * 60}\n"
    + "\n\nA paragraph." * 200
)
pytestmark = pytest.mark.slow


@pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not there")
def test_every_view_opens_on_a_real_vault(browser, tmp_path, models):
    shutil.copytree(REAL, tmp_path / "vault")
    with paged_daemon(tmp_path, models) as memex:
        long = memex.ask("get", id=memex.capture(LONG))["path"]
        tab = browser.open(memex.one_time_link())
        notes = sorted(path.relative_to(memex.vault).as_posix() for path in memex.vault.rglob("*.md"))
        addresses = [place.address for view, place in PLACES.items() if view not in ("note", "graph")]
        addresses += ["/graph", *(f"/note?{urlencode({'path': path})}" for path in random.Random(1).sample(notes, 30))]
        addresses += [f"/review?{urlencode({'capture': long})}", f"/note?{urlencode({'path': long})}"]
        for address in addresses:
            tab.goto(address)
            assert tab.value("document.querySelector('main').innerText.length") > 20, address
            assert (address, tab.axe) == (address, [])
        assert tab.problems == {}
